# SPDX-License-Identifier: MIT
"""A restart replays nothing that a worker has begun: the worker answers that, and leaves the rest to the next one.

The sectors that the backing disk has written show it: each write of the disk is
one of the store, and one more if it is repeated.
"""

import mmap
import os
import pathlib
import signal
import socket

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec
from harness.disk import Background, Disk, block
from harness.fio import Fio
from harness.kernel_disks import null_blk
from harness.wait import holds_for, wait_until
from harness.ways import Way, of_this_kernel

pytestmark = pytest.mark.long

_DEPTH = 4
_APART = 64 << 10  # neighbours would be merged into one write
_RESTARTS = 6
_LIMIT = 30  # seconds; see docs/worker.md
_WRITES = 4  # fields of /sys/block/DISK/stat
_SECTORS_WRITTEN = 6

_ways = of_this_kernel(Way("copy"), Way("copy", batch=True), Way("user-copy"), Way("zero-copy"), Way("zero-copy", batch=True))


def _stat(path, field):
    return int(pathlib.Path(f"/sys/block/{os.path.basename(path)}/stat").read_text(encoding="ascii").split()[field])


@pytest.fixture
def slow():
    """A disk that takes its time for each request, so that some are always under way; name it before `make_daemon`."""
    with null_blk(irqmode=2, completion_nsec=5_000_000, size=128) as path:
        yield path


@_ways
def test_restarts_under_load_write_nothing_twice(slow, make_daemon, directory, way):
    daemon = way.start(make_daemon)
    disk = way.create(daemon.api, loop_spec("data", slow, queues=2, queueDepth=16))
    disk.wait_timeout_set()
    before = _stat(slow, _SECTORS_WRITTEN) - _stat(disk.path, _SECTORS_WRITTEN)
    fio = Fio(directory, disk, depth=32, jobs=2, more=["--bsrange=4k-4k"])
    try:
        fio.wait_running()
        for _ in range(_RESTARTS):
            daemon.api.restart("data")
            disk.wait_progress(100)
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert _stat(slow, _SECTORS_WRITTEN) - _stat(disk.path, _SECTORS_WRITTEN) == before
    assert {event["type"] for event in daemon.events("data") if event["reason"].startswith("Worker")} == {"Normal"}


class _Held:
    """A disk whose requests the store holds, all tags of its queue and more behind them, and a restart that was begun."""

    def __init__(self, api, daemon, store, **more):
        self.api, self.daemon, self.store = api, daemon, store
        spec = loop_spec("data", store.path, queues=1, queueDepth=_DEPTH, **more)
        self.disk = Disk(api.create(spec)["status"]["id"])
        self.disk.wait_timeout_set()
        self.pid = daemon.worker_pid("data")
        self.before = _stat(store.path, _WRITES)
        self.writes = [self._write(i, "w") for i in range(_DEPTH - 1)]
        store.wait_arrived(len(self.writes))

    def _write(self, place, letter):
        return self.disk.write_later(place * _APART, block(letter))

    def restart(self):
        """Ask for it, and wait until the worker begins nothing any more."""
        self.api.ask("POST", "/devices/data/restart", 202)
        wait_until(lambda: self.api.phase("data") != "Live", "the restart begun")
        self.writes.append(self._write(_DEPTH, "l"))
        holds_for(lambda: not self.writes[-1].done, 1, "the write waits")
        assert not self.is_replaced()

    def is_replaced(self):
        """Whether another worker serves, or none."""
        return self.daemon.worker_pid("data") != self.pid

    def settle(self):
        """Wait for the next worker, and check that each write has its answer and its bytes."""
        self.api.wait_other_worker("data", self.pid)
        assert [write.result() for write in self.writes] == [None] * len(self.writes)
        for place in range(_DEPTH - 1):
            assert self.disk.read(place * _APART, 4096) == block("w")
        assert self.disk.read(_DEPTH * _APART, 4096) == block("l")

    def repeated(self):
        """How many writes of the store were repeats."""
        return _stat(self.store.path, _WRITES) - self.before - len(self.writes)

    def reasons(self):
        """Of its events."""
        return [event["reason"] for event in self.daemon.events("data")]


