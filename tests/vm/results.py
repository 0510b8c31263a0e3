# SPDX-License-Identifier: MIT
"""What the tests in guests gave, as JUnit."""

import os
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree

_MEANING = "124: the kernel's log complains; 125: timeout, panic, or no start"


def is_bad(case):
    return case.find("failure") is not None or case.find("error") is not None


def read(path, name):
    """The results of pytest in a guest; an empty suite of that name, if the guest has left none."""
    try:
        (suite,) = ElementTree.parse(path).getroot().iter("testsuite")
    except (FileNotFoundError, ElementTree.ParseError, ValueError):
        suite = ElementTree.Element("testsuite", name=name)
    return suite


def add_end(suite, guest, status):
    """Add what pytest could not say itself as a test case of its own: the guest ended with that status."""
    if status in (0, 5) or any(is_bad(case) for case in suite.iter("testcase")):
        return
    case = ElementTree.SubElement(suite, "testcase", classname="guest", name=guest)
    ElementTree.SubElement(case, "failure", message=f"the guest ended with {status}").text = _MEANING


def keep_logs(source, target):
    """Copy the kernel's logs of a directory to another one, unless that is None."""
    if target:
        os.makedirs(target, exist_ok=True)
        for log in source.glob("*.log"):
            shutil.copy(log, target)


def report(suites, junit):
    """Write all suites to the file `junit`, unless that is None, print what failed and how many there were, and end this
    program: with 0 where every test passed, and there was one."""
    results = ElementTree.Element("testsuites")
    results.extend(suites)
    if junit:
        ElementTree.ElementTree(results).write(junit, encoding="utf-8", xml_declaration=True)
    cases = list(results.iter("testcase"))
    bad = [case for case in cases if is_bad(case)]
    for case in bad:
        print(f"failed: {re.sub('^kernel', '', case.get('classname'))} {case.get('name')}")
    skipped = sum(case.find("skipped") is not None for case in cases)
    print(f"{len(cases) - len(bad) - skipped} passed, {len(bad)} failed, {skipped} skipped")
    sys.exit(1 if bad or not cases else 0)
