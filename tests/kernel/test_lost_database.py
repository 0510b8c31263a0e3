# SPDX-License-Identifier: MIT
"""A database that is lost, or is an older copy, loses no disk: ublkd adopts what it finds, under load."""

import os
import pathlib
import shutil
import signal

import pytest

from harness import programs, ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.fio import Fio
from harness.processes import workers
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_LINKS = pathlib.Path("/dev/ublk/by-name")


def _wipe(daemon):
    shutil.rmtree(daemon.state)


def _keep_copy(daemon):
    """Of the database as it is now, with ublkd killed and started again."""
    daemon.kill()
    shutil.copytree(daemon.state, daemon.directory / "backup")
    daemon.start()


def _put_back(daemon):
    shutil.rmtree(daemon.state)
    shutil.copytree(daemon.directory / "backup", daemon.state)


def _host(api):
    return api.ask("GET", "/host", 200)


def _adoptable(api):
    """By name."""
    return {item["name"]: item for item in _host(api)["adoptable"]}


def _adopt(api, **request):
    """What came of it, by uid."""
    answer = api.ask("POST", "/devices/adopt", 200, json=request)
    assert answer["remaining"] == 0
    return {item["uid"]: item for item in answer["items"]}


def _identity(device):
    status = device["status"]
    return device["uid"], device["generation"], status["id"], status["device"], status["links"], device["spec"]


def _wait_live(api, name):
    return api.wait_for(
        name,
        lambda d: d["status"]["phase"] == "Live" and condition_of(d)["reason"] == "Live" and d["status"]["worker"],
        "Live",
    )


def _ctl(daemon, *arguments, status=0):
    done = run(programs.ublkctl(), "--socket", daemon.runtime / "ublkd.sock", *arguments, check=False)
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("killed", [(), ("before",), ("after",)], ids=["workers-live", "killed-before", "killed-after"])
@pytest.mark.storm
def test_a_wiped_database_under_load(ext4, daemon, file_of, directory, killed):
    """One is adopted by its uid, the others all at once; the load sees no error."""
    api = daemon.api
    names = ("one", "two", "three")
    specs = [loop_spec(name, file_of(f"{name}.img", where=ext4), queues=2, labels={"n": name}) for name in names]
    for spec in specs:
        api.create(spec)
    before = {name: _identity(api.get(name)) for name in names}
    disks = {name: Disk(before[name][2]) for name in names}
    pids = {name: daemon.worker_pid(name) for name in names}
    loads = {name: Fio(directory, disks[name], name=name) for name in ("one", "two")}
    try:
        for load in loads.values():
            load.wait_running()
        daemon.kill()
        if "before" in killed:
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
        _wipe(daemon)
        daemon.start()
        assert api.names() == [] and sorted(ublk.numbers()) == sorted(disk.number for disk in disks.values())
        found = _adoptable(api)
        for name in names:
            item = found[name]
            assert (item["uid"], item["id"], item["device"]) == (before[name][0], before[name][2], before[name][3])
            assert item["reason"] is None and not item["outdated"] and "ublkctl adopt" in item["detail"]
        if killed:
            wait_until(lambda: "before" not in killed or not any(item["served"] for item in _adoptable(api).values()),
                       "the dead workers seen")
        else:
            assert all(item["served"] and item["state"] == "live" for item in found.values())
            disks["one"].wait_progress(50)
        if "after" in killed:
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
        unknown = "00000000-0000-4000-8000-000000000000"
        came = _adopt(api, uids=[before["one"][0], unknown])
        assert came[before["one"][0]]["adopted"] and came[before["one"][0]]["name"] == "one"
        assert not came[unknown]["adopted"] and came[unknown]["reason"] == "Unknown"
        assert set(_adopt(api, all=True)) == {before["two"][0], before["three"][0]}
        for name in names:
            device = _wait_live(api, name)
            assert _identity(device) == before[name]
            assert os.path.realpath(_LINKS / name) == before[name][3]
            if not killed:
                assert device["status"]["worker"]["pid"] == pids[name]
        for name, load in loads.items():
            disks[name].wait_progress(50)
            load.finish().assert_clean()
    finally:
        for load in loads.values():
            load.kill()
    assert _host(api)["adoptable"] == [] and _host(api)["problems"] == []
    assert len(workers()) == 3
    for spec in specs:
        assert api.create(spec, status=200)["uid"] == before[spec["name"]][0]


