# SPDX-License-Identifier: MIT
"""A boot with two disks that cannot start, in fstab without nofail, and two lines with names that no device has: it ends in
emergency mode, where these tests run."""

import os
import pathlib

import machine
import pytest
from harness import console, units
from harness.api import Api
from harness.shell import output, run
from harness.wait import wait_until

_UNIT = "ublk-disk@missing.service"
_GONE = [machine.MISSING, machine.ABSENT]


def test_the_boot_has_ended_in_emergency_mode():
    assert units.state("local-fs.target") == "inactive" and units.state("vm-command.service") == "inactive"


@pytest.mark.parametrize("point", _GONE, ids=lambda point: point.name)
def test_a_file_system_that_is_missing_is_reason_enough(point):
    """Each alone: the target of the boot requires its mount, which has failed."""
    mount = f"srv-{point.name}.mount"
    wait_until(lambda: output("systemctl", "show", "-p", "Job", "--value", mount).strip() in ("", "0"), "the end of the wait for the disk")
    assert units.state(mount) == "inactive" and not os.path.ismount(point)
    assert "local-fs.target" in output("systemctl", "show", "-p", "RequiredBy", "--value", mount).split()


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
    wait_until(lambda: console.lines_of("ublkd-start", "missing: "), "what the unit prints")
    assert console.lines_of("ublkd-start", "missing: ") == [f"missing: {cause}"]
    assert [line for line in console.text().splitlines() if "missing.img" in line and "ublkd-start[" not in line] == []


def test_the_reason_of_a_plain_line_is_on_the_console():
    """That of the device again; no unit of the disk was started."""
    cause = Api("/run/ublkd/ublkd.sock").get("absent")["status"]["cause"]
    assert str(machine.IMAGES / "absent.img") in cause
    wait_until(lambda: console.lines_of("ublkd-reason", "absent: ") == [f"absent: {cause}"], lambda: console.lines_of("ublkd-reason"))
    assert units.state("ublk-disk@absent.service") == "inactive"


def test_a_mistyped_name_is_on_the_console():
    """Of a plain line, and of one that names the unit of the disk."""
    line = "mistyped: There is no device with this name"
    wait_until(lambda: console.lines_of("ublkd-reason", "mistyped: "), "what ublkd-reason prints")
    assert [printed.startswith(line) for printed in console.lines_of("ublkd-reason", "mistyped: ")] == [True]
    wait_until(lambda: units.state("ublk-disk@slip.service") == "failed", "the unit that has given up")
    line = "ublkctl: slip: No device has this name."
    wait_until(lambda: console.lines_of("ublkd-start", line) == [line], lambda: console.lines_of("ublkd-start"))
    assert not console.lines_of("ublkd-reason", "slip: ")


def test_the_other_disks_are_served():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    for point in (machine.REQUIRED, machine.PLAIN, machine.LOWER):
        api.wait_phase(point.name, "Live")
    assert [api.phase(point.name) for point in _GONE] == ["Backoff", "Backoff"]


def test_the_administrator_brings_the_files_corrects_the_names_and_goes_on():
    for point in _GONE:
        (machine.IMAGES / f"{point.name}.away").rename(machine.IMAGES / f"{point.name}.img")
    for point in _GONE:
        wait_until(lambda name=point.name: units.state(f"ublk-disk@{name}.service") == "active", "the unit, when the file is back")
    machine.correct_slips()
    run("systemctl", "start", "local-fs.target", timeout=480)
    machine.wait_mounted(machine.WAITING)
    for point in (*machine.MOUNTED, *_GONE):
        assert os.path.ismount(point) and (point / "written").exists()
