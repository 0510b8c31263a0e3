# SPDX-License-Identifier: MIT
"""A backing store without room for a write: the error is shown, or with onFull "wait" the write waits."""

import contextlib
import errno
import os
import re

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec
from harness.disk import Disk, block, write
from harness.kernel_disks import detach_loop, dm_thin
from harness.marks import variants
from harness.shell import output, run
from harness.silent_fs import silent_fs
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_SIZE = 64 * _MIB
_FAR = 32 * _MIB  # where nothing is allocated


class _SmallStore:
    """A sparse file in a file system of 16 MiB, which a second file can fill."""

    def __init__(self, mount):
        self.path = mount / "disk.img"
        self._filler = mount / "filler"
        with open(self.path, "wb") as file:
            file.truncate(_SIZE)

    def fill(self):
        """Leave no block free."""
        with open(self._filler, "wb", buffering=0) as file:
            for size in (64 << 10, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
            os.fsync(file.fileno())

    def make_room(self):
        """Take the second file away."""
        self._filler.unlink()

    def grow(self, size):
        """Give it another size."""
        os.truncate(self.path, size)


class _ThinStore:
    """A thin volume, in a pool of 16 MiB that a second one can fill."""

    def __init__(self, volumes):
        self.path, self._filler = volumes

    def fill(self):
        """Leave no chunk free."""
        with contextlib.suppress(OSError):
            for offset in range(0, _SIZE, 64 << 10):
                write(self._filler, offset, block("f", 64 << 10))

    def make_room(self):
        """Discard the second volume; the pool accepts writes again once it has committed that."""
        run("blkdiscard", self._filler)
        wait_until(lambda: " rw " in output("dmsetup", "status", "small"), "a pool with room")

    def grow(self, size):
        """Give it another size."""
        name = os.path.basename(self.path)
        run("dmsetup", "reload", name, "--table", f"0 {size // 512} thin /dev/mapper/small 0")
        run("dmsetup", "resume", name)


@pytest.fixture(params=["ext4", *variants("tmpfs", "thin pool")])
def small(request, directory):
    """A small store; name it before `daemon`, which must release it first."""
    if request.param == "thin pool":
        with dm_thin("small", directory, 16 * _MIB, _SIZE) as volumes:
            yield _ThinStore(volumes)
        return
    mount = directory / "small"
    mount.mkdir()
    if request.param == "tmpfs":
        run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", mount)
        yield _SmallStore(mount)
        run("umount", mount)
        return
    image = directory / "small.img"
    with open(image, "wb") as file:
        file.truncate(16 * _MIB)
    loop = output("losetup", "--find", "--show", image)
    run("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", loop)
    run("mount", loop, mount)
    yield _SmallStore(mount)
    run("umount", mount)
    detach_loop(loop)


def _serve(daemon, store, **more):
    disk = Disk(daemon.api.create(loop_spec("data", store.path, queues=2, **more))["status"]["id"])
    disk.write(0, block("a"))
    return disk


def _count(daemon, reason):
    return sum(event["count"] for event in daemon.events("data") if event["reason"] == reason)


def _is_full(device):
    """StoreLow may come before, and go after it."""
    return (condition_of(device, "Space") or {}).get("reason") == "StoreFull"


def _wait_full(daemon):
    device = daemon.api.wait_for("data", _is_full, "with a full store")
    assert condition_of(device, "Space")["status"] == "False" and device["status"]["phase"] == "Live"
    assert daemon.metric("ublkd_device_store_full", "data") == 1


def _wait_room(daemon, disk, offset=_FAR + _MIB):
    """Writes succeed again, which ends it after a while."""

    def well():
        disk.write(offset, block("r"))
        return not _is_full(daemon.api.get("data"))

    wait_until(well, "room again")
    assert _count(daemon, "StoreHasRoom") == 1
    assert daemon.metric("ublkd_device_store_full", "data") == 0


def _assert_full_event(daemon, fate, place=r"\d+"):
    """One event, with the first write that found no room, and none beside it."""
    (full,) = [event for event in daemon.events("data") if event["reason"] == "StoreFull"]
    assert full["count"] == 1 and _count(daemon, "WriteFailed") == 0
    assert fate in full["message"] and "ENOSPC" in full["message"]
    assert re.search(rf"\b4096\b.*\b{place}\b", full["message"])


def _begin_to_wait(daemon, disk, count=4):
    """Writes that find no room; reads and other writes go on."""
    writes = [disk.write_later(_FAR + number * _MIB, block("w")) for number in range(count)]
    wait_until(lambda: daemon.metric("ublkd_device_writes_waiting", "data") == count, f"{count} writes that wait")
    assert disk.read(0, 4096) == block("a")
    disk.write(0, block("a"))
    _wait_full(daemon)
    assert not any(write.done for write in writes)
    return writes


def _assert_written(disk, writes):
    assert [write.result() for write in writes] == [None] * len(writes)
    for number in range(len(writes)):
        assert disk.read(_FAR + number * _MIB, 4096) == block("w")


def test_an_error_is_reported(small, daemon):
    disk = _serve(daemon, small)
    small.fill()
    for _ in range(3):
        with pytest.raises(OSError) as caught:
            disk.write(_FAR, block("w"))
        assert caught.value.errno == errno.ENOSPC
    _wait_full(daemon)
    (failed,) = daemon.api.get("data")["status"]["ioErrors"]
    assert (failed["op"], failed["errno"], failed["offset"], failed["length"]) == ("write", "ENOSPC", _FAR, 4096)
    _assert_full_event(daemon, "onFull is \"error\"", _FAR)
    assert disk.read(0, 4096) == block("a")
    disk.flush()
    small.make_room()
    space = condition_of(daemon.api.get("data"), "Space")
    assert (space["status"], space["reason"]) == ("False", "StoreFull"), "until a write finds room"
    _wait_room(daemon, disk)


@pytest.mark.parametrize("small", ["tmpfs", "ext4", *variants("thin pool")], indirect=True)
def test_writes_wait_for_room(small, daemon):
    disk = _serve(daemon, small, onFull="wait")
    small.fill()
    writes = _begin_to_wait(daemon, disk)
    _assert_full_event(daemon, "onFull is \"wait\"")
    small.make_room()
    _assert_written(disk, writes)
    _wait_room(daemon, disk)
    assert daemon.metric("ublkd_device_writes_waiting", "data") == 0


def test_they_wait_over_deaths_and_a_restart(small, daemon):
    disk = _serve(daemon, small, onFull="wait")
    small.fill()
    writes = _begin_to_wait(daemon, disk)
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    wait_until(lambda: daemon.metric("ublkd_device_writes_waiting", "data") == 4, "4 writes that wait again")
    daemon.kill()
    daemon.start()
    daemon.api.restart("data")
    wait_until(lambda: daemon.metric("ublkd_device_writes_waiting", "data") == 4, "4 writes that wait again")
    assert not any(write.done for write in writes)
    small.make_room()
    _assert_written(disk, writes)


def test_a_removal_ends_the_waiting(small, daemon):
    disk = _serve(daemon, small, onFull="wait")
    small.fill()
    writes = _begin_to_wait(daemon, disk)
    daemon.api.delete("data", force=True)
    assert all(write.result() in ("ENOSPC", "EIO") for write in writes)


def test_a_changed_spec_ends_the_waiting(small, daemon):
    disk = _serve(daemon, small, onFull="wait")
    small.fill()
    writes = _begin_to_wait(daemon, disk)
    pid = daemon.worker_pid("data")
    daemon.api.put(loop_spec("data", small.path, queues=2, onFull="error"))
    assert [write.result() for write in writes] == ["ENOSPC"] * len(writes)
    assert daemon.worker_pid("data") == pid


def test_the_disk_can_grow_meanwhile(small, daemon):
    disk = _serve(daemon, small, onFull="wait")
    small.fill()
    writes = _begin_to_wait(daemon, disk)
    small.grow(2 * _SIZE)
    grown = loop_spec("data", small.path, queues=2, onFull="wait", size=2 * _SIZE)
    if ublk.features()["UPDATE_SIZE"]:
        daemon.api.put(grown)
        assert disk.size() == 2 * _SIZE
    else:
        daemon.api.put(grown, status=409)
    small.make_room()
    _assert_written(disk, writes)


@pytest.mark.parametrize("on_full", ["error", "wait"])
def test_a_quota(daemon, directory, on_full):
    """EDQUOT is not an error that a disk can have: its clients get the one of a disk without room."""
    with silent_fs(directory / "fuse") as server:
        server.set_room(64 << 10)
        disk = Disk(daemon.api.create(loop_spec("data", server.path, onFull=on_full))["status"]["id"])
        disk.write(0, block("a"))
        late = disk.write_later(128 << 10, block("w"))
        _wait_full(daemon)
        if on_full == "error":
            assert late.result() == "ENOSPC"
        else:
            assert not late.done
        server.set_room(256 << 10)
        if on_full == "wait":
            assert late.result() is None and disk.read(128 << 10, 4096) == block("w")
        _wait_room(daemon, disk, 192 << 10)
        daemon.api.delete("data")