@pytest.fixture
def batched(make_daemon):
    """A daemon whose disks ublkd does not quiesce."""
    return make_daemon().start()


def test_a_worker_leaves_when_the_store_has_answered(store, batched):
    held = None
    with store.holding():
        held = _Held(batched.api, batched, store)
        held.restart()
    held.settle()
    assert held.repeated() == 0
    assert "WorkerRetired" in held.reasons() and "WorkerKilled" not in held.reasons()
    batched.api.delete("data")


def test_a_worker_that_cannot_leave_is_killed(store, batched):
    with store.holding():
        held = _Held(batched.api, batched, store)
        held.restart()
        wait_until(lambda: "WorkerKilled" in held.reasons(), "the kill", timeout=2 * _LIMIT)
    held.settle()
    assert held.repeated() == _DEPTH - 1, "all that it had begun"
    batched.api.delete("data")


def test_a_stopped_worker_is_killed(store, batched):
    with store.holding():
        held = _Held(batched.api, batched, store)
        os.kill(held.pid, signal.SIGSTOP)
        held.restart()
        wait_until(lambda: "WorkerKilled" in held.reasons(), "the kill", timeout=2 * _LIMIT)
    held.settle()
    batched.api.delete("data")


def test_a_worker_that_dies_while_it_leaves(store, batched):
    with store.holding():
        held = _Held(batched.api, batched, store)
        held.restart()
        batched.kill_worker("data")
    held.settle()
    assert held.repeated() == _DEPTH - 1
    batched.api.delete("data")


def test_a_worker_leaves_although_ublkd_dies(store, batched):
    """The next ublkd adopts it, and waits; or finds that it has gone."""
    with store.holding():
        held = _Held(batched.api, batched, store)
        held.restart()
        batched.kill()
        batched.start()
        holds_for(lambda: not held.is_replaced(), 1, "it is waited for")
        batched.kill()
    wait_until(lambda: not pathlib.Path(f"/proc/{held.pid}").exists(), "the end of the worker, without a ublkd")
    batched.start()
    held.settle()
    assert held.repeated() == 0
    batched.api.delete("data")


def test_a_disk_that_is_removed_while_its_worker_leaves(store, batched):
    with store.holding():
        held = _Held(batched.api, batched, store)
        held.restart()
        batched.api.ask("DELETE", "/devices/data?force=true", 202)
    wait_until(lambda: not held.disk.exists(), "no disk")
    wait_until(lambda: "data" not in batched.api.names(), "no device")
    assert {write.result() for write in held.writes} <= {None, "EIO", "ENODEV", "ENXIO"}
    assert [write.result() for write in held.writes[:-1]] == [None] * (_DEPTH - 1), "what was begun is answered"


def test_requests_that_wait_for_limits_are_left_to_the_next_worker(slow, batched):
    """They would take minutes."""
    spec = loop_spec("data", slow, queues=1, limits={"write": {"bytesPerSec": 1024, "bytesPerSecBurst": 4096}})
    disk = Disk(batched.api.create(spec)["status"]["id"])
    disk.wait_timeout_set()
    before = _stat(slow, _WRITES)
    writes = [disk.write_later(i * _APART, block("w")) for i in range(_DEPTH * 4)]
    disk.wait_inflight(_DEPTH)
    batched.api.restart("data", timeout="10s")
    batched.api.put(spec | {"limits": {}})
    assert [write.result() for write in writes] == [None] * len(writes)
    assert _stat(slow, _WRITES) - before == len(writes)
    assert "WorkerKilled" not in [event["reason"] for event in batched.events("data")]


