# SPDX-License-Identifier: MIT
"""One boot of several, each of which ends with a power cut under load. The ledger is on the host: it has the last number
that each writer has written and flushed."""

import os
import pathlib
import subprocess
import sys

import machine
import pytest
from harness import units
from harness.shell import output
from harness.wait import wait_until

_LEDGER = pathlib.Path(os.environ["UBLKD_LEDGER"])
_WRITES = 50  # of each writer in each boot
_POINTS = [machine.REQUIRED, machine.PLAIN]
_WRITER = """
import os, sys
numbers, ledger, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(numbers, "ab") as file, open(ledger, "wb", buffering=0) as kept:
    while True:
        number += 1
        file.write(b"%d\\n" % number)
        file.flush()
        os.fsync(file.fileno())
        os.pwrite(kept.fileno(), b"%020d" % number, 0)
"""


def _acknowledged(point):
    path = _LEDGER / point.name
    return int(path.read_text(encoding="ascii") or 0) if path.exists() else 0


def _written(point):
    path = point / "numbers"
    return [int(line) for line in path.read_text(encoding="ascii").split("\n")[:-1]] if path.exists() else []


@pytest.mark.parametrize("point", _POINTS, ids=lambda point: point.name)
def test_what_was_acknowledged_is_there(point):
    wait_until(lambda: os.path.ismount(point), "the mount of fstab")
    written = _written(point)
    assert written == list(range(1, len(written) + 1)) and len(written) >= _acknowledged(point)
    wait_until(lambda: units.state(f"ublk-disk@{point.name}.service") == "active", "the unit of the disk")


def test_no_file_system_was_damaged():
    """The journal of a file system may be replayed, and that is all."""
    assert "EXT4-fs error" not in output("dmesg")
    log = output("journalctl", "--no-pager", "-o", "cat")
    assert "UNEXPECTED INCONSISTENCY" not in log and "FIXED" not in log


def test_the_power_goes_under_load():
    """The writers go on when this test has ended, until the host ends the machine."""
    before = {}
    for point in _POINTS:
        before[point] = len(_written(point))
        subprocess.Popen([sys.executable, "-c", _WRITER, point / "numbers", _LEDGER / point.name, str(before[point])],
                         start_new_session=True)
    for point, number in before.items():
        wait_until(lambda point=point, number=number: _acknowledged(point) >= number + _WRITES, "numbers in the ledger")
