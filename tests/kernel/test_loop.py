# SPDX-License-Identifier: MIT
"""The loop target on files and on block devices, through the kernel."""

import errno
import pathlib

import pytest

from harness import kernel_disks
from harness.api import loop_spec
from harness.disk import Disk, block, read
from harness.kernel_disks import detach_loop
from harness.marks import variants
from harness.shell import output, run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20


def _disk(device):
    return Disk(device["status"]["id"])


def _blocks_of(path):
    return path.stat().st_blocks * 512


@pytest.fixture(name="null_blk")
def null_blk_disk():
    """A disk of the kernel's own that remembers what is written."""
    with kernel_disks.null_blk(blocksize=4096) as path:
        yield path


@pytest.mark.parametrize("direct", [*variants("auto"), "on", "off"])
def test_file_on_ext4(ext4, api, file_of, direct):
    path = file_of(where=ext4)
    disk = _disk(api.create(loop_spec("data", path, {"directIo": direct})))
    assert disk.size() == 64 * _MIB
    for i, letter in enumerate("abc"):
        disk.write(i * _MIB, block(letter, 64 * 1024))
    for i, letter in enumerate("abc"):
        assert disk.read(i * _MIB, 64 * 1024) == block(letter, 64 * 1024)
        assert read(path, i * _MIB, 64 * 1024) == block(letter, 64 * 1024)


def test_file_on_tmpfs(api, file_of):
    path = file_of()
    disk = _disk(api.create(loop_spec("data", path)))
    disk.write(8192, block("t"))
    assert disk.read(8192, 4096) == block("t")
    assert path.read_bytes()[8192:12288] == block("t")


def test_large_requests_are_whole(ext4, api, file_of):
    path = file_of(where=ext4)
    disk = _disk(api.create(loop_spec("data", path, maxIoSize="128KiB")))
    data = b"".join(block(chr(ord("A") + i), 4096) for i in range(26)) * 20
    disk.write(4096, data)
    assert disk.read(4096, len(data)) == data
    assert disk.queue("max_hw_sectors_kb") == 128


def test_block_device_null_blk(null_blk, api):
    device = api.create(loop_spec("data", null_blk))
    disk = _disk(device)
    assert disk.size() == 64 * _MIB and disk.queue("logical_block_size") == 4096
    disk.write(4096, block("n"))
    assert read(null_blk, 4096, 4096) == block("n")
    api.delete("data")


def test_block_device_loop(api, file_of):
    path = file_of()
    loop = output("losetup", "--find", "--show", path)
    try:
        disk = _disk(api.create(loop_spec("data", loop)))
        assert disk.size() == 64 * _MIB
        disk.write(0, block("l"))
        assert disk.read(0, 4096) == block("l") and path.read_bytes()[:4096] == block("l")
        api.delete("data")
    finally:
        detach_loop(loop)


def test_a_disk_begins_at_a_block_of_its_disk(api, file_of):
    """Else the disk would refuse to discard and to zero what ours offers."""
    loop = output("losetup", "--find", "--show", "--sector-size", "4096", file_of())
    try:
        problem = api.create(loop_spec("data", loop, {"offset": 512}), status=422)
        assert problem["reason"] == "OffsetNotAMultiple"
        assert all(value in problem["detail"] for value in ("512", "4096", loop)), problem
        api.delete("data")
        disk = _disk(api.create(loop_spec("data", loop, {"offset": 4096})))
        disk.write(0, block("x"))
        run("blkdiscard", "--zeroout", disk.path)
        assert disk.read(0, 4096) == bytes(4096)
        api.delete("data")
    finally:
        detach_loop(loop)


def test_offset_and_size_show_a_part(api, file_of):
    path = file_of()
    disk = _disk(api.create(loop_spec("data", path, {"offset": "1MiB"}, size="2MiB")))
    assert disk.size() == 2 * _MIB
    disk.write(0, block("o"))
    disk.write(2 * _MIB - 4096, block("e"))
    content = path.read_bytes()
    assert content[_MIB : _MIB + 4096] == block("o") and content[3 * _MIB - 4096 : 3 * _MIB] == block("e")
    assert content.count(b"o") == content.count(b"e") == 4096


def test_offset_without_size_ends_with_the_file(api, file_of):
    assert _disk(api.create(loop_spec("data", file_of(), {"offset": "63MiB"}))).size() == _MIB


def test_read_only(ext4, api, file_of):
    path = file_of(where=ext4)
    disk = _disk(api.create(loop_spec("data", path, readOnly=True)))
    assert output("blockdev", "--getro", disk.path) == "1"
    with pytest.raises(OSError) as refused:
        disk.write(0, block("x"))
    assert refused.value.errno in (errno.EPERM, errno.EROFS, errno.EACCES)
    assert disk.read(0, 4096) == bytes(4096)
    assert path.read_bytes().count(b"x") == 0


