"""Nobody serves a file that somebody else serves: not another ublkd, not after a death, not beside QEMU."""

import contextlib
import fcntl
import os
import struct

from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.wait import wait_until

_GETLK, _SETLK = 36, 37  # F_OFD_*: Python 3.11 does not name them
_FLOCK = "@hhqqi"


def _is_locked(path):
    """Whether somebody has an OFD lock on the first byte of the file that is not QEMU's."""
    with open(path, "rb") as file:
        wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 512, 0)
        found = struct.unpack(_FLOCK, fcntl.fcntl(file, _GETLK, wanted))
    return found[0] != fcntl.F_UNLCK


@contextlib.contextmanager
def _locked(path):
    """Another program has locked the file, and is this process.

    A worker that has just died may hold it for a moment, until its rings are gone.
    """
    wait_until(lambda: not _is_locked(path), "a file that nobody has locked")
    with open(path, "r+b") as file:
        fcntl.fcntl(file, _SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        yield


def test_between_two_ublkd(make_daemon, file_of):
    path, parts, image = file_of(), file_of("parts.img"), file_of("image.img")
    one, other = make_daemon().start(), make_daemon().start()
    one.api.create(loop_spec("data", path))
    problem = other.api.create(loop_spec("theft", path), status=422)
    assert f"is in use by process {one.worker_pid('data')} (ublkd-worker data)" in problem["detail"], problem
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


def test_who_came_while_the_disk_had_no_worker(daemon, file_of):
    """It keeps the file, and the disk waits: its I/O is neither lost nor written beside somebody else's."""
    path = file_of()
    api = daemon.api
    device = api.create(loop_spec("data", path, recovery={"trigger": "manual"}))
    disk = Disk(device["status"]["id"])
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")
    with _locked(path):
        write = disk.write_later(0, block("a"))
        api.ask("POST", "/devices/data/recover", (200, 202))
        wait_until(lambda: api.get("data")["status"]["phase"] == "Backoff", "the recovery refused")
        # The next worker finds it out before the driver hears of it, and can say who it is.
        api.wait_for("data", lambda it: f"process {os.getpid()} (" in condition_of(it)["message"], "says who")
        assert not write.done and disk.path
    assert api.wait_phase("data", "Live")["status"]["id"] == disk.number
    assert write.result() is None
    assert disk.read(0, 4096) == block("a")
