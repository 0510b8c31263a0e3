# SPDX-License-Identifier: MIT
"""A queue that has more to do than it can leaves the others alone, also without limits."""

import contextlib
import os
import signal
import statistics
import subprocess

import pytest

from harness.api import loop_spec
from harness.disk import Disk, block
from harness.marks import variants
from harness.wait import wait_until

_READS = 40


@contextlib.contextmanager
def _on_cpu_of(disk, queue):
    """Requests of this thread, and of threads that it starts, go to that queue inside the block."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {_cpu_of(disk, queue)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _cpu_of(disk, queue):
    return int((disk.sys / "mq" / str(queue) / "cpu_list").read_text())


def _answered(api, queue, operation):
    return api.ask("GET", "/devices/data/stats", 200)["queues"][queue]["ops"][operation]["requests"]


@pytest.mark.long
@pytest.mark.timed  # while a busy host has no CPU for the reads, the writes wait longer than the kernel's 45 s for a hang
def test_a_queue_whose_store_does_not_answer(store, daemon):
    """All tags of one are taken, and more requests wait for them; the other is served all the while.

    No table is read: that would take a tag.
    """
    api = daemon.api
    spec = loop_spec("data", store.path, queues=2, queueDepth=16, partitions=False)
    disk = Disk(api.create(spec)["status"]["id"])
    with store.holding():
        with _on_cpu_of(disk, 0):
            writes = [disk.write_later(i << 17, block("w", 64 << 10)) for i in range(20)]
            store.wait_arrived(16)
        with _on_cpu_of(disk, 1):
            for _ in range(_READS):
                assert disk.read(3 << 20, 4096) == bytes(4096)
        assert not any(write.done for write in writes)
        assert _answered(api, 1, "read") >= _READS and _answered(api, 0, "write") == 0
    assert [write.result() for write in writes] == [None] * 20
    api.delete("data")


def _writes(disk):
    """How many were answered so far: Documentation/block/stat.rst."""
    return int(disk.attribute("stat").split()[4])


def _writes_while_one_is_read(disk):
    before = _writes(disk)
    disk.read(48 << 20, 4096)
    return _writes(disk) - before


@pytest.mark.long
@pytest.mark.parametrize("direct", ["on", *variants("off")])
def test_a_queue_that_is_never_done(direct, ext4, file_of, daemon, directory):
    """One always has 32 requests of 1 MiB. If small ones stood in their line, they would get one turn in 32."""
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", file_of(where=ext4), {"directIo": direct}, queues=2))["status"]["id"])
    load = subprocess.Popen(  # pylint: disable=consider-using-with
        [
            "fio", "--name=load", f"--filename={disk.path}", "--rw=randwrite", "--bs=1m", "--direct=1", "--size=32M",
            "--ioengine=libaio", "--iodepth=32", "--time_based", "--runtime=3600", f"--cpus_allowed={_cpu_of(disk, 0)}",
        ],
        cwd=directory,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _answered(api, 0, "write") >= 64, "large writes")
        with _on_cpu_of(disk, 1):
            meanwhile = [_writes_while_one_is_read(disk) for _ in range(_READS)]
        before = _writes(disk)
        wait_until(lambda: _writes(disk) > before, "the large writes going on")
        # Of most seconds: one CPU may stand still for a second while the other works.
        assert statistics.median(meanwhile) < 16, f"small reads took as long as so many large writes: {meanwhile}"
        assert _answered(api, 1, "read") >= _READS and _answered(api, 1, "write") == 0
    finally:
        load.send_signal(signal.SIGINT)
        load.wait()
    api.delete("data")
