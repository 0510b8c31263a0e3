# SPDX-License-Identifier: MIT
"""A control command that does not return stops its own device, and no other one.

The backing store holds what arrives, so STOP_DEV hangs in the requests that are
under way, for as long as the test says. START_DEV does not: the kernel reads no
partition table.
"""

import contextlib
import pathlib
import subprocess
import time

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.wait import wait_until

_DEADLINES = 60  # seconds: longer than that of any command
_ANSWERS = 20  # seconds: shorter than what waits here, longer than what a busy emulator takes


def _assert_others_go_on(api, daemon):
    """Another device is made, used, recovered and removed meanwhile, and ublkd answers."""
    number = api.create(null_spec("other", queues=1))["status"]["id"]
    Disk(number).write(0, block("w"))
    api.wait_other_worker("other", daemon.kill_worker("other"))
    assert {"data", "other"} <= set(api.names())
    api.delete("other")


def _wait_named(api, *reasons):
    return api.wait_for(
        "data", lambda device: condition_of(device)["reason"] in reasons, f"with a reason of {reasons}", _DEADLINES
    )


@pytest.mark.long
def test_a_start_waits_for_no_answer_of_the_disk(store, daemon):
    api = daemon.api
    with store.holding_reads():
        number = api.create(loop_spec("data", store.path, queues=1))["status"]["id"]
        store.wait_asked()  # by the reader of the partition table, or by udev
        _assert_others_go_on(api, daemon)
        daemon.kill()
        daemon.start()
        _assert_others_go_on(api, daemon)
        assert api.wait_phase("data", "Live")["status"]["id"] == number
    disk = Disk(number)
    disk.write(0, block("w"))
    assert disk.read(0, 4096) == block("w")
    api.delete("data")


@pytest.mark.long
def test_a_stop_that_hangs_is_named_and_ends_when_it_can(store, daemon):
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", store.path, queues=1))["status"]["id"])
    with store.holding():
        write = disk.write_later(0, block("w"))
        store.wait_arrived(1)
        api.ask("DELETE", "/devices/data?force=true", 202)
        # 6.12 calls it stopped at once, and waits as it is deleted
        device = _wait_named(api, "ControlPlaneHangs", "StillHeld")
        assert device["status"]["phase"] == "Stopping"
        _assert_others_go_on(api, daemon)
        problem = api.ask("DELETE", "/devices/data?force=true&wait&timeout=1s", 504)
        assert problem["reason"] in ("ControlPlaneHangs", "StillHeld"), problem
        daemon.kill()
        daemon.start()
        _assert_others_go_on(api, daemon)
    wait_until(lambda: api.names() == [] and ublk.numbers() == [], "the removal done")
    write.result()  # it has a result, good or bad: the kernel answered it before it released the disk


def _in_flight(disk):
    return sum(map(int, pathlib.Path(f"/sys/block/{pathlib.Path(disk.path).name}/inflight").read_text(encoding="ascii").split()))


@contextlib.contextmanager
def _readers(disk, count):
    """`count` reads, in flight or waiting."""
    command = ["fio", "--name=readers", f"--filename={disk.path}", "--ioengine=libaio", "--direct=1", "--rw=randread", f"--iodepth={count}",
               "--bs=4k", "--time_based", "--runtime=3600", "--thread"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _in_flight(disk) >= count // 2, "reads in flight")
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_disk_whose_requests_wait_is_recovered_beside_all_others(daemon):
    """What ublkd sets of a disk when it is live again may wait for all its requests, which take minutes here: on 6.12
    the driver's queue is frozen for it. ublkd does not wait for that."""
    api = daemon.api
    spec = null_spec("data", queues=1, queueDepth=128)
    disk = Disk(api.create(spec)["status"]["id"])
    api.put(spec | {"limits": {"read": {"iops": 1}}})
    with _readers(disk, 128):
        pid = daemon.kill_worker("data")
        api.wait_other_worker("data", pid)
        for _ in range(10):
            begin = time.monotonic()
            api.ask("GET", "/healthz", 200)
            assert time.monotonic() - begin < _ANSWERS, "ublkd waited for the disk's requests"
        _assert_others_go_on(api, daemon)
        api.wait_phase("data", "Live")
        api.put(spec | {"limits": {}})
    api.delete("data")
