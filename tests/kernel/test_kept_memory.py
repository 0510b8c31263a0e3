# SPDX-License-Identifier: MIT
"""Kept memory: the next worker of a disk has what the one before it kept there; a disk that is recreated has nothing.

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
_REPORT = struct.Struct("=QIIII")
_SPEC = null_spec("data", size=(_BLOCKS + 1) * _BLOCK, dataPath="copy")


def _start(make_daemon):
    daemon = make_daemon(program=programs.ublkd_keeping(), worker=programs.worker_keeping()).start()
    return daemon, _disk(daemon.api.create(_SPEC))


def _disk(device):
    assert device["status"]["keptBytes"] == _KEPT
    return Disk(device["status"]["id"])


def _data(letter):
    return letter.encode() * (_BLOCK * _BLOCKS)


def _check(disk, letter, workers, fresh=False):
    """The disk is of that letter ("": zeroes), and `workers` have served it."""
    count, disk_was_fresh, queue_was_fresh, records, rejected = _REPORT.unpack_from(
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
