# SPDX-License-Identifier: MIT
"""A disk as backing store: flushes, limits of its requests, ranges of zeroes."""

import mmap
import os

import pytest

from harness import ublk
from harness.api import loop_spec
from harness.disk import Disk, block, read
from harness.kernel_disks import flushes, loop_disk, null_blk, queue_limit, scsi_debug, scsi_debug_holds
from harness.shell import run

_MIB = 1 << 20
_HAS = ublk.features()
_PATHS = ["copy", "user-copy"] + (["zero-copy"] if _HAS["AUTO_BUF_REG"] else [])
_LIMITS = {"write": {"iops": 1000000}}  # nothing waits for it, but requests go through coroutines


def _disk(device):
    return Disk(device["status"]["id"])


def _flushes_of(backing, disk):
    """How many flushes of the backing store come from 10 writes with FUA, 10 without, and 5 flushes."""
    counts = [flushes(backing)]
    for flags in (os.O_DSYNC, 0):
        descriptor = os.open(disk.path, os.O_WRONLY | os.O_DIRECT | flags)
        memory = mmap.mmap(-1, 4096)
        for i in range(10):
            assert os.pwritev(descriptor, [memory], i * 8192) == 4096
        counts.append(flushes(backing))
        if not flags:
            for _ in range(5):
                os.fsync(descriptor)
            counts.append(flushes(backing))
        os.close(descriptor)
    return [after - before for before, after in zip(counts, counts[1:])]


def _ways_of_a_flush():
    """Every data path, with and without batches. The flush is the same: every change tries each of both once."""
    for path in _PATHS:
        for batch in [True, False] if _HAS["BATCH_IO"] else [False]:
            often = (path, batch) in (("copy", True), ("zero-copy", True), ("user-copy", False))
            marks = [] if often else [pytest.mark.variant]
            if batch or path == "zero-copy":
                marks.append(pytest.mark.both)  # 6.12 cannot run it for the other kernel (--long-part)
            yield pytest.param(path, batch, marks=marks, id=f"{path}-{batch}")


@pytest.mark.long
@pytest.mark.parametrize("path,batch", _ways_of_a_flush())
def test_fua_and_flush_reach_the_store(path, batch, make_daemon, file_of):
    """A write with O_DSYNC is FUA and a flush after it. The store has no FUA: it is another flush."""
    api = make_daemon(more_options=[] if batch else ["--ignore-feature=BATCH_IO"]).start().api
    with loop_disk(file_of(), "--direct-io=off") as backing:
        for direct in ("on", "off"):
            for limits in ({}, _LIMITS):
                spec = loop_spec("data", backing, {"directIo": direct}, queues=1, dataPath=path, limits=limits)
                device = api.create(spec)
                assert device["status"]["dataPath"] == path and device["status"]["batch"] == batch
                assert _flushes_of(backing, _disk(device)) == [20, 0, 5], f"directIo {direct}, limits {limits}"
                api.delete("data")


class _Scattered:
    """Memory of 1,024 sectors, none of them beside the next one."""

    COUNT = 1024

    def __init__(self):
        self._memory = mmap.mmap(-1, self.COUNT * 1024)
        self._view = memoryview(self._memory)
        self._parts = [self._view[i * 1024 : i * 1024 + 512] for i in range(self.COUNT)]

    def write(self, path, offset):
        """Of each sector's own number; return what is then in the file."""
        for i, part in enumerate(self._parts):
            part[:] = i.to_bytes(2, "little") * 256
        descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT)
        assert os.pwritev(descriptor, self._parts, offset) == self.COUNT * 512
        os.close(descriptor)
        return b"".join(self._parts)

    def read(self, path, offset):
        """What is there."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        assert os.preadv(descriptor, self._parts, offset) == self.COUNT * 512
        os.close(descriptor)
        return b"".join(self._parts)


_PAGE_LIMITS = ("max_segments", "max_segment_size", "dma_alignment")


@pytest.mark.long
def test_requests_are_such_as_the_backing_disk_takes(api):
    """2,048 segments at once, from any words: numbers that differ from the defaults of a disk."""
    with scsi_debug() as backing:
        for path in _PATHS:
            disk = _disk(api.create(loop_spec("data", backing, {"directIo": "on"}, queues=1, dataPath=path)))
            if ublk.is_new():  # Linux 6.12 does not report it
                ours = [disk.queue(name) for name in _PAGE_LIMITS]
                assert ours == [queue_limit(backing, name) for name in _PAGE_LIMITS]
            scattered = _Scattered()
            written = scattered.write(disk.path, 4096)
            assert scattered.read(disk.path, 4096) == written == read(backing, 4096, len(written))
            api.delete("data")


def _zeroes_and_neighbours(disk, *how):
    """8 MiB of the disk become zeroes, and nothing else."""
    disk.write(0, block("n", 12 * _MIB))
    run("blkdiscard", *how, "--offset", 2 * _MIB - 4096, "--length", 8 * _MIB, disk.path)
    wanted = block("n", 2 * _MIB - 4096) + bytes(8 * _MIB) + block("n", 2 * _MIB + 4096)
    assert disk.read(0, 12 * _MIB) == wanted


@pytest.mark.variant
@pytest.mark.long
@pytest.mark.parametrize("direct", ["on", "off"])
def test_zeroes_on_a_disk_that_zeroes_a_mebibyte_at_once(direct, api):
    with scsi_debug(lbpu=1, lbpws=1, write_same_length=2048, unmap_max_blocks=2048) as backing:
        limits = [queue_limit(backing, f"{name}_max_bytes") for name in ("discard", "write_zeroes")]
        assert limits == [_MIB, _MIB]
        disk = _disk(api.create(loop_spec("data", backing, {"directIo": direct})))
        assert disk.queue("discard_max_bytes") >= 32 * _MIB and disk.queue("write_zeroes_max_bytes") >= 32 * _MIB
        _zeroes_and_neighbours(disk)
        disk.flush()  # without direct I/O, what lies around it has got as far as the page cache
        assert not scsi_debug_holds(2 * _MIB - 4096, 8 * _MIB), "the blocks are given back"
        assert scsi_debug_holds(2 * _MIB - 8192, 4096) and scsi_debug_holds(10 * _MIB - 4096, 4096)
        _zeroes_and_neighbours(disk, "--zeroout")
        api.delete("data")


@pytest.mark.long
def test_zeroes_on_a_disk_that_must_be_written(api):
    with null_blk() as backing:
        assert queue_limit(backing, "write_zeroes_max_bytes") == 0
        disk = _disk(api.create(loop_spec("data", backing)))
        assert disk.queue("discard_max_bytes") == 0 and disk.queue("write_zeroes_max_bytes") > 0
        _zeroes_and_neighbours(disk, "--zeroout")
        api.delete("data")
