# SPDX-License-Identifier: MIT
"""Targets on other targets: a part of a store is served, recovered, adopted, grown and restarted as the store itself would be."""

import os
import random

import pytest

from harness import ublk
from harness.api import condition_of
from harness.disk import Disk, block
from harness.fio import Fio
from harness.marks import variants
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_FIRST = 3 * _MIB + 4096  # where the disk begins in the file


def _part_of(path, **more):
    """A part of a part of a file."""
    loop = {"type": "loop", "path": str(path), "offset": 4096}
    inner = {"type": "linear", "offset": _MIB, "child": loop}
    return {"name": "data", "target": {"type": "linear", "offset": 2 * _MIB, "child": inner}, **more}


def _bytes_of(path, offset, length):
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def test_a_part_lies_in_the_file_as_it_is(file_of, daemon):
    path = file_of(size=16 * _MIB)
    before = _bytes_of(path, 0, _FIRST)
    device = daemon.api.create(_part_of(path))
    disk = Disk(device["status"]["id"])
    assert device["status"]["size"] == 16 * _MIB - _FIRST
    assert device["status"]["backing"]["path"] == str(path)
    disk.write(8192, block("a"))
    disk.flush()
    assert disk.read(8192, 4096) == block("a")
    assert _bytes_of(path, _FIRST + 8192, 4096) == block("a")
    assert _bytes_of(path, 0, _FIRST) == before


_ZERO_COPY = [pytest.param("zero-copy", marks=pytest.mark.both)] if ublk.features()["SUPPORT_ZERO_COPY"] else []


@pytest.mark.parametrize("data_path", [*variants("auto"), "copy", "user-copy", *_ZERO_COPY])
def test_each_data_path_goes_through_a_part(ext4, file_of, daemon, data_path):
    path = file_of(where=ext4, size=16 * _MIB)
    alone = daemon.api.create({"name": "alone", "target": {"type": "loop", "path": str(path)}, "dataPath": data_path, "readOnly": True})
    daemon.api.delete("alone")
    device = daemon.api.create(_part_of(path, dataPath=data_path))
    assert device["status"]["dataPath"] == alone["status"]["dataPath"]
    disk = Disk(device["status"]["id"])
    for offset in (0, 4096, 8 * _MIB):
        data = block(chr(ord("a") + offset % 7)) * 32
        disk.write(offset, data)
        disk.flush()
        assert disk.read(offset, len(data)) == data
        assert _bytes_of(path, _FIRST + offset, len(data)) == data


