# SPDX-License-Identifier: MIT
"""Workers that live and answer nothing: one that is stopped or spins is replaced, one that waits for its store is not."""

import os
import signal
import time

import pytest

from harness import programs
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import BLKZEROOUT, Disk, block
from harness.halt import halt
from harness.processes import threads_of
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_HANG = {"recovery": {"hangAfter": "2s"}}
_HUNG = "WorkerHung"


def _count(daemon, reason):
    return sum(event["count"] for event in daemon.events("data") if event["reason"] == reason)


def _make(daemon, file_of, **more):
    device = daemon.api.create(loop_spec("data", file_of(), queues=1, **_HANG, **more))
    disk = Disk(device["status"]["id"])
    disk.write(0, block("a"))
    return disk


def test_the_disk_of_a_stopped_worker_goes_on_by_itself(daemon, file_of):
    disk = _make(daemon, file_of)
    pid = daemon.worker_pid("data")
    halt(pid)
    write = disk.write_later(4096, block("b"))
    daemon.api.wait_other_worker("data", pid)
    assert write.result() is None
    assert disk.read(0, 8192) == block("a") + block("b")
    assert _count(daemon, _HUNG) == 1
    assert _count(daemon, "WorkerDied") == 0


@pytest.mark.variant
def test_a_flush_of_a_stopped_worker_ends(daemon, file_of):
    """The kernel does not count flushes among the requests that wait."""
    disk = _make(daemon, file_of)
    pid = daemon.worker_pid("data")
    halt(pid)
    disk.flush()
    assert daemon.worker_pid("data") != pid
    assert _count(daemon, _HUNG) == 1


def test_a_stopped_worker_stays_if_its_death_would_take_the_disk_away(daemon, file_of):
    """onCrash none: the disk would be removed under its openers, for a debugger."""
    device = daemon.api.create(loop_spec("data", file_of(), queues=1, recovery={"hangAfter": "2s", "onCrash": "none"}))
    disk = Disk(device["status"]["id"])
    pid = daemon.worker_pid("data")
    halt(pid)
    write = disk.write_later(0, block("w"))
    shown = daemon.api.wait_for("data", lambda device: condition_of(device, "Progress"), "with a condition Progress")
    assert condition_of(shown, "Progress")["reason"] == _HUNG and shown["status"]["phase"] == "Live"
    os.kill(pid, signal.SIGCONT)
    assert write.result() is None
    daemon.api.wait_for("data", lambda device: condition_of(device, "Progress") is None, "without a condition Progress")
    assert daemon.worker_pid("data") == pid


def test_a_worker_that_spins_is_replaced(make_daemon, file_of):
    daemon = make_daemon(worker=programs.worker_spinning()).start()
    disk = _make(daemon, file_of)
    pid = daemon.worker_pid("data")
    os.kill(pid, signal.SIGRTMAX)
    write = disk.write_later(4096, block("b"))
    daemon.api.wait_other_worker("data", pid)
    assert write.result() is None
    assert disk.read(4096, 4096) == block("b")
    assert _count(daemon, _HUNG) == 1


def test_a_worker_that_waits_for_its_store_stays(daemon, api, store):
    device = api.create(loop_spec("data", store.path, queues=1, **_HANG))
    disk = Disk(device["status"]["id"])
    disk.write(0, block("a"))
    pid = daemon.worker_pid("data")
    with store.holding():
        write = disk.write_later(4096, block("b"))
        shown = api.wait_for("data", lambda device: condition_of(device, "Progress"), "with a condition Progress")
        condition = condition_of(shown, "Progress")
        assert (condition["status"], condition["reason"]) == ("False", "BackingSlow")
        assert shown["status"]["phase"] == "Live"
    assert write.result() is None
    api.wait_for("data", lambda device: condition_of(device, "Progress") is None, "without a condition Progress")
    assert daemon.worker_pid("data") == pid
    assert (_count(daemon, "BackingSlow"), _count(daemon, "ProgressResumed")) == (1, 1)
    api.delete("data")


def _late_zeroes(disk, store):
    return store.holding(), lambda: disk.zero_later(BLKZEROOUT, 0, 65536)


