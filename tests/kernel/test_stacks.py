# SPDX-License-Identifier: MIT
"""What the system builds on disks: LUKS, LVM, MD, btrfs, and disks in files on disks. Workers die below it.

For swap see tests/kernel/pressure; for boots and shutdowns tests/kernel/boot."""

import os
import signal

import pytest

from harness import stacks
from harness.api import loop_spec
from harness.disk import Disk
from harness.fio import FileOnDisk, Fio
from harness.shell import run
from harness.stacks import mounted

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20


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
    return Disk(daemon.api.create(loop_spec(name, path))["status"]["id"])


def _work_over_deaths(daemon, directory, names, disk, path):
    """fio verifies what it writes to a file, for which `disk` works, while each worker dies, all, and the manager."""
    run("fallocate", "--length", "16M", path)
    load = Fio(directory, FileOnDisk(path, disk), depth=4, size="16M")
    try:
        for dying in [[name] for name in names] + ([names] if len(names) > 1 else []):
            load.wait_running()
            _kill(daemon, dying)
        load.wait_running()
        pids = [daemon.worker_pid(name) for name in names]
        daemon.kill()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        daemon.start()
        for name, pid in zip(names, pids):
            daemon.api.wait_other_worker(name, pid)
        load.wait_running()
        load.finish().assert_clean()
    finally:
        load.kill()


def test_a_disk_in_a_file_on_a_disk(daemon, ext4, directory):
    """Each has a file system. Whichever process dies, what was written is there, and neither needs a repair."""
    lower = _make(daemon, "lower", ext4 / "lower.img", 160 * _MIB)
    run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", lower.path)
    with mounted(lower.path, directory / "lower"):
        upper = _make(daemon, "upper", directory / "lower" / "upper.img", 96 * _MIB)
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", upper.path)
        with mounted(upper.path, directory / "upper") as point:
            _work_over_deaths(daemon, directory, ["lower", "upper"], upper, point / "file")
        run("fsck.ext4", "-f", "-n", upper.path)
        daemon.api.delete("upper")
    run("fsck.ext4", "-f", "-n", lower.path)
    daemon.api.delete("lower")


@pytest.mark.parametrize("kind", stacks.ALL, ids=lambda kind: kind.name)
@pytest.mark.storm
def test_a_stack_over_the_deaths_of_workers(daemon, ext4, directory, kind):
    """No layer sees an error: nothing is lost, no mirror drops a disk, and nothing needs a repair."""
    stack = kind()
    names = [f"{kind.name}-{number}" for number in range(kind.disks)]
    disks = [_make(daemon, name, ext4 / f"{name}.img", stacks.SIZE) for name in names]
    stacks.write_key()
    stack.build([disk.path for disk in disks])
    try:
        stack.make_file_system()
        with mounted(stack.top, directory / "top") as point:
            _work_over_deaths(daemon, directory, names, disks[0], point / "file")
            if hasattr(stack, "errors"):
                assert not any(stack.errors(point)), stack.errors(point)
        stack.check()
    finally:
        stack.close()
    for name in names:
        daemon.api.delete(name)
