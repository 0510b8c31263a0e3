# SPDX-License-Identifier: MIT
"""The swap of a small machine is on a disk of ublkd, and a process needs more memory than the machine has. Workers die
below it, also when all memory waits for them. tests/kernel/run boots a machine of its own for this."""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from harness import groups
from harness.api import loop_spec
from harness.daemon import Daemon
from harness.disk import Disk
from harness.halt import halt
from harness.processes import Kind, processes
from harness.shell import run
from harness.wait import wait_until

_MIB = 1 << 20
_STORE = pathlib.Path("/dev/vda")
_SWAP = 512 * _MIB
_SWAPPED_MIN = 64 * _MIB
_KILLS = 2
# Each chunk has its own bytes. Chunks are read in any order, over and over; a line is printed after so many right ones.
_HOG = """
import mmap, random, sys
CHUNK, SHOWN = 65536, 128
chunks = int(sys.argv[1]) // CHUNK
memory = mmap.mmap(-1, chunks * CHUNK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
def content(chunk):
    return chunk.to_bytes(8, "little") * (CHUNK // 8)
for chunk in range(chunks):
    memory[chunk * CHUNK:(chunk + 1) * CHUNK] = content(chunk)
while True:
    print("right", flush=True)
    for _ in range(SHOWN):
        chunk = random.randrange(chunks)
        if memory[chunk * CHUNK:(chunk + 1) * CHUNK] != content(chunk):
            raise SystemExit(f"chunk {chunk} is wrong")
"""
_LINES = 4  # what has to be right after each death: 32 MiB, of which a half was swapped out


def _number(path, key):
    """A number of a file of /proc, such as VmSwap."""
    (value,) = re.findall(rf"^{key}:?\s+(\d+)", pathlib.Path(path).read_text(encoding="ascii"), re.MULTILINE)
    return int(value)


def _in_swap(pid):
    return _number(f"/proc/{pid}/status", "VmSwap") << 10


def _state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


@pytest.fixture(autouse=True)
def locked():
    """These tests must not wait for the worker that they have stopped: they are not swapped out either."""
    everything = 1 | 2  # MCL_CURRENT, MCL_FUTURE
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mlockall(everything) == 0, os.strerror(ctypes.get_errno())
    yield
    libc.munlockall()


@pytest.fixture(name="daemon")
def daemon_with_its_database_on_a_disk(make_daemon, directory):
    """Its database is on a file system as on a machine in use; the runtime directory is on a tmpfs."""
    disk = directory / "disk"
    disk.mkdir()
    run("mkfs.ext4", "-q", "-F", _STORE)
    run("mount", _STORE, disk)
    (disk / "state").mkdir()
    # As the units: else files in the runtime directory are swapped out, and the next ublkd waits for them in vain.
    (groups.ROOT / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
    group = groups.ROOT / "unswapped"
    group.mkdir()
    (group / "memory.swap.max").write_text("0", encoding="ascii")
    prefix = ("sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(group))
    yield make_daemon(state=disk / "state", prefix=prefix).start()
    # The teardown of make_daemon removes what is left; the file system stays until the machine ends.


@pytest.fixture(name="swap")
def swap_on_a_disk(daemon: Daemon, directory):
    """The disk, with the swap of the machine on it."""
    path = directory / "disk" / "swap.img"
    # In full: else the first write of a page changes the file system, which waits for memory.
    run("dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={_SWAP // _MIB}", "oflag=direct", "conv=fsync", "status=none")
    status = daemon.api.create(loop_spec("swap", path, queues=2))["status"]
    assert status["dataPath"] == "zero-copy"  # else the copy of each page that is written needs memory
    disk = Disk(status["id"])
    run("mkswap", disk.path)
    run("swapon", disk.path)
    yield disk
    run("swapoff", disk.path)
    daemon.api.delete("swap")


@contextlib.contextmanager
def _hog(directory):
    """A process that reads more memory than there is, over and over; it is the first to go if there is none."""
    size = (_number("/proc/meminfo", "MemTotal") << 10) + 96 * _MIB
    lines = directory / "lines"
    with open(lines, "w", encoding="ascii") as file, subprocess.Popen(
        ["choom", "-n", "1000", "--", sys.executable, "-c", _HOG, str(size)], stdout=file, stderr=file
    ) as process:
        try:
            yield process, lines
        finally:
            process.kill()


def _rounds(process, lines):
    text = lines.read_text(encoding="ascii")
    assert process.poll() is None, f"the process that swaps has ended with {process.returncode}: {text}"
    return text.count("right")


def _wait_right(hog, more=_LINES):
    """Wait until so much more of the memory was read, and was as it should be."""
    seen = _rounds(*hog)
    wait_until(lambda: _rounds(*hog) >= seen + more, lambda: f"memory read: {_rounds(*hog) - seen} of {more}", timeout=180)


def _ours(daemon):
    found = processes()
    return [daemon.pid, *found[Kind.WORKER], *found[Kind.SPARE]]


def _exhaust(daemon, hog):
    """Let the worker stand still until the process that swaps waits for it; return the worker's pid."""
    pid = daemon.worker_pid("swap")
    assert halt(pid)
    wait_until(lambda: _state(hog[0].pid) == "D", "the process waiting for a page")
    return pid


def test_a_machine_that_swaps_survives_its_workers(daemon, swap, directory):
    """Nothing hangs, nothing is killed for lack of memory, and each page comes back as it was."""
    killed = _number("/proc/vmstat", "oom_kill")
    with _hog(directory) as hog:
        _wait_right(hog, 1)
        for _ in range(_KILLS):
            swap.wait_progress(100)
            pid = daemon.kill_worker("swap")
            daemon.api.wait_other_worker("swap", pid)
        pid = _exhaust(daemon, hog)
        os.kill(pid, signal.SIGKILL)
        daemon.api.wait_other_worker("swap", pid)
        _wait_right(hog)
        pid = _exhaust(daemon, hog)
        daemon.kill()
        os.kill(pid, signal.SIGKILL)
        daemon.start()
        daemon.api.wait_other_worker("swap", pid)
        _wait_right(hog)
        assert _in_swap(hog[0].pid) > _SWAPPED_MIN
        swapped = {pid: _in_swap(pid) for pid in _ours(daemon)}
        assert len(swapped) >= 2 and not any(swapped.values()), swapped
    assert _number("/proc/vmstat", "oom_kill") == killed
