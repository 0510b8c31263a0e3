# SPDX-License-Identifier: MIT
"""Load that checks what it reads."""

import contextlib
import errno
import json
import os
import pathlib
import signal
import subprocess
from dataclasses import dataclass

from .disk import Disk
from .wait import wait_until

_STOP_LIMIT = 120
# Not about errors; the second: each job has a range of its own (--offset_increment).
_CHATTER = ("terminating on signal", "multiple writers may overwrite blocks", "only root may flush block devices")


@dataclass
class FioResult:
    """What fio says in the end."""

    error: int
    reads: int
    writes: int
    messages: str

    def assert_clean(self, errors=False):
        """No I/O error (with `errors`: some are allowed), no verify error, and fio has done I/O."""
        errors_allowed = (0, errno.EIO, errno.EREMOTEIO) if errors else (0,)
        assert self.error in errors_allowed and self.messages == "", f"fio found errors: {self}"
        assert self.writes > 0 and self.reads > 0, f"fio did too little: {self}"


@dataclass
class FileOnDisk:
    """What fio writes to, and the disk below it, which shows its progress."""

    path: pathlib.Path
    disk: Disk

    def completed(self):
        """How many reads and writes of the disk were answered so far."""
        return self.disk.completed()


class Disks:
    """Disks that one fio writes to in turn."""

    def __init__(self, disks):
        self.path = ":".join(disk.path for disk in disks)
        self._disks = disks

    def completed(self):
        """How many reads and writes of all of them were answered so far."""
        return sum(disk.completed() for disk in self._disks)


class Fio:
    """Random writes that are read back with crc32c, until stop() ends them. prefix: how a user runs it; the directory must be
    the user's to write to."""

    def __init__(self, directory, disk, *, size="32M", depth=16, jobs=1, name="fio", more=(), prefix=()):
        self._disk = disk
        self._json = directory / f"{name}.json"
        self._errors = directory / f"{name}.err"
        self._stderr = open(self._errors, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self._process = subprocess.Popen(
            [
                *prefix, "fio", f"--name={name}", f"--filename={disk.path}", f"--size={size}", f"--numjobs={jobs}",
                "--rw=randwrite", "--bsrange=4k-16k", "--bs_unaligned=0", f"--iodepth={depth}",
                "--ioengine=libaio", "--direct=1", "--verify=crc32c", "--verify_backlog=64",
                "--verify_fatal=1", "--serialize_overlap=1", "--randrepeat=0", "--time_based",
                f"--offset_increment={size}", "--runtime=3600", "--group_reporting",
                "--output-format=json", f"--output={self._json}", *more,
            ],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            start_new_session=True,
        )

    def wait_running(self, ios=50):
        """Wait for its I/O: fio takes seconds to start, and may end while it should go on."""
        before = self._disk.completed()

        def runs():
            assert self._process.poll() is None, f"fio ended too early: {self.finish()}"
            return self._disk.completed() >= before + ios

        wait_until(runs, "I/O from fio")

    @property
    def running(self):
        """Whether it is still at it: a verify error or an I/O error ends it."""
        return self._process.poll() is None

    def finish(self):
        """Stop it and return its verdict."""
        if self.running:
            self._process.send_signal(signal.SIGINT)
        self._process.wait(_STOP_LIMIT)
        self._stderr.close()
        messages = self._errors.read_text(encoding="utf-8")
        text = self._json.read_text(encoding="utf-8")
        start = text.find("\n{") + 1 if not text.startswith("{") else 0
        job = json.loads(text[start:])["jobs"][0]
        lines = (messages + "\n" + text[:start]).splitlines()
        return FioResult(
            error=job["error"],
            reads=job["read"]["total_ios"],
            writes=job["write"]["total_ios"],
            messages="\n".join(line for line in lines if line and not any(words in line for words in _CHATTER)),
        )

    def kill(self):
        """End it without a verdict, and its jobs, which are processes."""
        if self.running:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_STOP_LIMIT)
        self._stderr.close()


@contextlib.contextmanager
def burst(disk, directory, *options):
    """Requests as large and as many as the options say, until the end of the block."""
    command = [
        "fio", "--name=burst", f"--filename={disk.path}", "--ioengine=libaio", "--direct=1", "--iomem=mmap",
        "--thread", "--time_based", "--runtime=3600", *options,
    ]
    with subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            yield
            assert process.poll() is None, f"fio ended with {process.returncode}"
        finally:
            process.kill()
