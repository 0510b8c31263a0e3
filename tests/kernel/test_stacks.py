# SPDX-License-Identifier: MIT
"""What the system builds on disks: swap, and disks in files on disks. Workers die below it."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from harness import groups
from harness.api import loop_spec
from harness.disk import Disk
from harness.fio import FileOnDisk, Fio
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_KILLS = 3
_LIMIT = 32 * _MIB
# Each page has its own bytes, and is read again and again; a line is printed each time that all were right.
_HOG = """
import mmap
PAGES, SIZE = 16384, 4096
memory = mmap.mmap(-1, PAGES * SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def content(page):
    return page.to_bytes(8, "little") * (SIZE // 8)
for page in range(PAGES):
    memory[page * SIZE:(page + 1) * SIZE] = content(page)
while True:
    print("written", flush=True)
    for page in range(PAGES):
        if memory[page * SIZE:(page + 1) * SIZE] != content(page):
            raise SystemExit(f"page {page} is wrong")
"""


@contextlib.contextmanager
def _mounted(disk, point):
    point.mkdir()
    run("mount", disk.path, point)
    try:
        yield point
    finally:
        run("umount", point)


def _kill(daemon, names):
    """Kill workers at the same time, and wait for the next ones."""
    pids = {name: daemon.worker_pid(name) for name in names}
    for name in names:
        daemon.kill_worker(name)
    for name, pid in pids.items():
        daemon.api.wait_other_worker(name, pid)


def _make(daemon, name, path, size):
    with open(path, "wb") as file:
        file.truncate(size)
    disk = Disk(daemon.api.create(loop_spec(name, path))["status"]["id"])
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", disk.path)
    return disk


def _work_over_deaths(daemon, directory, upper, path):
    """fio verifies what it writes to a file on the upper disk while either worker dies, both, and the manager."""
    load = Fio(directory, FileOnDisk(path, upper), depth=4, size="16M")
    try:
        for names in (["lower"], ["upper"], ["lower", "upper"]):
            load.wait_running()
            _kill(daemon, names)
        load.wait_running()
        pids = [daemon.worker_pid(name) for name in ("lower", "upper")]
        daemon.kill()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        daemon.start()
        for name, pid in zip(("lower", "upper"), pids):
            daemon.api.wait_other_worker(name, pid)
        load.wait_running()
        load.finish().assert_clean()
    finally:
        load.kill()


def test_a_disk_in_a_file_on_a_disk(daemon, ext4, directory):
    """Each has a file system. Whichever process dies, what was written is there, and neither needs a repair."""
    lower = _make(daemon, "lower", ext4 / "lower.img", 160 * _MIB)
    with _mounted(lower, directory / "lower"):
        upper = _make(daemon, "upper", directory / "lower" / "upper.img", 96 * _MIB)
        with _mounted(upper, directory / "upper"):
            path = directory / "upper" / "file"
            run("fallocate", "--length", "16M", path)
            _work_over_deaths(daemon, directory, upper, path)
        run("fsck.ext4", "-f", "-n", upper.path)
        daemon.api.delete("upper")
    run("fsck.ext4", "-f", "-n", lower.path)
    daemon.api.delete("lower")


@contextlib.contextmanager
def _poor_group():
    """A control group whose processes must swap."""
    (groups.ROOT / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
    group = groups.ROOT / "poor"
    group.mkdir()
    (group / "memory.max").write_text(str(_LIMIT), encoding="ascii")
    try:
        yield group
    finally:
        wait_until(lambda: groups.read(group, "cgroup.procs") == "", "an empty group")
        group.rmdir()


@contextlib.contextmanager
def _swapping(group, directory):
    """A process in the group that needs more than it may have."""
    lines = directory / "lines"
    with open(lines, "w", encoding="ascii") as file, subprocess.Popen(
        ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, sys.executable, "-c", _HOG], stdout=file, stderr=file
    ) as process:
        try:
            yield process, lines
        finally:
            process.kill()


def _rounds(process, lines):
    text = pathlib.Path(lines).read_text(encoding="ascii")
    assert process.poll() is None, f"the process that swaps has ended with {process.returncode}: {text}"
    return text.count("written")


def test_swap_over_the_deaths_of_its_worker(daemon, ext4, directory):
    """A page that was swapped out comes back as it was."""
    path = ext4 / "swap.img"
    with open(path, "wb") as file:
        file.truncate(128 * _MIB)
    disk = Disk(daemon.api.create(loop_spec("data", path))["status"]["id"])
    run("mkswap", disk.path)
    run("swapon", disk.path)
    try:
        with _poor_group() as group, _swapping(group, directory) as (process, lines):
            for _ in range(_KILLS):
                seen = _rounds(process, lines)
                wait_until(lambda seen=seen: _rounds(process, lines) > seen, "all pages read once more")
                disk.wait_progress(100)
                _kill(daemon, ["data"])
            seen = _rounds(process, lines)
            wait_until(lambda: _rounds(process, lines) > seen + 1, "all pages read after the last death")
            assert int(groups.read(group, "memory.swap.current")) > 16 * _MIB
    finally:
        run("swapoff", disk.path)
    daemon.api.delete("data")
