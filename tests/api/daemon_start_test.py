# SPDX-License-Identifier: MIT
"""If ublkd cannot start, it prints one sentence before it does anything."""

import os
import pathlib
import re
import shutil
import stat
import subprocess

import pytest
from daemon_process import Daemon

UBLKD = os.environ["UBLKD_PROGRAM"]


def refused(directory, *arguments, program=UBLKD):
    """Its last line on stderr; it must leave nothing behind."""
    state = directory / "state"
    run = subprocess.run([program, "--config-root", directory / "root", "--state-dir", state,
                          "--runtime-dir", directory / "run", *arguments],
                         capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1 and run.stdout == "", run
    assert run.stderr.count("\n") == 1 and not state.exists()
    return run.stderr


@pytest.mark.parametrize("what, why", [("missing", "No such file"), ("directory", "Is a directory"),
                                       ("plain", "Permission denied")])
def test_a_worker_that_cannot_be_run(tmp_path, what, why):
    (tmp_path / "directory").mkdir()
    (tmp_path / "plain").write_text("no program")
    output = refused(tmp_path, "--worker", tmp_path / what)
    assert str(tmp_path / what) in output and why in output and "--worker" in output


def test_the_state_directory_is_created_and_reported_once(tmp_path):
    """A typo in --state-dir was a ublkd without devices, and no word of why."""
    daemon = Daemon(tmp_path)
    info = daemon.state.stat()
    daemon.stop()
    assert stat.S_IMODE(info.st_mode) == 0o700
    lines = [line for line in daemon.log.read_text().splitlines() if str(daemon.state) in line]
    assert len(lines) == 1 and "--state-dir" in lines[0]
    daemon.start()
    daemon.stop()
    assert daemon.count_logged(str(daemon.state)) == 1


def test_no_directory_above_the_state_directory(tmp_path):
    output = refused(tmp_path, "--state-dir", tmp_path / "typo" / "state")
    assert str(tmp_path / "typo" / "state") in output and "--state-dir" in output
    assert not (tmp_path / "typo").exists()


def test_no_worker_beside_it(tmp_path):
    text = subprocess.run([UBLKD, "--help"], capture_output=True, text=True, check=True).stdout
    installed = re.search(r"beside ublkd, else\s+(/\S+)\)", text).group(1)
    if os.path.exists(installed):
        pytest.skip(f"{installed} is installed")
    alone = tmp_path / "alone"
    alone.mkdir()
    program = pathlib.Path(shutil.copy2(UBLKD, alone / "ublkd"))
    output = refused(tmp_path, program=program)
    assert str(installed) in output and "--worker" in output
    (alone / "ublkd-worker").write_text("no program")
    output = refused(tmp_path, program=program)
    assert str(alone / "ublkd-worker") in output and "Permission denied" in output


@pytest.mark.parametrize("arguments", [[], ["--bogus"], ["a", "b"]])
def test_a_worker_that_is_started_by_hand(arguments):
    """The worker prints its usage; the missing socket would not help the user who started it by hand."""
    worker = pathlib.Path(UBLKD).with_name("ublkd-worker")
    run = subprocess.run([worker, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2 and run.stdout == "" and run.stderr.startswith("Usage: ublkd-worker"), run


@pytest.mark.parametrize("option, word", [("--unstable-paths", "forbid"), ("--readers", "noone"), ("--readers", "group:"),
                                          ("--administrators", "everyone"), ("--administrators", "group:"), ("--socket-group", "group:x")])
def test_an_unknown_policy(option, word):
    run = subprocess.run([UBLKD, option, word], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2 and option in run.stderr and run.stderr.count("\n") == 1