def test_block_size_4096(api, file_of):
    disk = _disk(api.create(loop_spec("data", file_of(), blockSize=4096)))
    assert disk.queue("logical_block_size") == 4096
    with pytest.raises(OSError) as refused:
        disk.write(0, block("x", 512))
    assert refused.value.errno == errno.EINVAL
    disk.write(4096, block("y"))
    assert disk.read(4096, 4096) == block("y")


def test_block_size_512_on_a_file(api, file_of):
    disk = _disk(api.create(loop_spec("data", file_of(), blockSize=512)))
    disk.write(512, block("s", 512))
    assert disk.read(0, 1536) == bytes(512) + block("s", 512) + bytes(512)


@pytest.mark.parametrize("where", ["tmpfs", "ext4"])
def test_discard_frees_and_reads_as_zeroes(request, where, api, file_of):
    path = file_of(where=request.getfixturevalue("ext4") if where == "ext4" else None)
    disk = _disk(api.create(loop_spec("data", path)))
    disk.write(0, block("d", 8 * _MIB))
    run("sync", path)
    before = _blocks_of(path)
    assert before >= 8 * _MIB and disk.queue("discard_max_bytes") > 0
    run("blkdiscard", "-o", _MIB, "-l", 4 * _MIB, disk.path)
    assert _blocks_of(path) <= before - 4 * _MIB
    assert disk.read(0, 8 * _MIB) == block("d", _MIB) + bytes(4 * _MIB) + block("d", 3 * _MIB)
    api.delete("data")


def test_write_zeroes_zeroes(api, file_of):
    path = file_of()
    disk = _disk(api.create(loop_spec("data", path)))
    disk.write(0, block("z", 4 * _MIB))
    assert disk.queue("write_zeroes_max_bytes") > 0
    run("blkdiscard", "-z", "-o", _MIB, "-l", _MIB, disk.path)
    assert disk.read(0, 4 * _MIB) == block("z", _MIB) + bytes(_MIB) + block("z", 2 * _MIB)
    assert path.read_bytes()[_MIB : 2 * _MIB] == bytes(_MIB)


def test_flush_and_fua_are_offered(ext4, api, file_of):
    disk = _disk(api.create(loop_spec("data", file_of(where=ext4))))
    assert disk.queue("write_cache") == "write back" and disk.queue("fua") == 1
    run("dd", "if=/dev/zero", f"of={disk.path}", "bs=64k", "count=4", "conv=fsync")
    run("dd", "if=/dev/zero", f"of={disk.path}", "bs=64k", "count=4", "oflag=direct,dsync")


def test_a_full_backing_file_system_is_reported_as_enospc(directory, api, file_of):
    mount = directory / "small"
    mount.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", mount)
    try:
        disk = _disk(api.create(loop_spec("data", file_of(where=mount, size=32 * _MIB))))
        with pytest.raises(OSError) as full:
            for i in range(8):
                disk.write(i * _MIB, block("f", _MIB))
        assert full.value.errno == errno.ENOSPC
        # Past the page cache: for what is in it, the kernel itself makes EIO of every error of a block device.
        result = run("dd", "if=/dev/zero", f"of={disk.path}", "bs=1M", "seek=8", "count=8", "oflag=direct", check=False)
        assert result.returncode != 0 and "No space left on device" in result.stdout
        assert disk.read(0, 4096) == block("f") and api.phase("data") == "Live"
        api.delete("data")
    finally:
        run("umount", mount)


def test_partitions_are_found(ext4, api, file_of):
    path = file_of(where=ext4)
    disk = _disk(api.create(loop_spec("data", path)))
    run("sfdisk", "-q", "--no-reread", disk.path, input="label: gpt\nsize=8MiB\nsize=16MiB\n")
    api.delete("data")
    disk = _disk(api.create(loop_spec("data", path)))
    wait_until(
        lambda: pathlib.Path(f"{disk.path}p1").exists() and pathlib.Path(f"{disk.path}p2").exists(),
        "the nodes of both partitions",
    )
    assert int(disk.attribute(f"ublkb{disk.number}p2/size")) * 512 == 16 * _MIB
    disk_of_partition = f"{disk.path}p1"
    run("dd", "if=/dev/zero", f"of={disk_of_partition}", "bs=4k", "count=1", "oflag=direct")


def test_two_devices_share_a_file_in_two_ranges(api, file_of):
    path = file_of()
    first = _disk(api.create(loop_spec("first", path, size="1MiB")))
    second = _disk(api.create(loop_spec("second", path, {"offset": "1MiB"}, size="1MiB")))
    first.write(0, block("1"))
    second.write(0, block("2"))
    content = path.read_bytes()
    assert content[:4096] == block("1") and content[_MIB : _MIB + 4096] == block("2")


def test_two_read_only_devices_share_a_file(api, file_of):
    path = file_of()
    api.create(loop_spec("first", path, readOnly=True))
    api.create(loop_spec("second", path, readOnly=True))
