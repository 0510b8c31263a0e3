# SPDX-License-Identifier: MIT
"""Kept memory: the next worker of a disk has what the one before it kept there, of each target of a tree; a disk that is
recreated has nothing.

The disk of tests/kernel/keeping has no store. Its data lies in kept memory alone, and its last block reports."""

import os
import signal
import struct

import pytest

from harness import programs
from harness.api import null_spec
from harness.disk import Disk

pytestmark = pytest.mark.long  # and one kernel runs each test

_BLOCK, _BLOCKS = 512, 64  # as in tests/kernel/keeping
_KEPT = 8 + 64 * 1024
_REPORT = struct.Struct("=QIIIII")
_SPEC = null_spec("data", size=(_BLOCKS + 1) * _BLOCK, dataPath="copy", queues=1)


_PLACE = (_BLOCKS + 1) * _BLOCK  # of one target on the disk, with its report
_LIST = {"type": "linear", "children": [{"type": "linear", "length": _PLACE, "child": {"type": "null"}}, {"type": "null"}]}
_STRIPE = {"type": "stripe", "chunk": 4096, "children": [{"type": "null"}, {"type": "null"}]}


def _start(make_daemon):
    daemon = make_daemon(program=programs.ublkd_keeping(), worker=programs.worker_keeping()).start()
    return daemon, _disk(daemon.api.create(_SPEC))


def _disk(device, kept=_KEPT):
    assert device["status"]["keptBytes"] == kept
    return Disk(device["status"]["id"])


def _data(letter):
    return letter.encode() * (_BLOCK * _BLOCKS)


def _check(disk, letter, workers, fresh=False):
    """The disk is of that letter ("": zeroes), and `workers` have served it."""
    count, disk_was_fresh, queue_was_fresh, records, rejected, _ = _REPORT.unpack_from(
        disk.read(_BLOCKS * _BLOCK, _BLOCK)
    )
    assert (count, disk_was_fresh, queue_was_fresh) == (workers, fresh, fresh)
    assert (records, rejected) == (_BLOCKS if letter else 0, 0)
    assert disk.read(0, _BLOCKS * _BLOCK) == (_data(letter) if letter else bytes(_BLOCKS * _BLOCK))


def test_the_next_worker_has_what_was_kept(make_daemon):
    daemon, disk = _start(make_daemon)
    _check(disk, "", workers=1, fresh=True)

    disk.write(0, _data("a"))
    pid = daemon.kill_worker("data")
    _disk(daemon.api.wait_other_worker("data", pid))
    _check(disk, "a", workers=2)

    disk.write(0, _data("b"))
    _disk(daemon.api.restart("data"))
    _check(disk, "b", workers=3)

    disk.write(0, _data("c"))
    daemon.kill()
    disk.write(0, _data("d"))
    daemon.start()
    _disk(daemon.api.wait_phase("data", "Live"))
    _check(disk, "d", workers=3)

    # Both die. The worker was killed in the middle of a write as likely as not.
    pid = daemon.worker_pid("data")
    daemon.kill()
    disk.write(0, _data("e"))
    later = disk.write_later(0, _data("f"))
    os.kill(pid, signal.SIGKILL)
    daemon.start()
    _disk(daemon.api.wait_other_worker("data", pid))
    later.result()
    _check(disk, "f", workers=4)


@pytest.mark.parametrize(
    ("target", "size", "places"),
    [
        pytest.param(_LIST, 2 * _PLACE, [(0, _BLOCKS * _BLOCK), (_PLACE, _BLOCKS * _BLOCK)], id="linear"),
        pytest.param(_STRIPE, 2 * _BLOCKS * _BLOCK, [(0, 2 * _BLOCKS * _BLOCK)], id="stripe"),
    ],
)
def test_each_target_of_a_tree_has_what_it_kept(make_daemon, target, size, places):
    daemon = make_daemon(program=programs.ublkd_keeping(), worker=programs.worker_keeping()).start()
    data = {place: bytes(place[1]) for place in places}

    def look(device):
        assert device["status"]["keptBytes"] == 64 + 8 + 2 * 64 * 1024
        disk = Disk(device["status"]["id"])
        for place, kept in data.items():
            assert disk.read(*place) == kept
        return disk

    def write():
        for place in places:
            data[place] = os.urandom(place[1])
            disk.write(place[0], data[place])

    disk = look(daemon.api.create({"name": "data", "target": target, "size": size, "dataPath": "copy", "queues": 1}))
    write()
    pid = daemon.kill_worker("data")
    disk = look(daemon.api.wait_other_worker("data", pid))
    write()
    disk = look(daemon.api.restart("data"))
    write()
    daemon.kill()
    daemon.start()
    disk = look(daemon.api.wait_phase("data", "Live"))
    write()
    pid = daemon.worker_pid("data")
    daemon.kill()
    write()
    os.kill(pid, signal.SIGKILL)
    daemon.start()
    disk = look(daemon.api.wait_other_worker("data", pid))
    for place in places if target is _LIST else []:
        workers, disk_was_fresh, queue_was_fresh, records, rejected, _ = _REPORT.unpack_from(
            disk.read(place[0] + _BLOCKS * _BLOCK, _BLOCK)
        )
        assert (workers, disk_was_fresh, queue_was_fresh, records, rejected) == (4, 0, 0, _BLOCKS, 0)
    assert not [event for event in daemon.events("data") if event["reason"] == "KeptMemoryLost"]


