# SPDX-License-Identifier: MIT
"""scripts/count-results: what decides whether ./check succeeds."""

import os
import pathlib
import subprocess

import pytest

_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "count-results"


@pytest.fixture(name="count")
def fixture_count(tmp_path):
    """Count the results of JUnit files: the exit code and the lines."""

    def count(parts="driver\t0\n", ci="", **files):
        (tmp_path / "parts").write_text(parts)
        for name, cases in files.items():
            (tmp_path / f"{name}.xml").write_text(cases)
        environment = {**os.environ, "CI": ci}
        done = subprocess.run([_SCRIPT, tmp_path], capture_output=True, text=True, check=False, env=environment)
        return done.returncode, done.stdout.splitlines()

    return count


def _suite(*cases, elsewhere=()):
    left = "".join(f'<property name="elsewhere" value="{test}"/>' for test in elsewhere)
    return f"<testsuites><testsuite><properties>{left}</properties>{''.join(cases)}</testsuite></testsuites>"


def _case(name, child="", classname="6.12.test_a"):
    return f'<testcase classname="{classname}" name="{name}">{child}</testcase>'


def test_all_passed(count):
    assert count(a=_suite(_case("one"), _case("two"))) == (0, ["2 passed, 0 failed, 0 skipped"])


@pytest.mark.parametrize("child", ["<failure/>", "<error/>"])
def test_a_failure(count, child):
    code, lines = count(a=_suite(_case("one"), _case("two", child)))
    assert code == 1 and lines[-1] == "1 passed, 1 failed, 0 skipped" and "two" in lines[0]


def test_a_skip_is_a_failure_in_ci_only(count):
    suite = _suite(_case("one"), _case("two", "<skipped/>"))
    assert count(a=suite)[0] == 0
    assert count(a=suite, ci="true")[0] == 1


@pytest.mark.parametrize("text", ["", "<testsuites/>"])
def test_a_file_without_tests_is_a_failure(count, text):
    assert count(a=_suite(_case("one")), b=text)[0] == 1


def test_a_part_that_failed_without_a_test(count):
    code, lines = count(parts="build\t1\n", a=_suite(_case("one")))
    assert code == 1 and "failed parts: build" in lines


def test_what_one_kernel_leaves_to_the_other_must_have_run_there(count):
    left = ["test_a.py::long[copy]", "systemd/test_b.py::long"]
    there = [_case("long[copy]", classname="7.2.test_a"), _case("long", classname="7.2.systemd.test_b")]
    assert count(a=_suite(_case("one"), elsewhere=left), b=_suite(*there)) == (0, ["3 passed, 0 failed, 0 skipped"])
    code, lines = count(a=_suite(_case("one"), elsewhere=left), b=_suite(there[1]))
    assert code == 1 and lines[-1] == "2 passed, 1 failed, 0 skipped" and "test_a.py::long[copy]" in lines[0]
