"""What can be changed under a disk that is in use, and what is refused."""

import os
import pathlib
import shutil
import subprocess

import pytest

from harness import programs, ublk
from harness.api import loop_spec, null_spec
from harness.disk import Disk
from harness.fio import Fio

_RESTARTS = 6


def _open(disk):
    """Somebody who has the disk open, until terminated."""
    with open(disk.path, "rb") as held:
        return subprocess.Popen(["sleep", "600"], stdin=held)


def _close(process):
    process.kill()
    process.wait()


def _restart_under_load(daemon, fio, disk):
    for _ in range(_RESTARTS):
        before = daemon.api.get("data")["status"]["worker"]
        after = daemon.api.restart("data")["status"]
        assert after["phase"] == "Live" and after["worker"]["pid"] != before["pid"]
        assert after["worker"]["restarts"] == before["restarts"] + 1
        disk.wait_progress(20)
        assert fio.running


@pytest.mark.parametrize("on_crash", ["reissue", "queue"])
def test_restarts_under_load_without_an_error(ext4, file_of, daemon, directory, on_crash):
    if on_crash == "queue" and not ublk.features()["QUIESCE"]:
        return  # it is refused there: see below
    path = file_of(where=ext4)
    spec = loop_spec("data", path, queues=2, recovery={"onCrash": on_crash, "trigger": "manual"})
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    fio = Fio(directory, disk, jobs=2)
    try:
        fio.wait_running()
        _restart_under_load(daemon, fio, disk)
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert daemon.api.get("data")["generation"] == 1


def test_restart_of_a_queue_that_is_full(ext4, file_of, daemon, directory):
    """Where every tag is in use the driver has none left to tell the worker with."""
    path = file_of(where=ext4)
    disk = Disk(daemon.api.create(loop_spec("data", path, queues=1, queueDepth=2))["status"]["id"])
    fio = Fio(directory, disk, depth=32)
    try:
        fio.wait_running()
        _restart_under_load(daemon, fio, disk)
        fio.finish().assert_clean()
    finally:
        fio.kill()


def test_restart_survives_the_supervisor(daemon, file_of):
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    pid = daemon.worker_pid("data")
    api.ask("POST", "/devices/data/restart", 202)
    daemon.kill()
    daemon.start()
    api.wait_other_worker("data", pid)
    pid = daemon.worker_pid("data")
    daemon.kill()
    daemon.start()
    assert daemon.worker_pid("data") == pid, "what was done is not done again"
    assert disk.exists()


def test_restart_moves_to_a_newer_worker(make_daemon, directory, file_of):
    """An upgrade: the program is replaced, ublkd is started anew, disks follow one by one."""
    old = pathlib.Path(programs.worker()).read_bytes()
    version = subprocess.check_output([programs.worker(), "--version"], text=True).split()[-1]
    newer = version[:-1] + ("1" if version[-1] != "1" else "2")
    worker = directory / "ublkd-worker"
    shutil.copy(programs.worker(), worker)
    daemon = make_daemon(worker=worker).start()
    device = daemon.api.create(loop_spec("data", file_of()))
    assert device["status"]["worker"]["version"] == version
    daemon.stop()
    fresh = directory / "fresh"
    fresh.write_bytes(old.replace(version.encode() + b"\0", newer.encode() + b"\0"))
    fresh.chmod(0o755)
    os.replace(fresh, worker)
    daemon.start()
    assert daemon.api.get("data")["status"]["worker"]["version"] == version
    assert daemon.api.restart("data")["status"]["worker"]["version"] == newer


@pytest.mark.parametrize("on_crash", ["queue", "fail", "none"])
def test_restart_that_would_be_noticed_is_refused_while_in_use(api, on_crash):
    if on_crash == "fail" and not ublk.features()["USER_RECOVERY_FAIL_IO"]:
        return  # such a device cannot be made there
    device = api.create(null_spec("data", recovery={"onCrash": on_crash}))
    disk = Disk(device["status"]["id"])
    user = _open(disk)
    try:
        if on_crash == "queue" and ublk.features()["QUIESCE"]:
            after = api.restart("data")
        else:
            problem = api.restart("data", status=409)
            assert on_crash in problem["detail"] and str(user.pid) in problem["detail"]
            after = api.get("data")
            assert after["status"]["worker"] == device["status"]["worker"]
    finally:
        _close(user)
    pid = after["status"]["worker"]["pid"]
    after = api.restart("data")
    assert after["status"]["worker"]["pid"] != pid and after["status"]["id"] == disk.number


def test_restart_of_what_is_not_live(api, daemon, file_of):
    api.ask("POST", "/devices/nobody/restart", 404)
    api.create(null_spec("off", enabled=False))
    assert "disabled" in api.restart("off", status=409)["detail"]
    api.create(loop_spec("data", file_of(), recovery={"trigger": "manual"}))
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")
    assert api.restart("data")["status"]["phase"] == "Live"
