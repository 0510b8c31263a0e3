# SPDX-License-Identifier: MIT
"""The file system below the store of a disk becomes read-only, or is unmounted lazily."""

import contextlib
import pathlib

import pytest

from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.kernel_disks import loop_disk
from harness.shell import run
from harness.wait import holds_for, wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20


def _is_read_only(mount):
    """Whether the file system itself is, and not just this mount of it."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields = line.split()
        if fields[4] == str(mount):
            return "ro" in fields[-1].split(",")
    raise AssertionError(f"{mount} is not mounted")


def _mounts_of_disks():
    """Where file systems that lie on block devices are mounted for writing."""
    lines = [line.split() for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    return [fields[1] for fields in lines if fields[0].startswith("/dev/") and "rw" in fields[3].split(",")]


@contextlib.contextmanager
def _all_read_only():
    """What the kernel does in an emergency: file systems on disks become read-only, also under writers."""
    mounts = _mounts_of_disks()
    pathlib.Path("/proc/sysrq-trigger").write_text("u", encoding="ascii")
    try:
        for mount in mounts:
            wait_until(lambda mount=mount: _is_read_only(mount), f"{mount} read-only")
        yield
    finally:
        for mount in mounts:
            run("mount", "-o", "remount,rw", mount)


@pytest.fixture(name="files")
def file_system(directory):
    """An ext4 of this test's own: (its disk, where it is mounted)."""
    image, mount = directory / "ext4.img", directory / "ext4"
    with open(image, "wb") as file:
        file.truncate(64 * _MIB)
    mount.mkdir()
    run("mkfs.ext4", "-qF", image)
    with loop_disk(image) as disk:
        run("mount", disk, mount)
        try:
            yield disk, mount
        finally:
            run("umount", mount, check=False)


def _store(mount):
    path = mount / "disk.img"
    path.write_bytes(block("z") * (8 * _MIB // 4096))
    return path


def test_a_remount_is_refused_while_a_disk_is_on_it(files, daemon):
    """By the kernel, as for every file that is open for writing: also between two workers."""
    api, (_, mount) = daemon.api, files
    device = api.create(loop_spec("data", _store(mount), recovery={"trigger": "manual"}))
    assert run("mount", "-o", "remount,ro", mount, check=False).returncode != 0
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")
    assert run("mount", "-o", "remount,ro", mount, check=False).returncode != 0
    api.ask("POST", "/devices/data/recover?wait=ready&timeout=60s", 200)
    Disk(device["status"]["id"]).write(0, block("a"))
    api.delete("data")
    run("mount", "-o", "remount,ro", mount)


def test_a_file_system_that_becomes_read_only(files, daemon):
    """Its disk is read on. The next worker cannot write: I/O waits, nothing fails, and goes on with all data."""
    api, (_, mount) = daemon.api, files
    path = _store(mount)
    run("sync", "-f", path)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    with _all_read_only():
        assert disk.read(0, 4096) == block("a")
        pid = daemon.kill_worker("data")
        write = disk.write_later(4096, block("b"))
        api.wait_for("data", lambda d: condition_of(d)["reason"] == "BackingFileReadOnly", "that cannot write")
        holds_for(lambda: not write.done, 1, "the write waits")
    api.wait_other_worker("data", pid)
    assert write.result() is None
    assert disk.read(0, 12288) == block("a") + block("b") + block("z")
    api.delete("data")
    assert path.read_bytes()[:12288] == block("a") + block("b") + block("z")


def test_a_file_system_that_is_unmounted_lazily(files, daemon):
    """The kept descriptor keeps it alive: the next worker writes to the same file, and all of it is there later."""
    api, (loop, mount) = daemon.api, files
    path = _store(mount)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    run("umount", "--lazy", mount)
    elsewhere = api.wait_for("data", lambda d: (condition_of(d, "PathLeadsToStore") or {}).get("status") == "False", "away")
    assert condition_of(elsewhere, "PathLeadsToStore")["reason"] == "PathGone"
    for offset, letter in ((4096, "b"), (8192, "c")):
        pid = daemon.kill_worker("data")
        api.wait_other_worker("data", pid)
        disk.write(offset, block(letter))
    assert disk.read(0, 16384) == block("a") + block("b") + block("c") + block("z")
    api.delete("data")
    run("mount", loop, mount)
    assert path.read_bytes()[:16384] == block("a") + block("b") + block("c") + block("z")
