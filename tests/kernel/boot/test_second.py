# SPDX-License-Identifier: MIT
"""The second boot: fstab names the disks."""

import os
import pathlib
import re

import machine
import pytest
from harness import units
from harness.api import Api
from harness.shell import output
from harness.wait import wait_until

_UNIT = "ublk-disk@{}.service"


@pytest.mark.parametrize("point", [machine.REQUIRED, machine.PLAIN, *machine.STACKS.values()], ids=lambda point: point.name)
def test_a_file_system_of_fstab_is_mounted(point):
    """Before local-fs.target, after which the tests start. LUKS is opened by crypttab, LVM and MD by events of udev."""
    assert os.path.ismount(point)
    assert (point / "written").read_text(encoding="utf-8") == f"on {point.name}"


@pytest.mark.parametrize("point", [machine.REQUIRED, machine.PLAIN], ids=lambda point: point.name)
def test_the_unit_of_a_disk_of_fstab_is_active(point):
    wait_until(lambda: units.state(_UNIT.format(point.name)) == "active", "the unit of the disk")


def test_the_shutdown_went_in_order():
    log = pathlib.Path(os.environ["UBLKD_FIRST_LOG"]).read_text(encoding="utf-8")
    assert not machine.shutdown_faults(log)


def test_nothing_had_to_be_recovered():
    """The kernel may drop the line of a mount while it prints that of another one (___ratelimit(), lib/ratelimit.c)."""
    for point in ("/var/lib/ublkd", machine.IMAGES, machine.REQUIRED, machine.PLAIN, *machine.STACKS.values()):
        assert os.path.ismount(point), point
    log = output("dmesg")
    assert re.search(r"EXT4-fs \(\w+\): mounted filesystem", log)
    assert "recovery complete" not in log and "orphan cleanup" not in log


def test_the_boot_went_on_without_the_disk_that_cannot_start():
    """Its unit failed with the reason, its mount with it, and ublkd tries on."""
    wait_until(lambda: units.state(_UNIT.format("missing")) == "failed", "the unit that has given up")
    assert not os.path.ismount(machine.MISSING)
    command = ("journalctl", "--no-pager", "-o", "cat", "-u", _UNIT.format("missing"))
    wait_until(lambda: str(machine.IMAGES / "missing.img") in output(*command), "the reason in the journal")
    assert units.state("local-fs.target") == "active"
    device = Api("/run/ublkd/ublkd.sock").get("missing")
    assert device["status"]["phase"] == "Backoff", "a stop ends with the boot"
    (machine.IMAGES / "missing.away").rename(machine.IMAGES / "missing.img")
    wait_until(lambda: units.state(_UNIT.format("missing")) == "active", "the unit, when the file is back")


def test_systemd_complains_of_nothing_else():
    failed = {line.split()[0] for line in output("systemctl", "list-units", "--failed", "--plain", "--no-legend").splitlines()}
    assert failed <= {"srv-missing.mount", "systemd-fsck@dev-ublk-by\\x2dname-missing.service"}, failed
    assert pathlib.Path("/run/ublkd/live/required").exists()


def test_the_file_goes_away_again():
    """For the next boot."""
    Api("/run/ublkd/ublkd.sock").ask("POST", "/devices/missing/stop?wait=ready", 200)
    (machine.IMAGES / "missing.img").rename(machine.IMAGES / "missing.away")
    os.sync()
