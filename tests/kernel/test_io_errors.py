# SPDX-License-Identifier: MIT
"""A request that fails is shown: where, when, why, over the deaths of workers and of ublkd. Little room below a sparse
file is shown before a write fails."""

import errno
import os
import time

import pytest

from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.event_database import wait_written
from harness.kernel_disks import bad_disk, detach_loop
from harness.shell import output, run

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_SIZE = 64 * _MIB
_BAD = 32 * _MIB  # from here on 4 MiB fail


@pytest.fixture
def bad(directory):
    """A drive with bad blocks in its middle; name it before `daemon`, which must release it first."""
    with bad_disk("bad", directory / "drive.img", _SIZE, (_BAD, _BAD + 4 * _MIB)) as path:
        yield path


def _fails(function, *arguments):
    with pytest.raises(OSError) as caught:
        function(*arguments)
    assert caught.value.errno == errno.EIO


def _errors(device):
    return {error["op"]: error for error in device["status"]["ioErrors"]}


def _count(daemon, reason):
    return sum(event["count"] for event in daemon.events("data") if event["reason"] == reason)


def test_read_and_write_errors_are_seen(bad, daemon):
    disk = Disk(daemon.api.create(loop_spec("data", bad, queues=2))["status"]["id"])
    disk.write(0, block("a"))
    assert daemon.api.get("data")["status"]["ioErrors"] == []
    _fails(disk.write, _BAD + _MIB, block("w"))
    _fails(disk.read, _BAD, 4096)
    device = daemon.api.wait_for("data", lambda device: len(_errors(device)) == 2, "with both errors")
    errors, shown = _errors(device), condition_of(device, "ErrorFree")
    assert [errors["read"][key] for key in ("errno", "count", "offset", "length")] == ["EIO", 1, _BAD, 4096]
    assert [errors["write"][key] for key in ("errno", "count", "offset", "length")] == ["EIO", 1, _BAD + _MIB, 4096]
    assert (shown["status"], shown["reason"]) == ("False", "WriteFailed") and device["status"]["phase"] == "Live"
    assert _count(daemon, "WriteFailed") == 1
    text = daemon.api.request("GET", "/metrics").text
    for op in ("read", "write"):
        assert f'ublkd_device_io_errors_by_errno_total{{device="data",op="{op}",errno="EIO"}} 1\n' in text
    described = daemon.ctl("describe", "data")
    assert f"write of 4096 bytes at byte {_BAD + _MIB}: EIO" in described and "WriteFailed" in daemon.ctl("list")
    began = time.monotonic()
    for _ in range(200):  # no flood of events
        _fails(disk.read, _BAD, 4096)
    daemon.api.wait_for("data", lambda device: _errors(device)["read"]["count"] == 201, "with all errors")
    minutes = (time.monotonic() - began) // 60
    assert _count(daemon, "WriteFailed") == 1 and _count(daemon, "ReadFailed") <= 2 + minutes  # one in a minute


def test_errors_are_kept_over_deaths(bad, daemon):
    disk = Disk(daemon.api.create(loop_spec("data", bad, queues=2))["status"]["id"])
    _fails(disk.write, _BAD + _MIB, block("w"))
    daemon.api.wait_for("data", lambda device: "write" in _errors(device), "with its error")
    assert _count(daemon, "WriteFailed") == 1
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    assert _errors(daemon.api.get("data"))["write"]["count"] == 1
    daemon.kill()
    daemon.start()
    daemon.api.wait_for("data", lambda device: _errors(device).get("write", {}).get("count") == 1, "with its error")
    assert _count(daemon, "WriteFailed") == 1
    assert disk.read(0, 4096) == bytes(4096)


@pytest.mark.variant
def test_the_event_is_not_lost_with_ublkd(bad, daemon):
    """ublkd writes events up to a second later; it is killed before, and once after."""
    disk = Disk(daemon.api.create(loop_spec("data", bad, queues=2))["status"]["id"])
    _fails(disk.write, _BAD + _MIB, block("w"))
    daemon.api.wait_for("data", lambda device: "write" in _errors(device), "with its error")
    daemon.kill()
    daemon.start()
    daemon.api.wait_for("data", lambda device: "write" in _errors(device), "with its error")
    assert _count(daemon, "WriteFailed") == 1
    _fails(disk.read, _BAD, 4096)
    daemon.api.wait_for("data", lambda device: "read" in _errors(device), "with both errors")
    wait_written(daemon, "ReadFailed", 1)
    daemon.kill()
    daemon.start()
    daemon.api.wait_for("data", lambda device: len(_errors(device)) == 2, "with both errors")
    assert _count(daemon, "WriteFailed") == 1 and _count(daemon, "ReadFailed") == 1


@pytest.fixture
def small(directory):
    """A file system of 64 MiB."""
    mount, image = directory / "small", directory / "small.img"
    mount.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 * _MIB)
    loop = output("losetup", "--find", "--show", image)
    run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", loop)
    run("mount", loop, mount)
    yield mount
    run("umount", mount)
    detach_loop(loop)


def _fill(path, left):
    room = os.statvfs(path.parent)
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - left)


@pytest.mark.storm
def test_little_room_is_shown_before_a_write_fails(small, daemon):
    store, filler = small / "disk.img", small / "filler"
    with open(store, "wb") as file:
        file.truncate(_SIZE)
    disk = Disk(daemon.api.create(loop_spec("data", store))["status"]["id"])
    disk.write(0, block("a"))
    assert condition_of(daemon.api.get("data"), "Space") is None
    _fill(filler, _MIB)

    def low(device):
        return (condition_of(device, "Space") or {}).get("reason") == "StoreLow"

    device = daemon.api.wait_for("data", low, "with little room", timeout=120)
    assert condition_of(device, "Space")["observedAt"] >= condition_of(device, "Ready")["lastTransitionTime"]
    assert daemon.metric("ublkd_device_store_low", "data") == 1 and daemon.metric("ublkd_device_store_full", "data") == 0
    assert _count(daemon, "StoreLow") == 1 and _count(daemon, "StoreFull") == 0
    assert daemon.api.get("data")["status"]["ioErrors"] == []
    filler.unlink()
    daemon.api.wait_for("data", lambda device: condition_of(device, "Space") is None, "with room", timeout=120)
    assert _count(daemon, "StoreNotLow") == 1
