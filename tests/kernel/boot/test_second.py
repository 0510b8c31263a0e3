# SPDX-License-Identifier: MIT
"""The second boot: fstab names the disks."""

import json
import os
import pathlib
import re

import machine
import pytest
from harness import console, units
from harness.api import Api, condition_of, null_spec
from harness.shell import output, run
from harness.wait import wait_until

_UNIT = "ublk-disk@{}.service"
_WITH_A_UNIT = [machine.REQUIRED, machine.PLAIN, machine.WAITING, machine.LOWER, machine.UPPER]


def _active_since(unit):
    """In microseconds since the boot; 0: it was not active."""
    return int(output("systemctl", "show", "-p", "ActiveEnterTimestampMonotonic", "--value", unit))


@pytest.mark.parametrize("point", machine.BASE, ids=lambda point: point.name)
def test_a_file_system_of_fstab_is_mounted(point):
    """Before local-fs.target, after which the tests start. LUKS is opened by crypttab, LVM and MD by events of udev. The
    disk in a file on a disk comes when that one is mounted."""
    assert os.path.ismount(point)
    assert (point / "written").read_text(encoding="utf-8") == f"on {point.name}"


def test_a_file_system_with_nofail_is_mounted():
    """By the line that ublkd.service(8) shows. local-fs.target wants it and does not wait for it."""
    machine.wait_mounted(machine.WAITING)
    assert (machine.WAITING / "written").read_text(encoding="utf-8") == f"on {machine.WAITING.name}"
    for relation, is_there in (("WantedBy", True), ("RequiredBy", False), ("Before", False)):
        named = output("systemctl", "show", "-p", relation, "--value", "srv-waiting.mount").split()
        assert ("local-fs.target" in named) == is_there, (relation, named)


@pytest.mark.parametrize("point", _WITH_A_UNIT, ids=lambda point: point.name)
def test_the_unit_of_a_disk_of_fstab_is_active(point):
    wait_until(lambda: units.state(_UNIT.format(point.name)) == "active", "the unit of the disk")


def test_a_disk_of_a_file_is_there_again():
    device = Api("/run/ublkd/ublkd.sock").wait_phase(machine.LOWER.name, "Live")
    assert device["source"] == str(machine.DESCRIPTION)


def test_drives_that_changed_places_are_found_or_refused():
    """The one that is named by its serial number is served; that of the name that another one has now is not."""
    api = Api("/run/ublkd/ublkd.sock")
    path = api.wait_phase(machine.REMOTE.name, "Live")["spec"]["target"]["path"]
    assert str(pathlib.Path(path).resolve()) == "/dev/vdd", "the drives have changed places"
    moved = api.wait_phase(machine.MOVED, "Live", "Failed", "Backoff")
    assert moved["status"]["device"] is None, "another drive is served in its place"
    assert (moved["status"]["phase"], condition_of(moved)["reason"]) == ("Failed", "BackingChanged")


def test_a_file_of_the_administrator_counts_before_one_of_this_boot():
    """One in /run changes nothing if /etc has one of its name; another one comes and goes with a reload."""
    api = Api("/run/ublkd/ublkd.sock")
    before = api.get(machine.LOWER.name)
    directory = pathlib.Path("/run/ublkd/devices.d")
    directory.mkdir(mode=0o755)
    hidden, passing = directory / machine.DESCRIPTION.name, directory / "passing.json"
    hidden.write_text(json.dumps({**before["spec"], "labels": {"from": "run"}}), encoding="utf-8")
    passing.write_text(json.dumps(null_spec("passing")), encoding="utf-8")
    run("systemctl", "reload", "ublkd.service")
    wait_until(lambda: "passing" in api.names(), "the device of the new file")
    assert api.wait_phase("passing", "Live")["source"] == str(passing)
    wait_until(lambda: os.path.exists("/dev/ublk/by-name/passing"), "the link of the disk")
    run("udevadm", "settle")  # while udev looks at the disk, it is in use
    after = api.get(machine.LOWER.name)
    assert (after["source"], after["spec"]) == (before["source"], before["spec"])
    passing.unlink()
    hidden.unlink()
    run("systemctl", "reload", "ublkd.service")
    wait_until(lambda: "passing" not in api.names(), "the end of the device whose file is gone")


def test_the_disk_of_a_tenant_is_there_again():
    """It is mounted at the shutdown after these tests, too."""
    device = Api("/run/ublkd/ublkd.sock").wait_phase(machine.TENANT_SPEC["name"], "Live")
    assert device["tenant"] and device["status"]["links"] == []
    machine.TENANT.mkdir(exist_ok=True)
    run("mount", device["status"]["device"], machine.TENANT)
    assert (machine.TENANT / "written").read_text(encoding="utf-8") == "on the disk of a tenant"


