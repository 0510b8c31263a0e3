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
    """Another program has locked the file, and is this process."""
    with open(path, "r+b") as file:
        fcntl.fcntl(file, _SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        yield


def _assert_refused(problem, pid, name):
    assert f"is in use by process {pid} ({name})" in problem["detail"], problem


def test_another_ublkd_does_not_serve_it_too(make_daemon, file_of):
    path = file_of()
    one, other = make_daemon().start(), make_daemon().start()
    one.api.create(loop_spec("data", path))
    problem = other.api.create(loop_spec("theft", path), status=422)
    _assert_refused(problem, one.worker_pid("data"), "ublkd-worker data")
    problem = other.api.create(loop_spec("glance", path, readOnly=True), status=422)
    _assert_refused(problem, one.worker_pid("data"), "ublkd-worker data")
    one.kill()  # its worker serves on
    assert other.api.phase("theft") == "Backoff"
    one.start()
    other.api.delete("glance")
    one.api.delete("data")
    assert other.api.wait_phase("theft", "Live")["status"]["device"]


def test_read_only_disks_share_a_file(make_daemon, file_of):
    path = file_of()
    one, other = make_daemon().start(), make_daemon().start()
    one.api.create(loop_spec("data", path, readOnly=True))
    other.api.create(loop_spec("data", path, readOnly=True))
    problem = other.api.create(loop_spec("writer", path), status=422)
    assert "is in use by process" in problem["detail"]


def test_parts_of_a_file(make_daemon, file_of):
    path = file_of(size=4 << 20)
    one, other = make_daemon().start(), make_daemon().start()
    one.api.create(loop_spec("low", path, size="1MiB"))
    other.api.create(loop_spec("high", path, {"offset": "1MiB"}))
    one.api.create(loop_spec("both", path, size="2MiB"), status=422)


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
    assert not _is_locked(path)


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
