# SPDX-License-Identifier: MIT
"""After a failed flush every later one fails, whichever process dies, until the administrator accepts the loss."""

import errno
import os
import shutil
import threading

import pytest

from harness.api import condition_of, loop_spec
from harness.disk import BLKDISCARD, Background, Disk, block, write, zero
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_BLOCK = 4096


def _spec(store, **more):
    """A disk whose writes stay in the page cache until they are flushed."""
    return loop_spec("data", store.path, {"directIo": "off"}, queues=1, **more)


def _error(function, *arguments):
    """The name of the error of an I/O call, or None."""
    try:
        function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


def _write_durably(disk, offset=0):
    """A write with FUA, where the disk has it."""
    write(disk.path, offset, block("f"), os.O_DIRECT | os.O_DSYNC)


def _lose(disk, store, offset=0):
    """Acknowledge a write that never gets to the store, and have a flush find that."""
    disk.write(offset, block("a"))
    with store.failing():
        assert _error(disk.flush) == "EIO"


def _assert_lost(daemon, disk):
    """Flushes fail, and all other I/O works."""
    assert _error(disk.flush) == "EIO" and _error(_write_durably, disk) == "EIO"
    disk.write(64 << 10, block("w"))
    assert disk.read(64 << 10, _BLOCK) == block("w")

    def shown(device):
        return condition_of(device, "Durable") is not None

    device = daemon.api.wait_for("data", shown, "with a condition Durable")
    durable = condition_of(device, "Durable")
    assert durable["status"] == "False" and durable["reason"] == "FlushFailed" and device["status"]["writeErrors"] in durable["message"]
    assert device["status"]["phase"] == "Live"
    assert daemon.metric("ublkd_device_flush_failed", "data") == 1
    assert len([event for event in daemon.events("data") if event["reason"] == "FlushFailed"]) == 1
    assert "FlushFailed" in daemon.ctl("describe", "data")


def _assert_well(daemon, disk):
    assert _error(disk.flush) is None and _error(_write_durably, disk) is None
    device = daemon.api.get("data")
    assert condition_of(device, "Durable") is None and device["status"]["phase"] == "Live"
    assert daemon.metric("ublkd_device_flush_failed", "data") == 0


def _accept(daemon):
    token = daemon.api.get("data")["status"]["writeErrors"]
    daemon.ctl("restart", f"--accept-write-errors={token}", "data")


def test_a_second_flush_does_not_succeed(store, daemon):
    """The kernel reports a failed write to one fdatasync() only."""
    disk = Disk(daemon.api.create(_spec(store))["status"]["id"])
    _assert_well(daemon, disk)
    _lose(disk, store)
    _assert_lost(daemon, disk)


def test_until_it_is_accepted(store, daemon):
    """Not by a plain restart, and the next failure is another one."""
    disk = Disk(daemon.api.create(_spec(store))["status"]["id"])
    _lose(disk, store)
    _assert_lost(daemon, disk)
    daemon.api.restart("data")
    _assert_lost(daemon, disk)
    _accept(daemon)
    _assert_well(daemon, disk)
    assert "WriteErrorsAccepted" in [event["reason"] for event in daemon.events("data")]
    _lose(disk, store, 128 << 10)
    assert _error(disk.flush) == "EIO"
    daemon.api.put(_spec(store, enabled=False))
    disk = Disk(daemon.api.put(_spec(store))["status"]["id"])
    _assert_well(daemon, disk)


def test_over_the_deaths_of_worker_and_ublkd(store, daemon):
    disk = Disk(daemon.api.create(_spec(store))["status"]["id"])
    _lose(disk, store)
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    _assert_lost(daemon, disk)
    daemon.kill()
    daemon.start()
    _assert_lost(daemon, disk)
    pid = daemon.worker_pid("data")
    daemon.kill()
    os.kill(pid, 9)
    daemon.start()
    daemon.api.wait_other_worker("data", pid)
    _assert_lost(daemon, disk)
    _accept(daemon)
    _assert_well(daemon, disk)

