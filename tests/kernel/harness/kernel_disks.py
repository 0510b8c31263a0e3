# SPDX-License-Identifier: MIT
"""Disks that the kernel makes out of memory, to be backing stores with the limits that a test wants."""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import struct

from .shell import output, run
from .wait import wait_until

_CONFIG = pathlib.Path("/sys/kernel/config")
_BLKPG, _BLKPG_ADD, _BLKPG_DELETE = 0x1269, 1, 2  # linux/blkpg.h
_SCSI = pathlib.Path("/sys/bus/pseudo/drivers/scsi_debug")


def queue_limit(path, name):
    """A limit of the disk at /dev/NAME."""
    text = (pathlib.Path("/sys/block") / pathlib.Path(path).name / "queue" / name).read_text(encoding="ascii").strip()
    return int(text) if text.isdigit() else text


def flushes(path):
    """How many flushes the disk at /dev/NAME has had: the 16th field of Documentation/block/stat.rst."""
    name = pathlib.Path(path).name
    return int(pathlib.Path(f"/sys/block/{name}/stat").read_text(encoding="ascii").split()[15])


def detach_loop(path):
    """Detach a loop disk from its file. If it has an opener, such as udev, the kernel does it later."""
    run("losetup", "--detach", path)
    bound = pathlib.Path("/sys/block") / pathlib.Path(path).name / "loop"
    wait_until(lambda: not bound.exists(), f"{path} without its file")


@contextlib.contextmanager
def loop_disk(file, *options):
    """A loop disk over a file: it has a write cache, and no FUA of its own."""
    path = output("losetup", "--find", "--show", *options, file)
    try:
        yield path
    finally:
        detach_loop(path)


@contextlib.contextmanager
def held_partition(disk, number):
    """The path of a partition, once it is there. It stays meanwhile: udev reads the table of a disk again after a program
    had it open for writing, and without an opener its partitions would be away for that time."""
    path = f"{disk}p{number}" if disk[-1].isdigit() else f"{disk}{number}"

    def opened():
        try:
            return open(path, "rb")
        except OSError:
            return None

    with wait_until(opened, path):
        yield path


def _blkpg(disk, operation, number, start=0, length=0):
    partition = ctypes.create_string_buffer(struct.pack("qqi128x4x", start, length, number))
    with open(disk, "rb") as opened:
        fcntl.ioctl(opened, _BLKPG, struct.pack("iii4xQ", operation, 0, len(partition), ctypes.addressof(partition)))


@contextlib.contextmanager
def partition_without_table(disk, start, length):
    """A partition that no table of the disk has: `length` bytes from `start` bytes on. Debian 13 has no addpart."""
    _blkpg(disk, _BLKPG_ADD, 1, start, length)
    path = f"{disk}p1"
    try:
        wait_until(pathlib.Path(path).exists, path)
        yield path
    finally:
        _blkpg(disk, _BLKPG_DELETE, 1)


def dm_linear(name, disk, start, length):
    """A disk of dm: `length` bytes of another disk, from `start` bytes on."""
    return _dm(name, f"0 {length // 512} linear {disk} {start // 512}")


@contextlib.contextmanager
def _dm(name, table):
    """A disk of dm; `table` has a line for each range."""
    run("dmsetup", "create", name, input=table)
    path = f"/dev/mapper/{name}"
    try:
        wait_until(pathlib.Path(path).exists, path)
        yield path
    finally:
        run("dmsetup", "remove", "--retry", name)


@contextlib.contextmanager
def bad_disk(name, file, size, bad):
    """A disk of dm over a new file, in which each request from byte bad[0] up to bad[1] fails with EIO."""
    with open(file, "wb") as new:
        new.truncate(size)
    start, end = bad[0] // 512, bad[1] // 512
    with loop_disk(file) as disk:
        table = (f"0 {start} linear {disk} 0", f"{start} {end - start} error", f"{end} {size // 512 - end} linear {disk} {end}")
        with _dm(name, "\n".join(table)) as path:
            yield path


@contextlib.contextmanager
def dm_thin(name, directory, room, size):
    """Two thin volumes of `size` bytes, NAME-0 and NAME-1, in one pool with `room` bytes, which says ENOSPC at once."""
    with contextlib.ExitStack() as stack:
        disks = []
        for part, length in (("metadata", 4 << 20), ("data", room)):
            file = directory / f"{name}.{part}"
            file.write_bytes(b"")
            os.truncate(file, length)
            disks.append(stack.enter_context(loop_disk(file)))
        stack.enter_context(_dm(name, f"0 {room // 512} thin-pool {disks[0]} {disks[1]} 128 0 1 error_if_no_space"))
        volumes = []
        for number in range(2):
            run("dmsetup", "message", name, "0", f"create_thin {number}")
            volume = _dm(f"{name}-{number}", f"0 {size // 512} thin /dev/mapper/{name} {number}")
            volumes.append(stack.enter_context(volume))
        yield volumes


@contextlib.contextmanager
def null_blk(**attributes):
    """A null_blk disk of 64 MiB that remembers what is written, with attributes of its configfs."""
    run("modprobe", "null_blk", "nr_devices=0")
    if not (_CONFIG / "nullb").exists():
        run("mount", "-t", "configfs", "configfs", _CONFIG)
    config = _CONFIG / "nullb" / "nullb0"
    config.mkdir()
    try:
        for name, value in ({"size": 64, "memory_backed": 1} | attributes | {"power": 1}).items():
            (config / name).write_text(str(value), encoding="ascii")
        wait_until(pathlib.Path("/dev/nullb0").exists, "/dev/nullb0")
        yield "/dev/nullb0"
    finally:
        (config / "power").write_text("0", encoding="ascii")
        config.rmdir()


@contextlib.contextmanager
def scsi_debug(**parameters):
    """A scsi_debug disk of 64 MiB, with parameters of its module."""
    parameters = {"dev_size_mb": 64} | parameters
    run("modprobe", "scsi_debug", *(f"{name}={value}" for name, value in parameters.items()))
    try:
        (disk,) = wait_until(
            lambda: list(_SCSI.glob("adapter0/host*/target*/*/block/*")), "the disk of scsi_debug"
        )
        path = pathlib.Path("/dev") / disk.name
        wait_until(path.exists, path)
        yield str(path)
    finally:  # udev may still look at it
        wait_until(lambda: run("modprobe", "-r", "scsi_debug", check=False).returncode == 0, "scsi_debug unloaded")


def scsi_debug_holds(offset, length):
    """Whether any block of the range is provisioned, in a disk with lbp*=1: scsi_debug's map of 512-byte blocks."""
    first, behind = offset // 512, (offset + length) // 512
    entries = (_SCSI / "map").read_text(encoding="ascii").strip("\n\0").split(",")
    ranges = [entry.partition("-") for entry in entries if entry]
    return any(int(low) < behind and int(high or low) >= first for low, _, high in ranges)