def _write_on(cpu, disk, offset, data):
    """The queue follows the CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        disk.write(offset, data)
    finally:
        os.sched_setaffinity(0, before)


def test_each_queue_has_its_part(make_daemon):
    """A block that both queues have written is as the later one left it, whichever that was."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    queues = len(cpus)  # a guest with one CPU has one
    spec, kept = {**_SPEC, "queues": queues}, 8 + queues * 64 * 1024
    daemon = make_daemon(program=programs.ublkd_keeping(), worker=programs.worker_keeping()).start()
    disk = _disk(daemon.api.create(spec), kept)
    quarter = _BLOCKS // 4 * _BLOCK
    data = bytearray(_BLOCKS * _BLOCK)

    def write(cpu, offset, length):
        data[offset : offset + length] = os.urandom(length)
        _write_on(cpu, disk, offset, bytes(data[offset : offset + length]))

    for workers in range(1, 4):
        for first, second in ((cpus[0], cpus[-1]), (cpus[-1], cpus[0])):
            write(first, 0, 3 * quarter)
            write(second, quarter, 3 * quarter)
            write(first, 2 * quarter, quarter)
        if workers == 1:
            pid = daemon.kill_worker("data")
            device = daemon.api.wait_other_worker("data", pid)
        elif workers == 2:
            device = daemon.api.restart("data")
        else:
            pid = daemon.worker_pid("data")
            daemon.kill()
            os.kill(pid, signal.SIGKILL)
            daemon.start()
            device = daemon.api.wait_other_worker("data", pid)
        disk = _disk(device, kept)
        assert disk.read(0, len(data)) == bytes(data)
        count, disk_was_fresh, queue_was_fresh, records, rejected, used = _REPORT.unpack_from(
            disk.read(_BLOCKS * _BLOCK, _BLOCK)
        )
        assert (count, disk_was_fresh, queue_was_fresh, rejected, used) == (workers + 1, 0, 0, 0, queues)
        assert records == queues * _BLOCKS
    assert not [event for event in daemon.events("data") if event["reason"] == "KeptMemoryLost"]


def test_a_recreated_disk_has_nothing(make_daemon):
    daemon, disk = _start(make_daemon)
    disk.write(0, _data("a"))
    daemon.api.put({**_SPEC, "enabled": False}, wait=None)
    daemon.api.wait_phase("data", "Disabled")
    disk = _disk(daemon.api.put(_SPEC))
    _check(disk, "", workers=1, fresh=True)

    disk.write(0, _data("b"))
    daemon.api.delete("data")
    assert not list((daemon.runtime / "workers").glob("*.region"))
    _check(_disk(daemon.api.create(_SPEC)), "", workers=1, fresh=True)


def test_a_target_that_keeps_nothing_has_no_memory_for_it(daemon):
    device = daemon.api.create(null_spec("data", queues=1))
    assert "keptBytes" not in device["status"]
    (region,) = (daemon.runtime / "workers").glob("*.region")
    assert region.stat().st_size == (1 + 1 + 6) * 4096


def test_lost_memory_is_reported_once(make_daemon):
    daemon, disk = _start(make_daemon)
    disk.write(0, _data("a"))
    for restarts in (1, 2):
        pid = daemon.worker_pid("data")
        daemon.kill()
        os.kill(pid, signal.SIGKILL)
        if restarts == 1:
            (region,) = (daemon.runtime / "workers").glob("*.region")
            region.unlink()
        daemon.start()
        disk = _disk(daemon.api.wait_other_worker("data", pid))
        _check(disk, "", workers=restarts, fresh=restarts == 1)
        assert [event["count"] for event in daemon.events("data") if event["reason"] == "KeptMemoryLost"] == [1]
    conditions = {condition["type"]: condition for condition in daemon.api.get("data")["status"]["conditions"]}
    assert (conditions["Durable"]["status"], conditions["Durable"]["reason"]) == ("False", "FlushFailed")