@pytest.mark.long
@pytest.mark.storm
@pytest.mark.parametrize("killed", [False, True], ids=["worker-lives", "worker-killed"])
def test_an_older_database_under_load(ext4, daemon, file_of, directory, killed):
    """Its record would have the disk stopped and made again: the disk is served on, until the newer one is adopted."""
    api = daemon.api
    spec = loop_spec("data", file_of(where=ext4), queues=2)
    api.create(spec)
    _keep_copy(daemon)
    newer = {**spec, "queueDepth": 32}  # a new epoch
    api.put(newer)
    before = _identity(_wait_live(api, "data"))
    disk, pid = Disk(before[2]), daemon.worker_pid("data")
    load = Fio(directory, disk)
    try:
        load.wait_running()
        daemon.kill()
        _put_back(daemon)
        for _ in range(2):
            daemon.start()
            held = api.get("data")
            assert held["status"]["phase"] == "Failed" and condition_of(held)["reason"] == "RecordOutdated"
            assert held["generation"] == 1
            shown = api.wait_for("data", lambda d: d["status"]["device"], "shown with its disk")["status"]
            assert shown["phase"] == "Failed" and shown["device"] == before[3] and shown["worker"]["pid"] == pid
            disk.wait_progress(50)
            daemon.kill()
        daemon.start()
        item = _adoptable(api)["data"]
        assert item["outdated"] and item["reason"] is None and item["device"] == before[3] and item["served"]
        for method, path, more in (
            ("PUT", "/devices/data", {"json": spec}),
            ("PUT", "/devices/data", {"json": {**spec, "labels": {"a": "b"}}}),
            ("POST", "/devices/data/restart", {}),
            ("POST", "/devices/data/recover", {}),
            ("DELETE", "/devices/data", {}),
            ("DELETE", "/devices/data?force=true", {}),
        ):
            problem = api.ask(method, path, 409, **more)
            assert problem["type"].endswith("record-outdated") and "ublkctl adopt data" in problem["detail"]
        if killed:
            os.kill(pid, signal.SIGKILL)
        else:
            disk.wait_progress(50)
            assert workers() == [pid]
        assert _adopt(api, uids=[before[0]])[before[0]]["adopted"]
        assert _identity(_wait_live(api, "data")) == before
        if not killed:
            assert daemon.worker_pid("data") == pid
        disk.wait_progress(50)
        load.finish().assert_clean()
    finally:
        load.kill()
    assert ublk.numbers() == [before[2]]
    api.put(spec)


@pytest.mark.variant
def test_a_device_that_was_removed_since(api, daemon, file_of):
    """An older database does not bring its disk back: something else may have its file now."""
    path = file_of()
    uid = api.create(loop_spec("gone", path))["uid"]
    api.create(null_spec("kept"))
    _keep_copy(daemon)
    api.delete("gone")
    # Its number is given out again, and so is its file.
    number = api.create(loop_spec("other", path))["status"]["id"]
    daemon.kill()
    _put_back(daemon)
    for _ in range(2):
        daemon.start()
        assert condition_of(api.get("gone"))["reason"] == "RecordRemoved"
        assert api.phase("kept") == "Live"
        assert _adoptable(api)["gone"]["reason"] == "RecordRemoved"
        daemon.kill()
    daemon.start()
    (came,) = _adopt(api, all=True).values()
    assert came["name"] == "other" and came["adopted"]
    assert _wait_live(api, "other")["status"]["id"] == number
    assert condition_of(api.get("gone"))["reason"] == "RecordRemoved"
    api.delete("other")
    assert _adopt(api, uids=[uid])[uid]["adopted"]
    status = _wait_live(api, "gone")["status"]
    Disk(status["id"]).write(0, block("w"))


def test_the_record_of_a_removed_device_is_erased(api, daemon):
    api.create(null_spec("gone"))
    _keep_copy(daemon)
    api.delete("gone")
    daemon.kill()
    _put_back(daemon)
    daemon.start()
    api.delete("gone")
    assert api.names() == [] and ublk.numbers() == [] and _host(api)["adoptable"] == []
    daemon.kill()
    daemon.start()
    assert api.names() == [] and ublk.numbers() == []


