# SPDX-License-Identifier: MIT
"""What recovery.onCrash, trigger and giveUpAfter promise, each with I/O in flight and new I/O."""

import os
import signal

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.wait import holds_for, wait_until


def _recovery(on_crash=None, trigger="auto", **more):
    return {"recovery": {**({"onCrash": on_crash} if on_crash else {}), "trigger": trigger, **more}}


def _kill_with_io_in_flight(daemon, store, disk, name="data"):
    """A write that has reached the backing store, and a worker that dies under it. Returns (write, pid)."""
    with store.holding():
        write = disk.write_later(0, block("w"))
        store.wait_arrived(1)
        pid = daemon.kill_worker(name)
    return write, pid


def _offers(on_crash):
    return on_crash != "fail" or ublk.features()["USER_RECOVERY_FAIL_IO"]


@pytest.mark.parametrize("on_crash", ["reissue", "fail", *(pytest.param(way, marks=pytest.mark.variant) for way in (None, "queue", "none"))])
def test_in_flight_io_when_the_worker_dies(store, daemon, on_crash):
    if not _offers(on_crash):
        _assert_refused(daemon.api, loop_spec("data", store.path, **_recovery(on_crash)))
        return
    api = daemon.api
    device = api.create(loop_spec("data", store.path, queues=1, **_recovery(on_crash)))
    number = device["status"]["id"]
    disk = Disk(number)
    write, pid = _kill_with_io_in_flight(daemon, store, disk)
    expected = None if on_crash in (None, "reissue") else "EIO"
    assert write.result() == expected
    after = api.wait_other_worker("data", pid)
    assert after["status"]["id"] == number and after["status"]["worker"]["restarts"] == 1
    if on_crash != "none":
        assert after["status"]["recoveries"]["count"] == 1
    disk.write(8192, block("n"))
    assert disk.read(8192, 4096) == block("n")
    if expected is None:
        assert disk.read(0, 4096) == block("w")
    api.delete("data")


def _assert_refused(api, spec):
    """A kernel that would drop the wish silently: a clear sentence, and no disk."""
    problem = api.create(spec, status=422)
    assert "recovery.onCrash" in problem["detail"]
    if spec["name"] in api.names():
        device = api.get(spec["name"])
        assert device["status"]["phase"] == "Failed" and condition_of(device)["status"] == "False"
    assert ublk.disks() == []


def _wait_without_worker(api, name, phase):
    """The kernel may know of a death before ublkd does: the phase comes first."""
    return api.wait_for(
        name, lambda device: device["status"]["phase"] == phase and device["status"]["worker"] is None,
        f"{phase}, without a worker")


@pytest.mark.long
@pytest.mark.parametrize("on_crash", [pytest.param("reissue", marks=pytest.mark.variant), "queue"])
def test_manual_trigger_holds_new_io_until_recover(api, daemon, on_crash):
    device = api.create(null_spec("data", **_recovery(on_crash, "manual")))
    disk = Disk(device["status"]["id"])
    daemon.kill_worker("data")
    lost = _wait_without_worker(api, "data", "Quiesced")
    assert condition_of(lost)["reason"] == "WaitsForRecover"
    wait_until(lambda: ublk.info(disk.number)["state"] == ublk.QUIESCED, "the kernel without a server")
    write = disk.write_later(0, block("w"))
    holds_for(lambda: not write.done and api.phase("data") == "Quiesced", 2, "the write waits")
    api.ask("POST", "/devices/data/recover", (200, 202))
    assert write.result() is None
    back = api.wait_phase("data", "Live")
    assert back["status"]["id"] == disk.number and back["status"]["recoveries"]["count"] == 1
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")


@pytest.mark.long
def test_manual_fail_fails_new_io_until_recover(api, daemon):
    spec = null_spec("data", **_recovery("fail", "manual"))
    if not _offers("fail"):
        _assert_refused(api, spec)
        return
    disk = Disk(api.create(spec)["status"]["id"])
    daemon.kill_worker("data")
    _wait_without_worker(api, "data", "Quiesced")
    wait_until(lambda: ublk.info(disk.number)["state"] == ublk.FAIL_IO, "the kernel failing I/O")
    assert disk.write_later(0, block("w")).result() in ("EIO", "EREMOTEIO")
    assert disk.read_later(0, 4096).result() in ("EIO", "EREMOTEIO")
    api.ask("POST", "/devices/data/recover", (200, 202))
    api.wait_phase("data", "Live")
    disk.write(0, block("w"))


@pytest.mark.long
def test_manual_none_recreates_the_disk_on_recover(api, daemon):
    number = api.create(null_spec("data", **_recovery("none", "manual")))["status"]["id"]
    uid = api.get("data")["uid"]
    daemon.kill_worker("data")
    _wait_without_worker(api, "data", "Failed")
    wait_until(lambda: not Disk(number).exists(), "the disk gone")
    holds_for(lambda: api.phase("data") == "Failed", 1, "it waits for recover")
    api.ask("POST", "/devices/data/recover", (200, 202))
    back = api.wait_phase("data", "Live")
    assert back["status"]["id"] == number and back["uid"] == uid
    Disk(number).write(0, block("w"))


