# SPDX-License-Identifier: MIT
"""Parts that the benchmarks share outside the guest: programs, guest, results."""

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

_HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(_HERE)
sys.path.insert(0, os.path.join(_HERE, "peers"))
sys.path.insert(0, os.path.join(_HERE, "guest"))

# pylint: disable=wrong-import-position
import peers

_HELPER = "ublkd-helper"
_OWN_PROGRAMS = ("ublkd", _HELPER, "ublkd-worker", "ublkd-worker-without-statistics", "ublkctl", "ublkd-follow")


def add_options(parser, name, guest=True):
    """Add the options that all benchmarks have; `guest`: the benchmark runs in a guest."""
    add = parser.add_argument
    add("--build", default=os.path.join(ROOT, "build"), metavar="DIR",
        help="where ublkd was built: default %(default)s")
    if guest:
        add("--kernel", default="7", help="of the guest: default %(default)s")
    add("--output", default=os.path.join(ROOT, f"build/bench/{name}"), metavar="PREFIX",
        help="results are PREFIX.json and PREFIX.md: default %(default)s")


class Workspace:
    """A folder that the guest may write, with copies of our programs, so that a
    build meanwhile has no effect."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="ublkd-bench-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)

    def folder(self, name):
        """Return the path of a new folder in it."""
        os.mkdir(self.file(name))
        return self.file(name)

    def own_programs(self, build, needed=_OWN_PROGRAMS, folder=None):
        """Return ({"ublkd": program} or {}, {"ublkd": why it is missing} or {}, versions).

        An old build may lack programs that are not `needed`; the helper is, if its ublkd has one. The folder is the
        workspace itself, or one in it."""
        folder = folder or self.path
        for name in _OWN_PROGRAMS:
            program = os.path.join(build, name)
            if os.access(program, os.X_OK):
                shutil.copy(program, folder)
            elif name in needed or (name == _HELPER and _contains(os.path.join(folder, "ublkd"), name)):
                return {}, {"ublkd": f"{program} is not built"}, []
        program = os.path.join(folder, "ublkd")
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        return {"ublkd": program}, {}, [f"{version.stdout.strip()} ({_revision(build)})"]

    def programs(self, build, rows=None, needed=_OWN_PROGRAMS):
        """Return (programs, missing, versions) of ublkd and the peers that these
        rows need (None: all); they stay in the cache as long as this workspace."""
        programs, missing, versions = self.own_programs(build, needed)
        for name in peers.NAMES:
            if rows is not None and not any(row.split("/")[0] == name for row in rows):
                continue
            try:
                peer = peers.peer(name)
            except peers.PeerError as problem:
                missing[name] = str(problem)
                continue
            programs[name] = peer.program
            versions += peer.versions
        return programs, missing, versions

    def run_guest(self, script, configuration, kernel, timeout, options=()):
        """Run a script of bench/guest in the guest with a configuration; return
        (exit code of tests/vm/run, the lines of JSON that it left)."""
        command = [os.path.join(ROOT, "tests/vm/run"), "--kernel", kernel, "--timeout", str(timeout)]
        return self._run_script(script, configuration, [*command, "--share-out", self.path, *options, "--"])

    def run_here(self, script, configuration):
        """Run such a script on this machine itself, as root; return the same."""
        return self._run_script(script, configuration, [])

    def _run_script(self, script, configuration, before):
        results = self.file("results.jsonl")
        with open(results, "w", encoding="utf-8"):
            pass  # what an earlier run left is not this one's
        with open(self.file("configuration.json"), "w", encoding="utf-8") as output:
            json.dump(configuration | {"results": results}, output)
        command = [*before, "/usr/bin/python3", os.path.join(_HERE, "guest", script), self.file("configuration.json")]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        with open(results, encoding="utf-8") as source:
            return code, [json.loads(line) for line in source]


def _contains(program, text):
    with open(program, "rb") as source:
        return text.encode() in source.read()


def _source(build):
    """Return the tree that a build is of, as CMake noted it; without that note, this tree."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
            noted = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.+)$", cache.read(), re.MULTILINE)
    except FileNotFoundError:
        noted = None
    return noted[1] if noted else ROOT


def _revision(build):
    command = ["git", "-C", _source(build), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no git"


def _qemu_version():
    import emulator  # of tests/vm, by way of peers

    text = subprocess.run([emulator.qemu().command[0], "--version"], capture_output=True, text=True, check=True)
    return text.stdout.splitlines()[0]


def about(versions, lines, guest=True):
    """Return the conditions that a result must name; `guest`: it ran in a guest."""
    facts = {
        "date": datetime.date.today().isoformat(),
        "command": f"bench/{' '.join([os.path.basename(sys.argv[0]), *sys.argv[1:]])}",
        "versions": [*versions, *([_qemu_version()] if guest else [])],
        "load": f"{os.getloadavg()[1]:.1f}",  # of this machine, the guest included
    }
    for line in lines:
        facts |= line.get("about", {})
    return facts


def about_markdown(facts):
    """Return the same as Markdown."""
    fio = [facts["fio"]] if "fio" in facts else []
    versions = "; ".join([f"Linux {facts.get('kernel', '?')}", *fio, *facts["versions"]])
    return f"{facts['date']}, `{facts['command']}`, load {facts['load']}\n\n{versions}\n"


def save(prefix, results, markdown):
    """Write PREFIX.json and PREFIX.md, and print the latter."""
    os.makedirs(os.path.dirname(os.path.realpath(prefix)), exist_ok=True)
    with open(f"{prefix}.json", "w", encoding="utf-8") as output:
        json.dump(results, output, indent=1)
        output.write("\n")
    with open(f"{prefix}.md", "w", encoding="utf-8") as output:
        output.write(markdown)
    print(markdown)


def load(prefix):
    """Return the results that save() wrote as PREFIX.json, or nothing if there are none."""
    try:
        with open(f"{prefix}.json", encoding="utf-8") as source:
            return json.load(source)["results"]
    except FileNotFoundError:
        return []


def table(header, rows):
    """Return a Markdown table; the first column is left, the others right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
