# SPDX-License-Identifier: MIT
"""Unusable backing stores: ?wait=ready reports them at once, and ublkd tries again."""

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk
from harness.marks import variants
from harness.shell import run

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20


def _refused(api, spec, reason, *values):
    """The device cannot start, reports why (with its path, if not with these values), and keeps its record."""
    problem = api.create(spec, status=422)
    values = values or (spec["target"]["path"],)
    assert problem["reason"] == reason and all(value in problem["detail"] for value in values), problem
    device = api.get(spec["name"])
    ready = condition_of(device)
    assert device["status"]["phase"] in ("Backoff", "Starting") and ready["status"] == "False"
    assert all(value in ready["message"] for value in values) and ublk.numbers() == []


def test_a_missing_file_that_is_created_later(api, directory, file_of):
    _refused(api, loop_spec("data", directory / "late.img"), "BackingFileMissing")
    file_of("late.img")
    assert Disk(api.wait_phase("data", "Live")["status"]["id"]).size() == 64 * _MIB


def test_empty(api, file_of):
    _refused(api, loop_spec("data", file_of(size=0)), "BackingFileEmpty")


def test_too_small(api, file_of):
    path = file_of(size=_MIB)
    _refused(api, loop_spec("data", path, size="2MiB"), "BackingTooSmall", "1MiB", "2MiB")
    path.write_bytes(bytes(2 * _MIB))
    api.wait_phase("data", "Live")


def test_smaller_than_a_block(api, file_of):
    _refused(api, loop_spec("data", file_of(size=100)), "BackingTooSmall", "100 bytes", "512")


def test_offset_beyond_the_end(api, file_of):
    _refused(api, loop_spec("data", file_of(size=_MIB), {"offset": "2MiB"}), "OffsetBeyondEnd")


def test_a_file_whose_size_is_not_a_multiple_of_the_block_size(api, file_of):
    device = api.create(loop_spec("data", file_of(size=_MIB + 100)))
    assert Disk(device["status"]["id"]).size() == _MIB


def test_directory(api, directory):
    _refused(api, loop_spec("data", directory), "BackingFileUnsuitable")


def test_character_device(api):
    _refused(api, loop_spec("data", "/dev/null"), "BackingFileUnsuitable")


def test_not_permitted(ext4, api, file_of):
    path = file_of(where=ext4)
    run("chattr", "+i", path)
    try:
        _refused(api, loop_spec("data", path), "BackingFileNotPermitted")
    finally:
        run("chattr", "-i", path)
    api.wait_phase("data", "Live")
    api.delete("data")


def test_read_only_file_system(directory, api, file_of):
    mount = directory / "ro"
    mount.mkdir()
    run("mount", "-t", "tmpfs", "tmpfs", mount)
    try:
        path = file_of(where=mount)
        run("mount", "-o", "remount,ro", mount)
        _refused(api, loop_spec("data", path), "BackingFileReadOnly")
        device = api.put(loop_spec("data", path, readOnly=True))
        assert device["status"]["phase"] == "Live"
        api.delete("data")
    finally:
        run("umount", mount)


def test_direct_io_that_the_store_cannot_do(api, directory, file_of):
    """A ramfs has no O_DIRECT: asking for it is an error, not a silent fall-back."""
    mount = directory / "ramfs"
    mount.mkdir()
    run("mount", "-t", "ramfs", "none", mount)
    try:
        path = file_of(where=mount)
        problem = api.create(loop_spec("data", path, {"directIo": "on"}), status=422)
        assert problem["reason"] == "DirectIoUnavailable" and str(path) in problem["detail"]
        api.delete("data")
    finally:
        run("umount", mount)


def test_files_of_the_kernel_itself_are_not_a_store(api, directory):
    """Some have a size, and some do what is written to them: none becomes a disk, writable or not."""
    debugfs, configfs = directory / "debugfs", directory / "configfs"
    for kind, mount in (("debugfs", debugfs), ("configfs", configfs)):
        mount.mkdir()
        run("mount", "-t", kind, "none", mount)
    try:
        (debugfs_file, *_) = [path for path in debugfs.iterdir() if path.is_file()]
        for path in ("/proc/kcore", "/proc/kmsg", "/sys/kernel/notes", "/proc/self/mem", debugfs_file):
            for read_only in (False, True):
                problem = api.create(loop_spec("data", path, size="1MiB", readOnly=read_only), status=422)
                assert problem["reason"] in ("BackingFileUnsuitable", "BackingFileNotPermitted"), problem
                assert read_only is False or problem["reason"] == "BackingFileUnsuitable", problem
                assert api.get("data")["status"]["device"] is None
                api.delete("data")
    finally:
        run("umount", debugfs)
        run("umount", configfs)


@pytest.mark.parametrize("second", ["whole", *variants("overlap"), "read-only"])
def test_in_use_by_another_device_of_ours(api, file_of, second):
    path = file_of()
    api.create(loop_spec("first", path, size="2MiB"))
    spec = {
        "whole": loop_spec("second", path),
        "overlap": loop_spec("second", path, {"offset": "1MiB"}, size="4MiB"),
        "read-only": loop_spec("second", path, readOnly=True),
    }[second]
    problem = api.create(spec, status=422)
    node = api.get("first")["status"]["device"]
    assert f'"first" ({node})' in problem["detail"] and problem["reason"] == "BackingInUse"
    assert api.phase("first") == "Live" and len(ublk.numbers()) == 1
    api.delete("first")
    api.wait_phase("second", "Live")


def test_size_not_a_multiple_of_the_block_size_is_reported_from_the_spec(api):
    problem = api.create(null_spec("data", size=1000000 // 512 * 512, blockSize=4096), status=422)
    assert any("size" in error["pointer"].lower() for error in problem["errors"])
    api.ask("GET", "/devices/data", 404)
    api.create(null_spec("data", size=1000), status=422)
    assert api.names() == []