@pytest.mark.long
def test_manual_survives_a_restart_of_the_supervisor(api, daemon):
    """Neither losing that it is to be held, nor holding a device that never ran."""
    disk = Disk(api.create(null_spec("data", **_recovery("queue", "manual")))["status"]["id"])
    daemon.kill()
    os.kill(ublk.info(disk.number)["pid"], signal.SIGKILL)
    wait_until(lambda: ublk.info(disk.number)["state"] == ublk.QUIESCED, "the kernel without a server")
    daemon.start()
    api.wait_phase("data", "Quiesced")
    api.ask("POST", "/devices/data/recover", (200, 202))
    api.wait_phase("data", "Live")


def _give_up_soon(api, spec, request):
    """Only now, when a request waits: this may take longer than the patience of ublkd."""
    request.wait_held()
    api.put({**spec, "recovery": {**spec["recovery"], "giveUpAfter": "3s"}}, wait=None)


@pytest.mark.long
@pytest.mark.parametrize("on_crash", [pytest.param("reissue", marks=pytest.mark.variant), "queue"])
def test_give_up_after_fails_what_waits(api, daemon, on_crash):
    spec = null_spec("data", **_recovery(on_crash, "manual", giveUpAfter="1h"))
    disk = Disk(api.create(spec)["status"]["id"])
    daemon.kill_worker("data")
    wait_until(lambda: ublk.info(disk.number)["state"] == ublk.QUIESCED, "the kernel without a server")
    write = disk.write_later(0, block("w"))
    _give_up_soon(api, spec, write)
    assert write.result() in ("EIO", "ENODEV", "ENXIO")
    given_up = api.wait_phase("data", "Failed", "Live")
    if given_up["status"]["phase"] == "Failed":
        api.ask("POST", "/devices/data/recover", (200, 202))
    back = api.wait_phase("data", "Live")
    assert back["status"]["id"] == disk.number
    disk.write(0, block("w"))


@pytest.mark.long
def test_give_up_after_does_nothing_while_the_recovery_is_quick(api, daemon):
    disk = Disk(api.create(null_spec("data", **_recovery("reissue", giveUpAfter="60s")))["status"]["id"])
    for _ in range(3):
        api.wait_other_worker("data", daemon.kill_worker("data"))
        disk.write(0, block("w"))


@pytest.mark.long
def test_give_up_after_also_counts_when_the_backing_store_is_away(api, daemon, file_of):
    """The device says all the while what is missing."""
    path = file_of()
    spec = loop_spec("data", path, **_recovery("reissue", giveUpAfter="1h"))
    disk = Disk(api.create(spec)["status"]["id"])
    pid = daemon.worker_pid("data")
    daemon.kill()  # with both dead no process has a descriptor of the store any more
    os.kill(pid, signal.SIGKILL)
    away = path.rename(path.with_name("away"))
    daemon.start()
    read = disk.read_later(0, 4096)
    api.wait_phase("data", "Backoff")
    _give_up_soon(api, spec, read)
    assert read.result() in ("EIO", "ENODEV", "ENXIO")
    given_up = api.wait_for("data", lambda d: d["status"]["phase"] == "Backoff" and not disk.exists(), "without a disk")
    assert condition_of(given_up)["reason"] == "BackingFileMissing" and str(path) in condition_of(given_up)["message"]
    away.rename(path)
    assert api.wait_phase("data", "Live")["status"]["id"] == disk.number


def test_recover_on_a_live_device_changes_nothing(api, daemon):
    before = api.create(null_spec("data"))
    api.ask("POST", "/devices/data/recover", (200, 202))
    holds_for(lambda: daemon.worker_pid("data") == before["status"]["worker"]["pid"], 1, "the same worker")


def test_an_idle_worker_that_dies_is_replaced_at_once(api, daemon):
    """With I/O only before and after: only the supervisor can notice."""
    disk = Disk(api.create(null_spec("data"))["status"]["id"])
    pid = daemon.kill_worker("data")
    after = api.wait_other_worker("data", pid)
    assert after["status"]["recoveries"] == {"count": 1, "lastMs": after["status"]["recoveries"]["lastMs"]}
    assert after["status"]["recoveries"]["lastMs"] > 0
    assert condition_of(after)["status"] == "True"
    disk.write(0, block("w"))


def test_a_device_that_is_deleted_while_it_is_held(api, daemon):
    disk = Disk(api.create(null_spec("data", **_recovery("reissue", "manual")))["status"]["id"])
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")
    write = disk.write_later(0, block("w"))
    holds_for(lambda: not write.done, 1, "the write waits")
    api.delete("data", force=True)
    assert write.result() is not None


@pytest.mark.long
def test_statistics_go_on_after_a_workers_death(api, daemon, file_of):
    """The counts belong to the disk: the next worker adds to the counts of the last."""
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    for _ in range(20):
        disk.write(0, block("a"))
    before = api.ask("GET", "/devices/data/stats", 200)["total"]["ops"]["write"]
    pid = daemon.kill_worker("data")
    api.wait_other_worker("data", pid)
    for _ in range(5):
        disk.write(0, block("b"))
    after = api.ask("GET", "/devices/data/stats", 200)["total"]["ops"]["write"]
    assert before["requests"] == 20 and after["requests"] == 25, f"{before}, then {after}"
    assert after["bytes"] == before["bytes"] + 5 * 4096
    api.delete("data")
