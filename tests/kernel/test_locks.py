# SPDX-License-Identifier: MIT
"""A file is served by one process at a time: with another ublkd, after a death, beside QEMU."""

import contextlib
import fcntl
import os
import pathlib
import signal
import struct
import subprocess
import sys

import pytest

from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_GETLK, _SETLK, _SETLKW = 36, 37, 38  # F_OFD_*: Python 3.11 does not name them
_FLOCK = "@hhqqi"


def _is_locked(path):
    """Return whether a process other than QEMU has an OFD lock on the first byte of the file."""
    with open(path, "rb") as file:
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 512, 0)
        found = struct.unpack(_FLOCK, fcntl.fcntl(file, _GETLK, wanted))
    return found[0] != fcntl.F_UNLCK


@contextlib.contextmanager
def _locked(path):
    """Another program has locked the file, and is this process.

    A worker that has just died may hold it for a moment, until its rings are gone.
    """
    wait_until(lambda: not _is_locked(path), "a file without locks")
    with open(path, "r+b") as file:
        fcntl.fcntl(file, _SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        yield


def test_between_two_ublkd(make_daemon, file_of):
    path, parts, image = file_of(), file_of("parts.img"), file_of("image.img")
    one, other = make_daemon().start(), make_daemon().start()
    one.api.create(loop_spec("data", path))
    problem = other.api.create(loop_spec("theft", path), status=422)
    assert f"process {one.worker_pid('data')} (ublkd-worker data)" in problem["detail"], problem
    # What does not overlap, or is not written, is shared.
    one.api.create(loop_spec("low", parts, size="1MiB"))
    other.api.create(loop_spec("high", parts, {"offset": "1MiB"}))
    one.api.create(loop_spec("image", image, readOnly=True))
    other.api.create(loop_spec("image", image, readOnly=True))
    one.kill()
    assert _is_locked(path)  # its workers serve on
    one.start()
    one.api.delete("data")
    other.api.ask("POST", "/devices/theft/recover", (200, 202))
    other.api.wait_phase("theft", "Live")


def test_the_lock_follows_the_worker(daemon, file_of):
    path = file_of()
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    assert _is_locked(path)
    pid = daemon.kill_worker("data")
    disk.write(0, block("a"))
    pid = api.wait_other_worker("data", pid)["status"]["worker"]["pid"]
    assert _is_locked(path)
    api.restart("data")
    assert daemon.worker_pid("data") != pid and _is_locked(path)
    disk.write(4096, block("b"))
    api.delete("data")
    wait_until(lambda: not _is_locked(path), "the lock gone with the worker's rings")


def _read_lock(file):
    fcntl.fcntl(file, _SETLK, struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))


def _leave_alone(daemon, path):
    """ublkd and the worker die: the store is unlocked when the kernel has freed the worker's rings."""
    pid = daemon.worker_pid("data")
    daemon.kill()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not _is_locked(path), "a file without locks")


def test_no_other_lock_holder_while_the_disk_has_no_worker(daemon, file_of):
    """Not even a reader that waits for that moment gets the lock."""
    path = file_of()
    api = daemon.api
    device = api.create(loop_spec("data", path, recovery={"trigger": "manual"}))
    disk = Disk(device["status"]["id"])
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")
    with open(path, "r+b") as file:
        for take in (_read_lock, lambda f: fcntl.fcntl(f, _SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0))):
            with pytest.raises(OSError):
                take(file)
    # ublkd itself has the lock: the sentence names the device, not the process.
    problem = api.create(loop_spec("theft", path), status=422)
    assert f'"data" (/dev/ublkb{device["status"]["id"]})' in problem["detail"], problem
    api.delete("theft")
    api.ask("POST", "/devices/data/recover?wait=ready&timeout=60s", 200)
    disk.write(0, block("a"))
    assert disk.read(0, 4096) == block("a")
    api.delete("data")
    wait_until(lambda: not _is_locked(path), "the lock gone with the disk")


class _WaitingReader:
    """A process that waits until it gets a read lock on all of the file, and exits then."""

    _PROGRAM = f"""if True:
        import fcntl, os, struct, sys
        file = open(sys.argv[1], "rb")
        wanted = struct.pack("{_FLOCK}", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(file, {_SETLKW}, wanted)
    """

    def __init__(self, path):
        self._process = subprocess.Popen([sys.executable, "-c", self._PROGRAM, str(path)])
        self.check_waits()

    def check_waits(self):
        """Check that it has no lock. A change of the lock that it waits for may wake it for a moment."""
        wait_until(self._is_waiting, "a reader that waits for the lock")

    def _is_waiting(self):
        """Whether the kernel has it wait in its fcntl(): /proc/locks names no process for such a lock."""
        call = pathlib.Path(f"/proc/{self._process.pid}/syscall").read_text(encoding="ascii").split()
        return len(call) > 2 and int(call[2], 16) == _SETLKW

    def wait(self):
        """Return its exit status, once it had the lock."""
        return self._process.wait(60)

    def close(self):
        """End it, if it still waits."""
        self._process.kill()
        self._process.wait()


def test_a_reader_that_waits_for_the_lock_gets_it_when_the_disk_is_gone(daemon, file_of):
    """The kernel gives a lock to the first in the queue as soon as it is free: it is never free before."""
    path = file_of()
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    with contextlib.closing(_WaitingReader(path)) as reader:
        for letter in "abc":
            pid = daemon.kill_worker("data")
            api.wait_other_worker("data", pid)
            reader.check_waits()
            api.restart("data")
            reader.check_waits()
            disk.write(0, block(letter))
        assert disk.read(0, 4096) == block("c")
        reader.check_waits()
        api.delete("data")
        assert reader.wait() == 0


def test_a_reader_does_not_keep_a_disk_from_its_recovery(daemon, file_of):
    """ublkd reports it, it keeps its lock, and no other process can begin to write."""
    path = file_of()
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    _leave_alone(daemon, path)
    with open(path, "rb") as reader, open(path, "r+b") as writer:
        _read_lock(reader)
        daemon.start()
        api.wait_phase("data", "Live")
        disk.write(0, block("a"))
        events = api.ask("GET", "/events?device=data", 200, headers={"Accept": "application/json"})["items"]
        assert "BackingRead" in [event["reason"] for event in events]
        with pytest.raises(OSError):
            fcntl.fcntl(writer, _SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    # The reader has exited: the whole lock is taken.
    with open(path, "rb") as reader:

        def refused():
            try:
                _read_lock(reader)
            except OSError:
                return True
            fcntl.fcntl(reader, _SETLK, struct.pack(_FLOCK, fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0))
            return False

        wait_until(refused, "the bytes locked for writing")
    api.delete("data")


@pytest.mark.variant
def test_another_lock_holder_came_while_the_store_was_free(daemon, file_of):
    """It keeps the file, and the disk waits: its I/O is neither lost nor written beside another writer's."""
    path = file_of()
    api = daemon.api
    device = api.create(loop_spec("data", path))
    disk = Disk(device["status"]["id"])
    _leave_alone(daemon, path)
    with _locked(path):
        write = disk.write_later(0, block("a"))
        daemon.start()
        wait_until(lambda: api.get("data")["status"]["phase"] == "Backoff", "the recovery refused")
        # The next worker finds the lock before the driver gets a command, and reports its holder.
        api.wait_for("data", lambda it: f"process {os.getpid()} (" in condition_of(it)["message"], "says who")
        assert not write.done and disk.path
    assert api.wait_phase("data", "Live")["status"]["id"] == disk.number
    assert write.result() is None
    assert disk.read(0, 4096) == block("a")