@pytest.mark.parametrize("data_path", ["copy", "user-copy", *_ZERO_COPY])
def test_each_data_path_goes_through_a_stripe(ext4, file_of, daemon, data_path):
    """A request over four chunks, and one within each of two: the bytes of both files, also after the death of the worker."""
    chunk, size = 16 << 10, 4 * _MIB
    paths = [file_of(f"{letter}.img", where=ext4, size=size) for letter in "ab"]
    expected = bytearray(2 * size)
    children = [{"type": "loop", "path": str(path)} for path in paths]
    spec = {"name": "data", "target": {"type": "stripe", "chunk": chunk, "children": children}, "dataPath": data_path}
    device = daemon.api.create(spec)
    assert device["status"]["dataPath"] == data_path
    disk = Disk(device["status"]["id"])

    def write(offset, length):
        data = random.Random(offset).randbytes(length)
        disk.write(offset, data)
        expected[offset:offset + length] = data
        assert disk.read(offset, length) == data

    def assert_stored():
        disk.flush()
        assert disk.read(0, len(expected)) == expected
        for number, path in enumerate(paths):
            for row in range(size // chunk):
                begin = (2 * row + number) * chunk
                assert _bytes_of(path, row * chunk, chunk) == expected[begin:begin + chunk], (path, row)

    for offset in (0, 3 * chunk, 5 * chunk + 4096, 2 * size - 4 * chunk):
        write(offset, 4 * chunk)
    for offset in (20 * chunk, 21 * chunk + 4096):
        write(offset, 4096)
    assert_stored()
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    assert daemon.api.get("data")["status"]["dataPath"] == data_path
    write(30 * chunk + 4096, 4 * chunk)
    write(2 * size - 4096, 4096)
    assert_stored()


def test_parts_of_one_file_are_two_disks_and_the_same_part_is_refused(file_of, daemon):
    path = file_of(size=16 * _MIB)
    part = lambda name, offset: {"name": name, "target": {
        "type": "linear", "offset": offset, "length": 4 * _MIB, "child": {"type": "loop", "path": str(path)}}}
    first, second = (Disk(daemon.api.create(part(name, offset))["status"]["id"]) for name, offset in (("a", 0), ("b", 4 * _MIB)))
    first.write(0, block("1"))
    second.write(0, block("2"))
    assert first.read(0, 4096) == block("1") and second.read(0, 4096) == block("2")
    daemon.api.create(part("c", 2 * _MIB), wait=None)
    refused = daemon.api.wait_for("c", lambda device: (condition_of(device) or {}).get("reason") == "BackingInUse", "refused")
    assert refused["status"]["device"] is None


def test_a_part_grows_with_its_file_up_to_its_length(file_of, daemon):
    if not ublk.features()["UPDATE_SIZE"]:
        assert os.uname().release.startswith("6.12"), "no disk grows while it is served, on a kernel that can do it"
        return
    path = file_of(size=16 * _MIB)
    size = 16 * _MIB - _FIRST
    device = daemon.api.create(_part_of(path, size=size))
    disk, pid = Disk(device["status"]["id"]), daemon.worker_pid("data")
    os.truncate(path, 20 * _MIB)
    daemon.api.put(_part_of(path, size=size + 4 * _MIB))
    wait_until(lambda: disk.size() == size + 4 * _MIB, "the disk has grown")
    disk.write(size + 4 * _MIB - 4096, block("z"))
    assert _bytes_of(path, 20 * _MIB - 4096, 4096) == block("z")
    assert daemon.worker_pid("data") == pid


def test_a_part_of_a_file_that_is_cut_off_fails(file_of, daemon):
    path = file_of(size=16 * _MIB)
    device = daemon.api.create(_part_of(path))
    disk = Disk(device["status"]["id"])
    disk.write(12 * _MIB, block("y"))
    os.truncate(path, 8 * _MIB)
    with pytest.raises(OSError):
        disk.write(12 * _MIB, block("n"))
    daemon.api.wait_for("data", lambda found: (condition_of(found, "BackingWhole") or {}).get("reason") == "BackingTruncated", "cut off")


def test_a_killed_worker_and_a_killed_supervisor_lose_nothing(ext4, file_of, daemon, directory):
    path = file_of(where=ext4, size=64 * _MIB)
    device = daemon.api.create(_part_of(path, size=48 * _MIB, recovery={"onCrash": "reissue"}))
    disk = Disk(device["status"]["id"])
    fio = Fio(directory, disk)
    try:
        fio.wait_running()
        for _ in range(4):
            daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
            disk.wait_progress(20)
        pid = daemon.worker_pid("data")
        daemon.kill()
        disk.wait_progress(20)
        daemon.start()
        assert daemon.worker_pid("data") == pid  # adopted
        daemon.api.restart("data")
        daemon.api.wait_other_worker("data", pid)
        disk.wait_progress(20)
    finally:
        job = fio.finish()
    job.assert_clean()


def test_a_stripe_is_served_and_recovered(daemon):
    tree = {"type": "stripe", "chunk": 65536, "children": [{"type": "null"}, {"type": "null"}, {"type": "null"}]}
    device = daemon.api.create({"name": "data", "target": tree, "size": "1GiB"})
    disk = Disk(device["status"]["id"])
    disk.write(65536 - 4096, block("x") * 4)
    assert disk.read(65536 - 4096, 16384) == bytes(16384)
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    assert disk.read(0, 4096) == bytes(4096)


@pytest.mark.parametrize("target,pointer", [
    ({"type": "stripe", "children": [{"type": "null"}, {"type": "loop", "path": "x"}]}, "/target/children/1/path"),
    ({"type": "linear", "child": {"type": "loop", "path": "x"}}, "/target/child/path"),
])
def test_a_fault_is_named_by_its_pointer(daemon, target, pointer):
    problem = daemon.api.create({"name": "data", "target": target}, status=422)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert daemon.api.names() == []
