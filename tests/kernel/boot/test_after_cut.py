# SPDX-License-Identifier: MIT
"""What is there after a power cut under load: all disks, all that was flushed, and no damage."""

import os
import pathlib

import ledger
import machine
import pytest
from harness import stacks, units
from harness.api import Api
from harness.shell import output, run
from harness.wait import wait_until

_SINGLE = [machine.REQUIRED, machine.PLAIN, machine.WAITING]


def test_the_boot_went_to_its_end():
    """A mount of fstab that fails would end it in emergency mode, where these tests would run as well."""
    assert units.state("local-fs.target") == "active" and units.state("swap.target") == "active"
    assert units.state("emergency.target") == units.state("emergency.service") == "inactive"
    assert len(machine.swaps()) == 1


@pytest.mark.parametrize("point", machine.BASE, ids=lambda point: point.name)
def test_the_boot_has_waited_for_a_mount(point):
    assert os.path.ismount(point)


@pytest.mark.parametrize("point", machine.MOUNTED, ids=lambda point: point.name)
def test_what_was_flushed_is_there(point):
    machine.wait_mounted(point)
    assert not ledger.losses(point)


def test_the_units_of_all_disks_are_active():
    for name in machine.DISKS:
        wait_until(lambda unit=f"ublk-disk@{name}.service": units.state(unit) == "active", f"the unit of {name}")


def test_no_file_system_was_damaged():
    """The journal of a file system may be replayed, and that is all."""
    log = output("dmesg")
    assert "EXT4-fs error" not in log and "BTRFS error" not in log
    log = output("journalctl", "--no-pager", "-o", "cat")
    assert "UNEXPECTED INCONSISTENCY" not in log and "FIXED" not in log


def _check(point, path):
    """The check of the boot ends with the journal; this is the whole one."""
    run("umount", point)
    run("fsck.ext4", "-f", "-n", path)
    run("mount", point)


@pytest.mark.parametrize("point", _SINGLE, ids=lambda point: point.name)
def test_a_full_check_finds_nothing(point):
    _check(point, f"/dev/ublk/by-name/{point.name}")


def test_a_full_check_of_both_levels_finds_nothing():
    api = Api("/run/ublkd/ublkd.sock")
    upper, lower = (f"/dev/ublk/by-name/{point.name}" for point in (machine.UPPER, machine.LOWER))
    run("umount", machine.UPPER)
    run("fsck.ext4", "-f", "-n", upper)
    run("udevadm", "settle")  # while udev looks at the disk, it is in use
    api.ask("POST", f"/devices/{machine.UPPER.name}/stop?wait=ready", 200)
    _check(machine.LOWER, lower)
    api.ask("POST", f"/devices/{machine.UPPER.name}/start?wait=ready", 200)
    wait_until(pathlib.Path(upper).exists, "the link of the disk")
    run("mount", machine.UPPER)


@pytest.mark.parametrize("kind", stacks.ALL, ids=lambda kind: kind.name)
def test_a_full_check_of_a_stack_finds_nothing(kind):
    """Of MD also that it has both disks, of btrfs the sums of all data."""
    point = machine.STACKS[kind.name]
    run("umount", point)
    kind().check()
    run("mount", point)
