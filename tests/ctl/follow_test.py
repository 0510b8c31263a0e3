# SPDX-License-Identifier: MIT
"""ublkd-follow, the process of a disk's unit, on marks that the test makes."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

PROGRAM = os.environ["UBLKD_FOLLOW"]
DEADLINE = 60


@pytest.fixture
def place(tmp_path):
    for kind in ("live", "failed"):
        (tmp_path / kind).mkdir()
    (tmp_path / "live" / "data").touch()
    return tmp_path


@pytest.fixture
def start(place):
    """Start it, and return when it follows."""
    started = []

    def begin(*command):
        process = subprocess.Popen([PROGRAM, place, "data", *(command or ("echo", "stopped"))], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def _waits(process):
    """Return when it sleeps in poll(2): it has looked."""
    path = pathlib.Path(f"/proc/{process.pid}/syscall")
    while process.poll() is None:
        words = path.read_text(encoding="ascii").split()
        if words[0] in ("7", "73", "271"):  # poll of x86-64; ppoll of arm64 and x86-64
            return


def _end(process):
    out, err = process.communicate(timeout=DEADLINE)
    return process.returncode, out, err


def test_the_end_of_the_disk(start, place):
    process = start()
    _waits(process)
    (place / "live" / "data").unlink()
    assert _end(process) == (0, "", "")


def test_a_failure_has_its_sentence(start, place):
    process = start()
    _waits(process)
    (place / "failed" / "data").write_text("No file.\n")
    (place / "live" / "data").unlink()
    assert _end(process) == (1, "", "data: No file.\n")


def test_other_disks_do_not_matter(start, place):
    (place / "live" / "other").touch()
    process = start()
    _waits(process)
    (place / "live" / "other").unlink()
    _waits(process)
    assert process.poll() is None
    (place / "live" / "data").unlink()
    assert _end(process)[0] == 0


def test_a_disk_that_is_not_there(start, place):
    (place / "live" / "data").unlink()
    assert _end(start()) == (0, "", "")
    (place / "failed" / "data").write_text("No file.\n")
    assert _end(start()) == (1, "", "data: No file.\n")


def test_it_says_why_and_does_not_wait(place):
    command = [PROGRAM, "--why", place, "data"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=DEADLINE).returncode == 0
    (place / "failed" / "data").write_text("No file.\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "data: No file.\n")


def test_it_becomes_the_command_that_stops_the_disk(start):
    process = start("sh", "-c", "echo stopped by $$")
    _waits(process)
    process.send_signal(signal.SIGTERM)
    assert _end(process) == (0, f"stopped by {process.pid}\n", "")


def test_a_command_that_is_missing(start):
    process = start("/nowhere/ublkctl")
    _waits(process)
    process.send_signal(signal.SIGTERM)
    status, _, err = _end(process)
    assert status == 1 and "ublkctl stop data" in err


def test_a_runtime_directory_that_is_made_again(start, place):
    """ublkd makes the marks again; what happens then is seen."""
    process = start()
    _waits(process)
    shutil.move(place / "live", place / "away")
    _waits(process)
    fresh = place / "fresh"
    fresh.mkdir()
    (fresh / "data").touch()
    fresh.rename(place / "live")
    _waits(process)
    assert process.poll() is None
    (place / "live" / "data").unlink()
    assert _end(process)[0] == 0


def test_wrong_use():
    assert subprocess.run([PROGRAM, "/run/ublkd", "data"], capture_output=True, check=False).returncode == 2
