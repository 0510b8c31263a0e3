# SPDX-License-Identifier: MIT
"""The first commands that a stranger types work as they stand."""

import pathlib
import re
import shutil

import pytest

from harness.programs import build, source
from harness.shell import run

pytestmark = pytest.mark.long  # and one kernel runs each test

_DIRECTORIES = [pathlib.Path("/var/lib/ublkd"), pathlib.Path("/run/ublkd")]


@pytest.fixture
def fresh_machine():
    """One on which ublkd never ran."""
    image = pathlib.Path("/var/tmp/data.img")
    assert not image.exists() and not any(path.exists() for path in _DIRECTORIES)
    yield
    image.unlink(missing_ok=True)
    for path in _DIRECTORIES:
        shutil.rmtree(path, ignore_errors=True)


def test_the_first_use_of_the_readme(directory, fresh_machine):  # pylint: disable=unused-argument,redefined-outer-name
    text = source("README.md").read_text(encoding="utf-8")
    commands = re.search(r"^On a host with ublk, .*\n\n((?: {4}.*\n)+)", text, re.MULTILINE).group(1)
    assert "ublkctl attach" in commands
    programs = directory / "build"
    programs.mkdir()
    (programs / "ublkctl").symlink_to(build() / "ublkctl")
    slow = programs / "ublkd"  # it has no socket yet when the next command is read
    slow.write_text(f"#!/bin/sh\nsleep 1\nexec {build()}/ublkd\n", encoding="ascii")
    slow.chmod(0o755)
    script = "set -e; trap 'kill $! 2>/dev/null; wait' EXIT\n" + commands
    output = run("bash", input=script, cwd=directory).stdout
    assert re.search(r"^/dev/ublkb0$", output, re.MULTILINE), output
    assert re.search(r"^data +Live +/dev/ublkb0 +10GiB ", output, re.MULTILINE), output
    assert "data restarted\n" in output and "data removed\n" in output, output


def test_quickstart_builds_what_it_runs(directory):
    """Its programs alone, in a directory without the others of the build."""
    line = re.search(r"^cmake --build .* --target (.*)$", source("quickstart").read_text(encoding="utf-8"), re.MULTILINE)
    programs = directory / "build"
    programs.mkdir()
    for program in line.group(1).split():
        shutil.copy(build() / program, programs)
    assert "no write failed" in run(source("scripts/first-light"), programs, timeout=300).stdout
