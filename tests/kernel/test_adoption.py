# SPDX-License-Identifier: MIT
"""Supervisors come and go; workers, names and numbers stay."""

import random
import shutil
import time

import pytest

from harness import ublk
from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.fio import Fio
from harness.shell import run
from harness.wait import wait_until

_NAMES = ("one", "two", "three")


def _facts(api):
    return {
        name: (status["worker"]["pid"], status["id"], status["phase"])
        for name, status in ((name, api.get(name)["status"]) for name in _NAMES)
    }


@pytest.mark.long
@pytest.mark.parametrize("end", ["kill", pytest.param("stop", marks=pytest.mark.variant)])
def test_the_next_ublkd_knows_the_same_workers(ext4, daemon, file_of, directory, end):
    api = daemon.api
    disks = [
        Disk(api.create(spec)["status"]["id"])
        for spec in (
            null_spec("one", queues=1),
            loop_spec("two", file_of(where=ext4), queues=2),
            loop_spec("three", file_of("3.img"), id=9),
        )
    ]
    before = _facts(api)
    fio = Fio(directory, disks[1])
    try:
        fio.wait_running()
        for _ in range(2):
            getattr(daemon, end)()
            disks[1].wait_progress(50)
            for disk in disks:
                disk.write(48 << 20, block("x"))
            daemon.start()
            disks[1].wait_progress(50)
            assert _facts(api) == before
        fio.finish().assert_clean()
    finally:
        fio.kill()
    for name in _NAMES:
        status = api.get(name)["status"]
        assert status["worker"]["restarts"] == 0 and status["recoveries"]["count"] == 0
    api.wait_other_worker("one", daemon.kill_worker("one"))
    counted = api.wait_for("one", lambda d: d["status"]["recoveries"]["count"] == 1, "recovered")["status"]
    getattr(daemon, end)()
    daemon.start()
    status = api.get("one")["status"]
    assert status["recoveries"] == counted["recoveries"] and status["worker"]["restarts"] == 1
    for name in _NAMES:
        api.delete(name)


@pytest.mark.variant  # tests/api/daemon_runtime_dir_test.py does it without disks
@pytest.mark.long
def test_a_runtime_directory_that_is_removed(daemon, file_of, directory):
    """The disk is served on, the host names its worker, and a restart makes that known to the next ublkd again."""
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    api.create(null_spec("other"))
    pid = daemon.worker_pid("data")
    fio = Fio(directory, disk)
    try:
        fio.wait_running()
        shutil.rmtree(daemon.runtime)
        wait_until(daemon.api.is_ready, "a new socket")
        disk.wait_progress(50)
        (problem,) = api.ask("GET", "/host", 200)["problems"]
        assert problem["title"] == "RuntimeDirectoryGone" and "'ublkctl restart data other'" in problem["detail"]
        (event,) = [event for event in daemon.events("data") if event["reason"] == "RuntimeDirectoryGone"]
        assert str(pid) in event["message"] and event["type"] == "Warning"
        assert api.ask("GET", "/devices/data/stats", 409)["type"].endswith("not-possible-now")
        # A worker that dies is replaced.
        api.wait_other_worker("other", daemon.kill_worker("other"))
        (problem,) = api.ask("GET", "/host", 200)["problems"]
        assert "'ublkctl restart data'" in problem["detail"]
        daemon.ctl("restart", "data")
        assert api.ask("GET", "/host", 200)["problems"] == []
        assert api.ask("GET", "/devices/data/stats", 200)["total"]
        pids = {name: daemon.worker_pid(name) for name in ("data", "other")}
        disk.wait_progress(50)
        daemon.kill()
        daemon.start()
        assert {name: daemon.worker_pid(name) for name in pids} == pids
        disk.wait_progress(50)
        fio.finish().assert_clean()
    finally:
        fio.kill()


@pytest.mark.long
def test_a_worker_that_dies_without_a_supervisor(api, daemon):
    number = api.create(null_spec("data"))["status"]["id"]
    pid = daemon.worker_pid("data")
    daemon.stop()
    run("kill", "-KILL", pid)
    write = Disk(number).write_later(0, block("w"))
    daemon.start()
    assert write.result() is None
    after = api.wait_other_worker("data", pid)
    assert after["status"]["id"] == number


@pytest.mark.long
def test_a_spec_that_was_deleted_before_the_supervisor_died(api, daemon):
    """A removal that was accepted is carried out by the next one."""
    disk = Disk(api.create(null_spec("data"))["status"]["id"])
    api.ask("DELETE", "/devices/data", 202)
    daemon.kill()
    daemon.start()
    wait_until(lambda: api.names() == [] and not disk.exists(), "the removal done")


@pytest.mark.long
@pytest.mark.storm
def test_killed_at_any_moment_of_a_creation_or_removal(api, daemon):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for i in range(8):
        name = f"disk-{i}"
        api.create(null_spec(name, queues=1), wait=None)
        time.sleep(chance.uniform(0, 0.4))  # the moment is what is varied
        daemon.kill()
        daemon.start()
        number = api.wait_phase(name, "Live")["status"]["id"]
        Disk(number).write(0, block("w"))
        assert ublk.numbers() == [number]
        api.ask("DELETE", f"/devices/{name}", 202)
        time.sleep(chance.uniform(0, 0.2))
        daemon.kill()
        daemon.start()
        wait_until(lambda: api.names() == [] and ublk.numbers() == [], f"{name} gone")


@pytest.mark.long
def test_two_supervisors_with_directories_of_their_own(make_daemon):
    first, second = make_daemon().start(), make_daemon().start()
    one = first.api.create(null_spec("data"))
    two = second.api.create(null_spec("data", size="32MiB"))
    assert one["status"]["id"] != two["status"]["id"]
    first.kill()
    first.start()
    assert first.api.phase("data") == "Live" and first.api.names() == ["data"]
    first.api.delete("data")
    assert second.api.phase("data") == "Live" and Disk(two["status"]["id"]).size() == 32 << 20


@pytest.mark.long  # the second one waits for the lock for half a minute
def test_a_second_supervisor_in_the_same_directories_is_refused(api, daemon):
    api.create(null_spec("data"))
    result = run(*daemon.command(), check=False)
    assert result.returncode != 0 and str(daemon.runtime) in result.stdout
    assert api.phase("data") == "Live"


@pytest.mark.long
def test_a_disk_that_another_program_stops_or_deletes_is_recreated(api):
    number = api.create(null_spec("data"))["status"]["id"]
    for act in ("stop", "del"):
        pid = api.get("data")["status"]["worker"]["pid"]
        run(_stranger(), act, number)
        after = api.wait_other_worker("data", pid)
        assert after["status"]["id"] == number
        Disk(number).write(0, block("w"))


def _stranger():
    from harness import programs  # pylint: disable=import-outside-toplevel

    return programs.stranger()