def test_an_idle_disk_is_restarted_at_once(slow, batched):
    """Each of its queues is asleep, some have never had a request."""
    disk = Disk(batched.api.create(loop_spec("data", slow, queues=2))["status"]["id"])
    for _ in range(_RESTARTS):
        batched.api.restart("data", timeout="10s")
    assert disk.exists()
    reasons = [event["reason"] for event in batched.events("data")]
    assert reasons.count("WorkerKilled") == 0 and not ({"WorkerDied"} & set(reasons))
    assert ublk.info(disk.number)["state"] == ublk.LIVE


class _UnseenOpener:
    """A process that has the disk open exclusively, and that no search finds: its descriptor is on its way to another process."""

    def __init__(self, disk):
        self._here, self._there = socket.socketpair()
        descriptor = os.open(disk.path, os.O_RDWR | os.O_DIRECT | os.O_EXCL)
        self.write = Background(os.pwrite, descriptor, _aligned_block("u"), 0)
        self._descriptor = descriptor
        self.disk = disk

    def hide(self):
        """Its request is under way, so the kernel keeps the file."""
        socket.send_fds(self._here, [b"x"], [self._descriptor])
        os.close(self._descriptor)

    def show(self):
        """Take the descriptor back."""
        self._descriptor = socket.recv_fds(self._there, 1, 1)[1][0]

    def read(self):
        """The first block, as it is."""
        buffer = mmap.mmap(-1, 4096)
        assert os.preadv(self._descriptor, [buffer], 0) == len(buffer)
        return bytes(buffer)

    def close(self):
        """Close the disk."""
        os.close(self._descriptor)


def _aligned_block(letter):
    buffer = mmap.mmap(-1, 4096)  # page aligned, as O_DIRECT wants it
    buffer.write(block(letter))
    return buffer


def _begin_restart_with_unseen_opener(api, store):
    """Return the opener, whose write the store holds; the worker has been asked to leave."""
    disk = Disk(api.create(loop_spec("data", store.path, queues=1, queueDepth=_DEPTH))["status"]["id"])
    disk.wait_timeout_set()
    opener = _UnseenOpener(disk)
    store.wait_arrived(1)
    opener.hide()
    api.ask("POST", "/devices/data/restart", 202)
    wait_until(lambda: api.phase("data") != "Live", "the restart begun")
    return opener


@pytest.mark.both
@pytest.mark.parametrize("how", ["delete", "disable"])
def test_a_removal_while_the_worker_leaves_keeps_the_disk_of_an_opener(store, batched, how):
    api = batched.api
    with store.holding():
        opener = _begin_restart_with_unseen_opener(api, store)
        pid = batched.worker_pid("data")
        if how == "delete":
            api.ask("DELETE", "/devices/data", 202)
        else:
            api.ask("PATCH", "/devices/data", 200, data='{"enabled": false}', headers={"Content-Type": "application/merge-patch+json"})
        holds_for(lambda: opener.disk.exists() and not opener.write.done, 1, "the disk stays")
        assert batched.worker_pid("data") == pid
    assert opener.write.result() is None
    wait_until(lambda: condition_of(api.get("data"), "Ready")["reason"] == "InUse", "the removal refused")
    opener.show()
    assert opener.read() == block("u")
    opener.close()
    if how == "delete":
        wait_until(lambda: "data" not in api.names(), "no device")
    else:
        assert condition_of(api.wait_phase("data", "Disabled"), "Ready")["reason"] == "Disabled"
        api.delete("data")
    assert not opener.disk.exists()


@pytest.mark.both
def test_a_new_disk_waits_for_the_end_of_a_restart(store, batched):
    api = batched.api
    with store.holding():
        opener = _begin_restart_with_unseen_opener(api, store)
        spec = api.get("data")["spec"] | {"queueDepth": 2 * _DEPTH}
        problem = api.put(spec, status=409, wait=None)
        assert problem["type"].endswith("not-possible-now"), problem
        pid = batched.worker_pid("data")
    api.wait_other_worker("data", pid)
    problem = api.put(spec, status=409, wait=None)
    assert problem["type"].endswith("in-use"), problem
    opener.show()
    assert opener.write.result() is None and opener.read() == block("u")
    opener.close()
    api.put(spec)
    api.delete("data")
