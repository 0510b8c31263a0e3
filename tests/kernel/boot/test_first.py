# SPDX-License-Identifier: MIT
"""The first boot: disks with file systems. The machine is shut down while all of them are mounted."""

import os
import pathlib

import machine
import pytest
from harness import stacks, units
from harness.api import Api, condition_of, loop_spec
from harness.shell import run
from harness.wait import wait_until


_MIB = 1 << 20


def _make_file(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def _make(api, name, size, directory=machine.IMAGES):
    path = directory / f"{name}.img"
    _make_file(path, size)
    api.create(loop_spec(name, path))
    return f"/dev/ublk/by-name/{name}"


@pytest.mark.parametrize("kind", stacks.ALL, ids=lambda kind: kind.name)
def test_a_stack_is_made_and_stays_mounted(kind):
    """Only the shutdown stops it."""
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    stack, point = kind(), machine.STACKS[kind.name]
    stack.build([_make(api, f"{kind.name}-{number}", stacks.SIZE) for number in range(kind.disks)])
    stack.make_file_system()
    point.mkdir(exist_ok=True)
    run("mount", stack.top, point)
    (point / "written").write_text(f"on {kind.name}", encoding="utf-8")  # and never flushed


def _fill(point, path):
    """A file system on the disk at `path`, mounted, with a file."""
    run("mkfs.ext4", "-q", "-F", path)
    point.mkdir(exist_ok=True)
    run("mount", path, point)
    (point / "written").write_text(f"on {point.name}", encoding="utf-8")  # and never flushed
    wait_until(lambda: units.state(f"ublk-disk@{point.name}.service") == "active", "the unit of the disk")


def test_a_disk_of_a_file_comes_with_its_backing_file():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    name = machine.LOWER.name
    assert condition_of(api.get(name))["reason"] == "BackingFileMissing"
    _make_file(machine.IMAGES / f"{name}.img", 64 * _MIB)
    assert api.wait_phase(name, "Live")["source"] == str(machine.DESCRIPTION)
    path = f"/dev/ublk/by-name/{name}"
    wait_until(lambda: os.path.exists(path), "the link of the disk")
    _fill(machine.LOWER, path)


def test_a_disk_is_made_on_a_disk():
    _fill(machine.UPPER, _make(Api("/run/ublkd/ublkd.sock"), machine.UPPER.name, 32 * _MIB, machine.LOWER))


def _link_by_id(node):
    (link,) = [path for path in pathlib.Path("/dev/disk/by-id").glob("virtio-*") if str(path.resolve()) == node]
    return link


def test_drives_are_attached_by_a_name_that_stays_and_by_one_that_does_not():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    moved = api.create(loop_spec(machine.MOVED, "/dev/vdd"))
    assert moved["status"]["backing"]["basis"] == "serial"
    api.create(loop_spec(machine.REMOTE.name, _link_by_id("/dev/vdc")))
    _fill(machine.REMOTE, f"/dev/ublk/by-name/{machine.REMOTE.name}")


def test_the_swap_is_made_and_stays_in_use():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    path = _make(api, machine.SWAP, 8 * _MIB)
    run("mkswap", path)
    run("swapon", path)
    wait_until(lambda: units.state(f"ublk-disk@{machine.SWAP}.service") == "active", "the unit of the disk")


def test_the_disk_of_a_tenant_is_made_and_stays_mounted():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    machine.POOL.mkdir(mode=0o700)
    device = machine.tenant(api).create(machine.TENANT_SPEC)
    run("mkfs.ext4", "-q", "-F", device["status"]["device"])
    machine.TENANT.mkdir(exist_ok=True)
    run("mount", device["status"]["device"], machine.TENANT)
    (machine.TENANT / "written").write_text("on the disk of a tenant", encoding="utf-8")  # and never flushed


def test_disks_are_made_and_stay_mounted():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    gone = (machine.MISSING, machine.ABSENT)
    for point in (machine.REQUIRED, machine.PLAIN, machine.WAITING, machine.SPARE, *gone):
        _fill(point, _make(api, point.name, 32 * _MIB))
    for point in gone:
        run("umount", point)
        api.ask("POST", f"/devices/{point.name}/stop?wait=ready", 200)
        (machine.IMAGES / f"{point.name}.img").rename(machine.IMAGES / f"{point.name}.away")
