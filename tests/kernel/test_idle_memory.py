# SPDX-License-Identifier: MIT
"""The worker returns memory that its requests do not need, and loses no byte of a request."""

import ctypes
import os
import sys

import pytest

from harness import programs
from harness.api import loop_spec, null_spec
from harness.disk import Disk
from harness.fio import Fio, burst
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_ROUNDS, _REQUESTS = 5, 300


def _private_memory(pid):
    for line in open(f"/proc/{pid}/smaps_rollup", encoding="ascii"):
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no Private_Dirty")


@pytest.mark.parametrize("path", [pytest.param("user-copy", marks=pytest.mark.variant), "copy"])
def test_memory_goes_back_after_a_burst(path, daemon, directory):
    """128 requests of 1 MiB at a time need 128 MiB; a disk that rests needs next to nothing."""
    device = daemon.api.create(null_spec("data", size="1GiB", queues=1, queueDepth=128, dataPath=path))
    disk = Disk(device["status"]["id"])
    pid = daemon.worker_pid("data")
    rest = _private_memory(pid)
    with burst(disk, directory, "--bs=1M", "--rw=write", "--iodepth=128", "--size=512M"):
        wait_until(lambda: _private_memory(pid) > rest + (16 << 20), "the memory that the burst needs")
    wait_until(lambda: _private_memory(pid) < rest + (4 << 20), lambda: f"{rest} again, not {_private_memory(pid)}")
    disk.write(0, b"x" * 4096)
    daemon.api.delete("data")


def _descriptors(pid, target):
    """Duplicates of the descriptors of a process that lead to a file of that name."""
    pidfd_getfd = 438
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            if os.path.basename(os.readlink(f"/proc/{pid}/fd/{name}")) == target:
                fd = libc.syscall(pidfd_getfd, pidfd, int(name), 0)
                assert fd >= 0, os.strerror(ctypes.get_errno())
                yield fd
    finally:
        os.close(pidfd)


def test_a_worker_does_not_see_where_its_memory_lies(daemon):
    """The worker asks which of its pages are present. An attacker in it must not learn their physical addresses."""
    daemon.api.create(null_spec("data", queues=1, dataPath="copy"))
    pid = daemon.worker_pid("data")
    seen = 0
    for pagemap in _descriptors(pid, "pagemap"):
        for line in open(f"/proc/{pid}/maps", encoding="ascii").read().splitlines():
            start = int(line.split("-")[0], 16)
            data = os.pread(pagemap, 8, start // 4096 * 8)
            entry = int.from_bytes(data, sys.byteorder) if len(data) == 8 else 0
            assert entry & ((1 << 55) - 1) == 0 or not entry >> 63, "a page frame number"
            seen += entry >> 63
        os.close(pagemap)
    assert seen > 0, "no page of the worker was seen"
    daemon.api.delete("data")


@pytest.mark.variant
def test_requests_during_the_return_of_memory_are_not_lost(file_of, make_daemon, directory):
    """A worker that gives memory back in every round of its loop, under requests of very different sizes.

    The driver of 6.12 may write to the memory at any time, so there it takes its time over that, and requests come
    in the midst of it. Dropping the pages after a look at the completions has failed this test.
    """
    daemon = make_daemon(worker=programs.worker_restless()).start()
    disk = Disk(daemon.api.create(loop_spec("data", file_of(), queues=2, dataPath="copy"))["status"]["id"])
    sizes = ["--bssplit=4k/30:16k/30:64k/20:256k/20", "--thinktime=1ms", "--thinktime_blocks=16"]
    fio = Fio(directory, disk, jobs=2, size="24M", more=sizes)
    try:
        fio.wait_running()
        for _ in range(_ROUNDS):
            disk.wait_progress(_REQUESTS)
        fio.finish().assert_clean()
    finally:
        fio.kill()
    daemon.api.delete("data")
