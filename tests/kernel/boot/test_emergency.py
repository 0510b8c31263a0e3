# SPDX-License-Identifier: MIT
"""A boot with the disk that cannot start, in fstab without nofail: it ends in emergency mode, where these tests run."""

import os
import pathlib

import machine
from harness import units
from harness.api import Api
from harness.shell import output, run
from harness.wait import wait_until

_UNIT = "ublk-disk@missing.service"


def test_the_boot_has_ended_in_emergency_mode():
    assert units.state("local-fs.target") == "inactive" and units.state("vm-command.service") == "inactive"
    assert not os.path.ismount(machine.MISSING)


def test_the_shutdown_before_went_in_order():
    """What systemd has opened and mounted itself: the volume of crypttab, and all of fstab."""
    log = pathlib.Path(os.environ["UBLKD_SECOND_LOG"]).read_text(encoding="utf-8")
    assert not machine.shutdown_faults(log)


def test_the_reason_is_on_the_console():
    """One sentence, with the path that is missing."""
    assert units.state(_UNIT) == "failed"
    assert output("systemctl", "show", "--property=StandardError", "--value", _UNIT) == "journal+console"
    lines = output("journalctl", "--no-pager", "-o", "cat", "-u", _UNIT).splitlines()
    assert [line for line in lines if str(machine.IMAGES / "missing.img") in line], lines


def test_the_other_disks_are_served():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    for point in (machine.REQUIRED, machine.PLAIN):
        api.wait_phase(point.name, "Live")
    assert api.phase("missing") == "Backoff"


def test_the_administrator_brings_the_file_and_goes_on():
    (machine.IMAGES / "missing.away").rename(machine.IMAGES / "missing.img")
    wait_until(lambda: units.state(_UNIT) == "active", "the unit, when the file is back")
    run("systemctl", "start", "local-fs.target")
    for point in (machine.REQUIRED, machine.PLAIN, machine.MISSING):
        assert os.path.ismount(point) and (point / "written").exists()