def test_the_swap_of_fstab_is_in_use():
    """Before swap.target, which waits for the disk as it does for others."""
    device = Api("/run/ublkd/ublkd.sock").wait_phase(machine.SWAP, "Live")
    assert machine.swaps() == [device["status"]["device"]]
    assert units.state(machine.SWAP_UNIT) == "active" and units.state("swap.target") == "active"
    disk = _active_since(output("systemd-escape", "--path", "--suffix=device", f"/dev/ublk/by-name/{machine.SWAP}"))
    assert 0 < disk <= _active_since(machine.SWAP_UNIT) <= _active_since("swap.target")


def test_a_file_system_that_needs_the_network_is_mounted():
    """For remote-fs.target, for which local-fs.target does not wait."""
    wait_until(lambda: units.state("remote-fs.target") == "active", "the target of its mount")
    assert os.path.ismount(machine.REMOTE)
    assert (machine.REMOTE / "written").read_text(encoding="utf-8") == f"on {machine.REMOTE.name}"
    mount = "srv-remote.mount"
    assert output("systemctl", "show", "-p", "RequiredBy", "--value", mount) == "remote-fs.target"
    assert 0 < _active_since("network-online.target") <= _active_since(mount) <= _active_since("remote-fs.target")


def test_the_shutdown_went_in_order():
    log = pathlib.Path(os.environ["UBLKD_FIRST_LOG"]).read_text(encoding="utf-8")
    assert not machine.shutdown_faults(log)


def test_nothing_had_to_be_recovered():
    """The kernel may drop the line of a mount while it prints that of another one (___ratelimit(), lib/ratelimit.c)."""
    for point in ("/var/lib/ublkd", machine.IMAGES, machine.POOL.parent, machine.TENANT, *machine.MOUNTED):
        assert os.path.ismount(point), point
    log = output("dmesg")
    assert re.search(r"EXT4-fs \(\w+\): mounted filesystem", log)
    assert "recovery complete" not in log and "orphan cleanup" not in log


def test_the_boot_went_on_without_the_disk_that_cannot_start():
    """Its unit failed with the reason, which is on the console, its mount with it, and ublkd tries on."""
    wait_until(lambda: units.state(_UNIT.format("missing")) == "failed", "the unit that has given up")
    assert not os.path.ismount(machine.MISSING)
    command = ("journalctl", "--no-pager", "-o", "cat", "-u", _UNIT.format("missing"))
    wait_until(lambda: str(machine.IMAGES / "missing.img") in output(*command), "the reason in the journal")
    assert units.state("local-fs.target") == "active"
    device = Api("/run/ublkd/ublkd.sock").get("missing")
    assert device["status"]["phase"] == "Backoff", "a stop ends with the boot"
    line = f"missing: {device['status']['cause']}"
    wait_until(lambda: console.lines_of("ublkd-start") == [line], lambda: console.lines_of("ublkd-start"))
    (machine.IMAGES / "missing.away").rename(machine.IMAGES / "missing.img")
    wait_until(lambda: units.state(_UNIT.format("missing")) == "active", "the unit, when the file is back")


def test_the_boot_went_on_without_the_disk_of_a_plain_line():
    """With nofail and no unit of the disk: its mount has waited for the link, the reason is on the console, and ublkd tries on."""
    assert units.state("local-fs.target") == "active" and not os.path.ismount(machine.ABSENT)
    wait_until(lambda: units.state("srv-absent.mount") in ("inactive", "failed"), "the end of the wait for the link")
    device = Api("/run/ublkd/ublkd.sock").get("absent")
    assert (device["status"]["phase"], condition_of(device)["reason"]) == ("Backoff", "BackingFileMissing")
    line = f"absent: {device['status']['cause']}"
    wait_until(lambda: console.lines_of("ublkd-reason", "absent: ") == [line], lambda: console.lines_of("ublkd-reason"))


def test_systemd_complains_of_nothing_else():
    failed = {line.split()[0] for line in output("systemctl", "list-units", "--failed", "--plain", "--no-legend").splitlines()}
    mounts = {f"srv-{name}.mount" for name in ("missing", "absent")}
    checks = {f"systemd-fsck@dev-ublk-by\\x2dname-{name}.service" for name in ("missing", "absent")}
    assert failed <= mounts | checks, failed
    assert pathlib.Path("/run/ublkd/live/required").exists()


def test_the_file_goes_away_again():
    """For the next boot."""
    Api("/run/ublkd/ublkd.sock").ask("POST", "/devices/missing/stop?wait=ready", 200)
    (machine.IMAGES / "missing.img").rename(machine.IMAGES / "missing.away")
    os.sync()
