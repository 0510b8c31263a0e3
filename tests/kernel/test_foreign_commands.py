# SPDX-License-Identifier: MIT
"""Commands of other programs to a disk of ublkd, between two commands of ublkd.

ublkd-mortal is stopped before the command that makes the disk live; then the
other program sends its command, and ublkd goes on. On 6.12 the driver has taken
the queues from the worker by then, and makes the disk live all the same.
"""

import os
import signal

import pytest

from harness import programs, ublk
from harness.api import loop_spec
from harness.disk import Disk, block
from harness.halt import wait_halted
from harness.marks import variants
from harness.shell import run


@pytest.fixture
def stopping(make_daemon, directory, monkeypatch):
    """A daemon, and where to write before which operation it is stopped."""
    at = directory / "stop-before"
    monkeypatch.setenv("UBLKD_DIE_FILE", str(at))
    return make_daemon(program=programs.ublkd_mortal()).start(), at


@pytest.mark.long
@pytest.mark.parametrize("commands", [*variants("stop", "del"), "stop del"])
def test_a_disk_that_is_taken_away_before_it_is_live_is_made_again(stopping, file_of, commands):
    daemon, at = stopping
    path = file_of(size=8 << 20)
    at.write_text("START_DEV", encoding="ascii")
    daemon.api.create(loop_spec("data", path), wait=False)
    pid = daemon.process.pid
    assert wait_halted(pid) and not at.exists()
    (number,) = ublk.numbers()
    for command in commands.split():
        run(programs.stranger(), command, number)
    os.kill(pid, signal.SIGCONT)
    disk = Disk(daemon.api.wait_phase("data", "Live")["status"]["id"])
    disk.write(0, block("w"))
    assert disk.read(0, 4096) == block("w")
    assert ublk.numbers() == [disk.number]
    daemon.api.delete("data")