@pytest.mark.variant
@pytest.mark.parametrize("what", ["the region", "the directory"])
def test_the_region_is_removed(store, daemon, what):
    """The next worker has a new region; ublkd knows the fault, and writes it there."""
    disk = Disk(daemon.api.create(_spec(store))["status"]["id"])
    _lose(disk, store)
    _assert_lost(daemon, disk)
    if what == "the region":
        (region,) = (daemon.runtime / "workers").glob("*.region")
        region.unlink()
    else:
        shutil.rmtree(daemon.runtime)
        wait_until(daemon.api.is_ready, "a new socket")
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    _assert_lost(daemon, disk)
    _accept(daemon)
    _assert_well(daemon, disk)


@pytest.mark.variant
def test_found_without_a_ublkd(store, daemon):
    """The next ublkd finds it in the region."""
    disk = Disk(daemon.api.create(_spec(store))["status"]["id"])
    daemon.kill()
    _lose(disk, store)
    daemon.start()
    _assert_lost(daemon, disk)


@pytest.mark.parametrize("direct", ["on", "off"])
def test_a_write_with_fua_that_fails(store, daemon, direct):
    spec = loop_spec("data", store.path, {"directIo": direct}, queues=1)
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    with store.failing():
        assert _error(_write_durably, disk) == "EIO"
    _assert_lost(daemon, disk)


def test_a_write_without_fua_that_fails_returns_the_error(store, daemon):
    disk = Disk(daemon.api.create(loop_spec("data", store.path, {"directIo": "on"}, queues=1))["status"]["id"])
    with store.failing():
        assert _error(disk.write, 0, block("a")) == "EIO"
        assert _error(zero, disk.path, BLKDISCARD, 0, 64 << 10) in ("EIO", None)
    _assert_well(daemon, disk)


def test_a_flush_that_the_store_refuses(store, daemon):
    """With direct I/O it is the flush of the disk below that fails."""
    disk = Disk(daemon.api.create(loop_spec("data", store.path, {"directIo": "on"}, queues=1))["status"]["id"])
    disk.write(0, block("a"))
    with store.failing():
        assert _error(disk.flush) == "EIO"
    _assert_lost(daemon, disk)


@pytest.mark.variant
def test_a_new_disk_begins_without(store, daemon):
    disk = Disk(daemon.api.create(_spec(store))["status"]["id"])
    _lose(disk, store)
    _assert_lost(daemon, disk)
    disk = Disk(daemon.api.put(_spec(store, maxIoSize="256KiB"))["status"]["id"])
    _assert_well(daemon, disk)
    daemon.api.delete("data")
    disk = Disk(daemon.api.create(_spec(store))["status"]["id"])
    _assert_well(daemon, disk)


@pytest.mark.variant
def test_an_error_that_another_program_has_consumed(store, daemon):
    """A write fails while no worker serves the disk, and the fsync() of another process gets the error."""
    spec = _spec(store, recovery={"trigger": "manual"})
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    disk.flush()
    stranger = os.open(store.path, os.O_RDWR)
    try:
        disk.write(0, block("a"))
        daemon.kill_worker("data")
        daemon.api.wait_phase("data", "Quiesced")
        with store.failing():
            assert _error(os.fsync, stranger) == "EIO"
        assert _error(os.fsync, stranger) is None
    finally:
        os.close(stranger)
    daemon.api.ask("POST", "/devices/data/recover?wait=ready&timeout=60s", 200)
    _assert_lost(daemon, disk)
    _accept(daemon)
    _assert_well(daemon, disk)


def test_flushes_at_the_same_time_all_fail(store, daemon):
    """The kernel reports the error to one of them."""
    disk = Disk(daemon.api.create(loop_spec("data", store.path, {"directIo": "off"}, queues=2))["status"]["id"])
    disk.write(0, block("a"))
    together = threading.Barrier(8)

    def flush(number):
        os.sched_setaffinity(0, {number % os.cpu_count()})
        together.wait(60)
        disk.flush()

    with store.failing():
        flushes = [Background(flush, number) for number in range(8)]
        assert [flush.result() for flush in flushes] == ["EIO"] * 8
    _assert_lost(daemon, disk)