@pytest.mark.variant
def test_numbers_of_two_databases(api, daemon, file_of):
    """A number belongs to the disk that has it."""
    api.create(loop_spec("old", file_of("old.img")))
    _keep_copy(daemon)
    api.delete("old")
    new = api.create(loop_spec("new", file_of("new.img")))  # under the number of the other
    daemon.kill()
    _put_back(daemon)
    daemon.start()
    assert api.get("old")["status"]["id"] == new["status"]["id"]
    assert _adopt(api, uids=[new["uid"]])[new["uid"]]["adopted"]
    assert _identity(_wait_live(api, "new"))[:3] == _identity(new)[:3]
    old = api.get("old")
    assert _adopt(api, uids=[old["uid"]])[old["uid"]]["adopted"]
    assert _wait_live(api, "old")["status"]["id"] != new["status"]["id"]
    assert api.phase("new") == "Live"


def test_a_name_that_is_taken(api, daemon, file_of):
    path = file_of()
    first = api.create(loop_spec("data", path))
    disk = Disk(first["status"]["id"])
    disk.write(0, block("a"))
    daemon.kill()
    _wipe(daemon)
    daemon.start()
    api.create(null_spec("data"))
    assert _adoptable(api)["data"]["reason"] == "NameTaken"
    refused = _adopt(api, uids=[first["uid"]])[first["uid"]]
    assert refused["reason"] == "NameTaken" and "--name" in refused["detail"] and not refused["adopted"]
    assert "NameTaken" in [item["reason"] for item in _adopt(api, all=True).values()]
    _ctl(daemon, "adopt", "--name", "other", first["uid"])
    device = _wait_live(api, "other")
    assert device["uid"] == first["uid"] and device["status"]["id"] == first["status"]["id"]
    assert os.path.realpath(_LINKS / "other") == first["status"]["device"]
    assert disk.read(0, 4096) == block("a")


def test_the_store_of_a_lost_disk_is_not_served_again(api, daemon, file_of):
    """Its worker is dead, so the store is not locked; the waiting requests are still to be written."""
    path = file_of()
    first = api.create(loop_spec("data", path))
    daemon.kill()
    os.kill(first["status"]["worker"]["pid"], signal.SIGKILL)
    write = Disk(first["status"]["id"]).write_later(0, block("w"))
    _wipe(daemon)
    daemon.start()
    refused = api.create(loop_spec("again", path), status=422)
    assert "ublkctl adopt data" in refused["detail"], refused
    assert _adopt(api, uids=[first["uid"]])[first["uid"]]["adopted"]
    assert _wait_live(api, "data")["status"]["id"] == first["status"]["id"]
    assert write.result() is None
    assert api.get("again")["status"]["phase"] != "Live"


def test_ublkctl_names_and_adopts(api, daemon):
    number = api.create(null_spec("data"))["status"]["id"]
    api.create(null_spec("off", enabled=False), wait=None)
    pid = daemon.worker_pid("data")
    daemon.kill()
    _wipe(daemon)
    daemon.start()
    wait_until(lambda: _adoptable(api).get("data", {}).get("served"), "what can be adopted")
    shown = _ctl(daemon, "host", status=1)
    assert "ublkctl adopt data" in shown and f"/dev/ublkb{number}" in shown
    assert _ctl(daemon, "adopt", "data") == "data adopted\n"
    assert daemon.worker_pid("data") == pid
    assert _ctl(daemon, "adopt", "--all") == "off adopted\n"
    assert api.phase("off") == "Disabled"
    wait_until(lambda: not _adoptable(api), "nothing to adopt")
    assert " adopted" not in _ctl(daemon, "adopt", "--all")
    _ctl(daemon, "host")


def test_no_record_no_adoption(api, daemon):
    """Its record was lost with the database: ublkd reports the disk and does not touch it."""
    number = api.create(null_spec("data"))["status"]["id"]
    (record,) = (daemon.runtime / "workers").glob("*.record")
    text = record.read_text(encoding="utf-8")
    assert record.stat().st_mode & 0o7777 == 0o600
    daemon.kill()
    record.unlink()
    _wipe(daemon)
    daemon.start()
    wait_until(
        lambda: [(item["uid"], item["id"], item["reason"]) for item in _host(api)["adoptable"]]
        == [(None, number, "NoRecord")],
        "a disk without a record",
    )
    assert _adopt(api, all=True) == {}
    Disk(number).write(0, block("w"))
    daemon.kill()
    record.write_text(text[:100], encoding="utf-8")
    daemon.start()
    (came,) = _adopt(api, all=True).values()
    assert came["reason"] == "BadRecord" and not came["adopted"]
    daemon.kill()
    record.write_text(text, encoding="utf-8")
    daemon.start()
    (came,) = _adopt(api, all=True).values()
    assert came["adopted"] and _wait_live(api, "data")["status"]["id"] == number
