# SPDX-License-Identifier: MIT
"""The backing stores of loop targets: null_blk disks, files on tmpfs and on ext4."""

import os

from commands import read, run, write

_CONFIG = "/sys/kernel/config/nullb"
_FILE_SIZE = 256 << 20
_TMPFS = "/run/bench-tmpfs"
_EXT4 = "/run/bench-ext4"
# As folders of configfs, and as disks where the kernel says so.
_NULL_BLK_NAMES = ("ublkd-bench", "ublkd-bench-second", "ublkd-bench-ext4")


class Backends:
    """Creates each backend at its first use, and keeps it until close()."""

    def __init__(self):
        self._paths = {}

    def path(self, name):
        if name not in self._paths:
            self._paths[name] = _MAKERS[name]()
        return self._paths[name]

    def close(self):
        """Remove the backends: this may not run in a guest."""
        for folder in (_TMPFS, _EXT4):
            if os.path.ismount(folder):
                run("umount", folder)
            if os.path.isdir(folder):
                os.rmdir(folder)
        for name in _NULL_BLK_NAMES:
            folder = os.path.join(_CONFIG, name)
            if os.path.isdir(folder):
                write(os.path.join(folder, "power"), 0)
                os.rmdir(folder)
        self._paths = {}


def null_blk(name, size_mib, memory_backed=False):
    """Return the path of a new null_blk disk, which answers in the caller's own context."""
    if not os.path.isdir(_CONFIG):
        run("modprobe", "null_blk", "nr_devices=0")
        if not os.path.ismount(os.path.dirname(_CONFIG)):
            run("mount", "-t", "configfs", "configfs", os.path.dirname(_CONFIG))
    folder = os.path.join(_CONFIG, name)
    os.mkdir(folder)
    attributes = {
        "size": size_mib,
        "blocksize": 512,
        "queue_mode": 2,  # multi-queue
        "irqmode": 0,  # complete in the submitter's context
        "submit_queues": os.cpu_count(),
        "hw_queue_depth": 256,
        "max_sectors": 2048,  # no split of a large request
        "memory_backed": int(memory_backed),
    }
    for attribute, value in attributes.items():
        write(os.path.join(folder, attribute), value)
    write(os.path.join(folder, "power"), 1)
    run("udevadm", "settle")
    own = f"/dev/{name}"  # newer kernels name the disk after the folder
    path = own if os.path.exists(own) else f"/dev/nullb{read(os.path.join(folder, 'index'))}"
    use_no_scheduler(path)
    return path


def use_no_scheduler(path):
    """Switch off the I/O scheduler of a disk, so that all disks are alike; a disk of device mapper has none."""
    scheduler = f"/sys/block/{os.path.basename(path)}/queue/scheduler"
    if os.path.exists(scheduler):
        write(scheduler, "none")


def _fill(path):
    """Write a file in full, so that no read meets a hole."""
    block = b"\xa5" * (1 << 20)
    with open(path, "wb", buffering=0) as output:
        for _ in range(_FILE_SIZE // len(block)):
            output.write(block)
        os.fsync(output.fileno())


def _null_blk_disk():
    return null_blk(_NULL_BLK_NAMES[0], 16 << 10)


def _second_null_blk_disk():
    return null_blk(_NULL_BLK_NAMES[1], 16 << 10)


def _tmpfs_file():
    os.makedirs(_TMPFS, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", _TMPFS)
    _fill(f"{_TMPFS}/file")
    return f"{_TMPFS}/file"


def _ext4_file():
    disk = null_blk(_NULL_BLK_NAMES[2], 400, memory_backed=True)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", disk)
    os.makedirs(_EXT4, exist_ok=True)
    run("mount", disk, _EXT4)
    _fill(f"{_EXT4}/file")
    return f"{_EXT4}/file"


_MAKERS = {
    "null_blk": _null_blk_disk,
    "second null_blk": _second_null_blk_disk,
    "tmpfs": _tmpfs_file,
    "ext4": _ext4_file,
}
