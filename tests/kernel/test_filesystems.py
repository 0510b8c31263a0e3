# SPDX-License-Identifier: MIT
"""File systems on our disks survive the death of workers."""

import hashlib
import subprocess

import pytest

from harness.api import loop_spec
from harness.disk import Disk
from harness.shell import run

_MIB = 1 << 20
_FILE_SYSTEMS = {
    "ext4": (64, ["mkfs.ext4", "-q", "-F"], ["fsck.ext4", "-f", "-n"]),
    "xfs": (320, ["mkfs.xfs", "-q", "-f"], ["xfs_repair", "-n"]),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ext4", pytest.param("xfs", marks=pytest.mark.variant)])
def test_mkfs_mount_write_kill_unmount_fsck(ext4, daemon, file_of, directory, kind):
    size, mkfs, fsck = _FILE_SYSTEMS[kind]
    api = daemon.api
    device = api.create(loop_spec("data", file_of(where=ext4, size=size * _MIB)))
    disk = Disk(device["status"]["id"])
    mount = directory / "mnt"
    mount.mkdir()
    run(*mkfs, disk.path)
    run("mount", disk.path, mount)
    try:
        sums = {}
        for i in range(4):
            data = hashlib.sha256(bytes([i])).digest() * 65536
            sums[f"file-{i}"] = hashlib.sha256(data).hexdigest()
            with subprocess.Popen(
                ["dd", f"of={mount}/file-{i}", "bs=64k", "conv=fsync", "status=none"], stdin=subprocess.PIPE
            ) as writer:
                writer.stdin.write(data[: len(data) // 2])
                pid = daemon.kill_worker("data")
                writer.stdin.write(data[len(data) // 2 :])
                writer.stdin.close()
                assert writer.wait(120) == 0
            api.wait_other_worker("data", pid)
        run("sync")
    finally:
        run("umount", mount)
    run(*fsck, disk.path)
    api.wait_other_worker("data", daemon.kill_worker("data"))
    run("mount", disk.path, mount)
    try:
        for name, digest in sums.items():
            assert hashlib.sha256((mount / name).read_bytes()).hexdigest() == digest
    finally:
        run("umount", mount)
    run(*fsck, disk.path)
    api.delete("data")