def _late_write(disk, store):
    return store.holding(), lambda: disk.write_later(0, bytes(65536))


def _late_read(disk, store):
    return store.holding_reads(), lambda: disk.read_later(1 << 20, 65536)  # which no cache has


@pytest.mark.long
@pytest.mark.parametrize(
    ("make_late", "direct"),
    [
        pytest.param(_late_zeroes, "on", id="write-zeroes", marks=pytest.mark.storm),
        pytest.param(_late_write, "on", id="write"),
        pytest.param(_late_read, "on", id="read", marks=pytest.mark.storm),
        pytest.param(_late_read, "off", id="buffered-read", marks=pytest.mark.variant),
    ],
)
def test_an_operation_that_is_late_is_nudged(api, store, make_late, direct):
    """Once a second, since some kernels fail to wake the thread that is to perform it; that harms no other kernel."""
    device = api.create(loop_spec("data", store.path, target={"directIo": direct}, queues=1))
    disk = Disk(device["status"]["id"])
    holding, begin = make_late(disk, store)

    def nudges():
        return api.ask("GET", "/devices/data/stats", 200)["total"]["nudges"]

    before = nudges()
    with holding:
        late = begin()
        wait_until(lambda: nudges() >= before + 2, "two nudges")
        assert not late.done
    late.result()
    assert disk.read(0, 65536) == bytes(65536)
    api.delete("data")


def _switches(pid):
    """How often threads of the queues have gone to sleep."""
    statuses = [(task / "status").read_text() for task, name in threads_of(pid).items() if name.startswith("queue-")]
    assert statuses
    return [line for status in statuses for line in status.splitlines() if line.startswith("voluntary_ctxt_switches")]


@pytest.mark.variant
def test_a_queue_without_requests_sleeps(daemon, file_of):
    """It looks for late requests only while there are some."""
    disk = _make(daemon, file_of)
    pid = daemon.worker_pid("data")
    disk.read(0, 4096)
    began = _switches(pid)
    wait_until(lambda: _switches(pid) != began, "the last look")
    seen = [time.monotonic(), _switches(pid)]

    def is_asleep():
        now = _switches(pid)
        if now != seen[1]:
            seen[:] = [time.monotonic(), now]
        return time.monotonic() - seen[0] > 4

    wait_until(is_asleep, "four seconds of sleep")


@pytest.mark.variant
def test_requests_that_wait_for_their_limit_are_not_a_hang(daemon, file_of):
    disk = _make(daemon, file_of, limits={"write": {"bytesPerSec": 8192, "bytesPerSecBurst": 8192}})
    pid = daemon.worker_pid("data")
    writes = [disk.write_later(i << 16, block("w", 32768)) for i in range(2)]  # the second waits for 4 s
    for write in writes:
        assert write.result() is None
    assert daemon.worker_pid("data") == pid
    assert condition_of(daemon.api.get("data"), "Progress") is None
    assert [_count(daemon, reason) for reason in ("BackingSlow", "WorkerHung", "WorkerStarved")] == [0, 0, 0]


@pytest.mark.parametrize("when", ["at once", pytest.param("later", marks=pytest.mark.variant)])
def test_a_stopped_worker_stays_where_the_spec_says_never(daemon, when):
    """For a debugger, say; and the spec can be changed under the disk."""
    never = {"recovery": {"hangAfter": "0"}}
    daemon.api.create(null_spec("data", **(never if when == "at once" else _HANG)))
    pid = daemon.worker_pid("data")
    if when == "later":
        daemon.api.put(null_spec("data", **never))
    halt(pid)
    other = daemon.api.create(null_spec("other", **_HANG))
    stopped = daemon.worker_pid("other")
    halt(stopped)  # as long as it takes until this one is replaced
    daemon.api.wait_other_worker("other", stopped)
    assert Disk(other["status"]["id"]).read(0, 4096) == bytes(4096)
    assert daemon.worker_pid("data") == pid
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: Disk(daemon.api.get("data")["status"]["id"]).read(0, 512) == bytes(512), "a read")
