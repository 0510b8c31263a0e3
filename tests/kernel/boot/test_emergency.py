# SPDX-License-Identifier: MIT
"""A boot with the disk that cannot start, in fstab without nofail: it ends in emergency mode, where these tests run."""

import os
import pathlib

import machine
from harness import console, units
from harness.api import Api
from harness.shell import run
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
    """That of the device, from the unit of the disk, and nothing else that names the path."""
    wait_until(lambda: units.state(_UNIT) == "failed", "the unit that has given up")
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    cause = api.get("missing")["status"]["cause"]
    assert str(machine.IMAGES / "missing.img") in cause
    wait_until(lambda: console.lines_of("ublkd-start"), "what the unit prints")
    assert console.lines_of("ublkd-start") == [f"missing: {cause}"]
    assert [line for line in console.text().splitlines() if "missing.img" in line and "ublkd-start[" not in line] == []


def test_the_other_disks_are_served():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    for point in (machine.REQUIRED, machine.PLAIN, machine.LOWER):
        api.wait_phase(point.name, "Live")
    assert api.phase("missing") == "Backoff"


def test_the_administrator_brings_the_file_and_goes_on():
    (machine.IMAGES / "missing.away").rename(machine.IMAGES / "missing.img")
    wait_until(lambda: units.state(_UNIT) == "active", "the unit, when the file is back")
    run("systemctl", "start", "local-fs.target", timeout=240)
    for point in (*machine.BASE, machine.MISSING):
        assert os.path.ismount(point) and (point / "written").exists()
