# SPDX-License-Identifier: MIT
"""What can be changed under a disk that is in use, and what is refused."""

import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from harness import programs, ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.fio import Fio
from harness.halt import halt
from harness.kernel_disks import held_partition, loop_disk
from harness.marks import variants
from harness.processes import spares
from harness.shell import run
from harness.wait import wait_until

_RESTARTS = 4


def _open(disk):
    """A process that has the disk open, until terminated."""
    with open(disk.path, "rb") as held:
        return subprocess.Popen(["sleep", "600"], stdin=held)


def _close(process):
    process.kill()
    process.wait()


def _restart(daemon, fio, disk):
    before = daemon.api.get("data")["status"]["worker"]
    after = daemon.api.restart("data")["status"]
    assert after["phase"] == "Live" and after["worker"]["pid"] != before["pid"]
    assert after["worker"]["restarts"] == before["restarts"] + 1
    disk.wait_progress(20)
    assert fio.running


def _restart_under_load(daemon, directory, disk, **load):
    fio = Fio(directory, disk, **load)
    try:
        fio.wait_running()
        for _ in range(_RESTARTS):
            _restart(daemon, fio, disk)
        fio.finish().assert_clean()
    finally:
        fio.kill()


@pytest.mark.long
def test_restarts_under_load_without_an_error(ext4, file_of, daemon, directory):
    path = file_of(where=ext4)
    spec = loop_spec("data", path, queues=2, recovery={"trigger": "manual"})
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    _restart_under_load(daemon, directory, disk, jobs=2)
    assert daemon.api.get("data")["generation"] == 1
    listed = daemon.api.ask("GET", "/events?device=data", 200, headers={"Accept": "application/json"})["items"]
    # What was asked for is nothing to warn of, except that I/O of the worker that left takes long.
    warned = [event for event in listed if event["type"] != "Normal" and event["reason"] != "RequestsUnderWay"]
    assert not warned, warned


@pytest.mark.variant
@pytest.mark.long
def test_restart_of_a_queue_that_is_full(ext4, file_of, daemon, directory):
    """Without batches. Linux 7.2 would crash in one of 35 of these restarts if ublkd sent QUIESCE_DEV."""
    path = file_of(where=ext4)
    disk = Disk(daemon.api.create(loop_spec("data", path, queues=1, queueDepth=2))["status"]["id"])
    disk.wait_timeout_set()  # until then, 6.12 learns after 30 s that the worker of such a queue is dead
    _restart_under_load(daemon, directory, disk, depth=32)


@pytest.mark.variant
@pytest.mark.long
def test_restart_is_refused_where_the_next_worker_could_not_take_over(ext4, file_of, make_daemon, directory):
    """An upgrade that went wrong: the disk serves on as if nothing had been asked, and the right program restarts it."""
    right, worker = pathlib.Path(programs.worker()).read_bytes(), directory / "ublkd-worker"
    shutil.copy(programs.worker(), worker)
    daemon = make_daemon(worker=worker).start()
    disk = Disk(daemon.api.create(loop_spec("data", file_of(where=ext4)))["status"]["id"])
    before = daemon.api.get("data")["status"]["worker"]
    fio = Fio(directory, disk, jobs=2)
    try:
        fio.wait_running()
        _install(directory, worker, pathlib.Path("/bin/false").read_bytes())
        problem = daemon.api.restart("data", status=422)
        assert problem["reason"] == "CannotRestart" and "status 1" in problem["detail"], problem
        status = daemon.api.get("data")["status"]
        assert status["phase"] == "Live" and status["worker"] == before
        disk.wait_progress(20)
        _install(directory, worker, right)
        _restart(daemon, fio, disk)
        fio.finish().assert_clean()
    finally:
        fio.kill()


@pytest.mark.variant
@pytest.mark.long
def test_restart_needs_no_path(ext4, file_of, daemon, directory):
    """The file was renamed, and another one that is too small is at the path: the next worker has the store from this one."""
    path = file_of(where=ext4)
    disk = Disk(daemon.api.create(loop_spec("data", path))["status"]["id"])
    fio = Fio(directory, disk, jobs=2)
    try:
        fio.wait_running()
        path.rename(path.with_name("kept"))
        _restart(daemon, fio, disk)
        path.write_bytes(bytes(1 << 20))
        _restart(daemon, fio, disk)
        fio.finish().assert_clean()
    finally:
        fio.kill()


@pytest.mark.long
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


def _install(directory, path, program):
    fresh = directory / "fresh"
    fresh.write_bytes(program)
    fresh.chmod(0o755)
    os.replace(fresh, path)


@pytest.mark.long
def test_restart_moves_to_a_newer_worker(make_daemon, directory, file_of):
    """An upgrade: the program is replaced, ublkd is restarted, workers are replaced one by one."""
    old = pathlib.Path(programs.worker()).read_bytes()
    version = subprocess.check_output([programs.worker(), "--version"], text=True).split()[-1]
    newer = version[:-1] + ("1" if version[-1] != "1" else "2")
    worker = directory / "ublkd-worker"
    shutil.copy(programs.worker(), worker)
    daemon = make_daemon(worker=worker).start()
    device = daemon.api.create(loop_spec("data", file_of()))
    assert device["status"]["worker"]["version"] == version
    daemon.stop()
    _install(directory, worker, old.replace(version.encode() + b"\0", newer.encode() + b"\0"))
    daemon.start()
    assert daemon.api.get("data")["status"]["worker"]["version"] == version
    assert daemon.api.restart("data")["status"]["worker"]["version"] == newer
    # And without a new ublkd: the spare of the program that was replaced is not taken.
    wait_until(lambda: len(spares()) == 1, "a spare worker")
    _install(directory, worker, old)
    assert daemon.api.restart("data")["status"]["worker"]["version"] == version


def test_restart_without_a_replay_is_not_noticed(api):
    """The worker gives back what it has not begun, so that it need not be repeated (QUIESCE_DEV)."""
    if not ublk.features()["IO_DESC_SIZE"]:
        return  # refused while in use: see below
    device = api.create(null_spec("data", recovery={"onCrash": "queue"}))
    user = _open(Disk(device["status"]["id"]))
    try:
        assert api.restart("data")["status"]["worker"]["pid"] != device["status"]["worker"]["pid"]
    finally:
        _close(user)


@pytest.mark.parametrize("on_crash", ["queue", "fail", "none"])
def test_restart_that_would_be_noticed_is_refused_while_in_use(api, on_crash):
    if on_crash == "fail" and not ublk.features()["USER_RECOVERY_FAIL_IO"]:
        return  # such a device cannot be made there
    if on_crash == "queue" and ublk.features()["IO_DESC_SIZE"]:
        return  # not noticed: see above
    device = api.create(null_spec("data", recovery={"onCrash": on_crash}))
    disk = Disk(device["status"]["id"])
    user = _open(disk)
    try:
        problem = api.restart("data", status=409)
        assert on_crash in problem["detail"] and str(user.pid) in problem["detail"]
        after = api.get("data")
        assert after["status"]["worker"] == device["status"]["worker"]
    finally:
        _close(user)
    pid = after["status"]["worker"]["pid"]
    after = api.restart("data")
    assert after["status"]["worker"]["pid"] != pid and after["status"]["id"] == disk.number


@pytest.mark.long
def test_a_restart_needs_a_device_with_a_disk(api, daemon, file_of):
    api.ask("POST", "/devices/absent/restart", 404)
    api.create(null_spec("off", enabled=False))
    assert "disabled" in api.restart("off", status=409)["detail"]
    api.create(loop_spec("data", file_of(), recovery={"trigger": "manual"}))
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")
    assert api.restart("data")["status"]["phase"] == "Live"


def _grow_file(path, mib):
    os.truncate(path, mib << 20)


def _mounted(disk, mount):
    mount.mkdir(exist_ok=True)
    run("mount", disk.path, mount)
    return mount


def _grows():
    return ublk.features()["UPDATE_SIZE"]


@pytest.mark.long
def test_grow_under_load(ext4, file_of, daemon, directory):
    """The new part is there for readers and writers from the moment that the disk shows it."""
    if not _grows():
        return  # refused while in use: see below
    path = file_of(where=ext4, size=64 << 20)
    spec = loop_spec("data", path, size="64MiB", queues=2)
    first = daemon.api.create(spec)
    disk = Disk(first["status"]["id"])
    fio = Fio(directory, disk, jobs=2, size="24M")
    try:
        fio.wait_running()
        for mib in range(80, 129, 16):
            _grow_file(path, mib)
            device = daemon.api.put({**spec, "size": f"{mib}MiB"})
            assert disk.size() == device["status"]["size"] == mib << 20
            disk.write((mib << 20) - 4096, block("x"))
            if mib == 96:
                daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
            assert disk.read((mib << 20) - 4096, 4096) == block("x") and fio.running
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert daemon.api.get("data")["status"]["recoveries"]["count"] == 1, "nothing but the kill took the worker away"
    assert path.stat().st_size == 128 << 20


@pytest.mark.long
def test_grow_a_mounted_file_system(api, directory, file_of):
    path = file_of(size=64 << 20)
    spec = loop_spec("data", path, size="64MiB")
    disk = Disk(api.create(spec)["status"]["id"])
    run("mkfs.ext4", "-q", disk.path)
    mount = _mounted(disk, directory / "mnt")
    _grow_file(path, 96)
    try:
        (mount / "before").write_bytes(os.urandom(1 << 20))
        if _grows():
            api.put({**spec, "size": "96MiB"})
            run("resize2fs", disk.path)
            assert os.statvfs(mount).f_blocks * os.statvfs(mount).f_frsize > 80 << 20
            (mount / "after").write_bytes(os.urandom(8 << 20))
        else:
            problem = api.put({**spec, "size": "96MiB"}, status=409)
            assert "6.16" in problem["detail"] and str(mount) in problem["detail"]
            assert api.get("data")["spec"]["size"] == "64MiB" and disk.size() == 64 << 20
        problem = api.put({**spec, "size": "32MiB"}, status=409)
        assert "shrink" in problem["detail"] and str(mount) in problem["detail"]
    finally:
        run("umount", mount)
    run("e2fsck", "-fn", disk.path)
    api.put({**spec, "size": "32MiB"})
    assert disk.size() == 32 << 20, "it has no openers: it is recreated"


@pytest.mark.long
def test_grow_beyond_the_backing_store(api, file_of):
    """The disk keeps its size, the status says why, and it grows as soon as the store has grown."""
    if not _grows():
        return
    path = file_of(size=64 << 20)
    spec = loop_spec("data", path, size="64MiB")
    first = api.create(spec)
    disk = Disk(first["status"]["id"])
    problem = api.put({**spec, "size": "96MiB"}, status=422)
    assert problem["reason"] == "CannotGrow" and "64MiB" in problem["detail"]
    device = api.get("data")
    assert device["status"]["phase"] == "Live" and disk.size() == 64 << 20
    disk.write(0, block("a"))
    _grow_file(path, 96)
    api.wait_for("data", lambda device: device["status"]["size"] == 96 << 20, "grown")
    api.put({**spec, "size": "1GiB"}, status=422)
    api.put({**spec, "size": "96MiB"})
    assert api.get("data")["status"]["worker"]["pid"] == first["status"]["worker"]["pid"]


def _times(api, reason):
    """How often it happened to the device."""
    items = api.ask("GET", "/events?device=data", 200, headers={"Accept": "application/json"})["items"]
    return sum(item["count"] for item in items if item["reason"] == reason)


@pytest.mark.long
def test_a_growth_is_judged_by_its_own_try(api, file_of):
    """A growth fails as the file is too small, and is undone; after the file has grown, a second one works."""
    if not _grows():
        return
    path = file_of(size=16 << 20)
    spec = loop_spec("data", path, size="16MiB")
    disk = Disk(api.create(spec)["status"]["id"])
    for mib in (24, 32, 40, 48, 56):
        api.put({**spec, "size": f"{mib}MiB"}, status=422)
        api.put(spec)
        refused = _times(api, "CannotGrow")
        _grow_file(path, mib)
        spec = {**spec, "size": f"{mib}MiB"}
        assert api.put(spec)["status"]["size"] == mib << 20 == disk.size()
        assert _times(api, "CannotGrow") == refused, "a growth that succeeds makes no other event"


@pytest.mark.long
def test_the_same_spec_again_is_judged_by_the_next_try(api, file_of, directory):
    """A request after the repair of the fault gets the result of its own try, not of the last one."""
    path = directory / "late.img"
    spec = loop_spec("data", path, size="32MiB")
    assert api.create(spec, status=422)["reason"] == "BackingFileMissing"
    file_of(path.name, size=32 << 20)
    device = api.create(spec, status=200)
    assert device["status"]["phase"] == "Live" and device["generation"] == 1
    if not _grows():
        return
    spec["size"] = "64MiB"
    for _ in range(2):
        assert api.put(spec, status=422)["reason"] == "CannotGrow"
    _grow_file(path, 64)
    assert api.put(spec)["status"]["size"] == 64 << 20


def _held_worker(directory):
    """A worker that does nothing at all while the file `hold` is there, as if its store hung."""
    hold, program = directory / "hold", directory / "held-worker"
    program.write_text(f'#!/bin/sh\nwhile [ -e {hold} ]; do sleep 0.05; done\nexec {programs.worker()} "$@"\n')
    program.chmod(0o755)
    return hold, program


@pytest.mark.long
def test_a_spec_is_not_judged_by_the_worker_of_the_one_before(make_daemon, directory, file_of):
    """The store of the first spec hangs, and that spec is wrong; the next one is right, and its client learns so."""
    hold, program = _held_worker(directory)
    hold.touch()
    api = make_daemon(worker=program).start().api
    path = file_of(size=16 << 20)
    api.create(loop_spec("data", path, size="1GiB"), wait=None)
    api.wait_for("data", lambda device: device["status"]["worker"], "with a worker")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(api.request, "PUT", "/devices/data?wait=ready&timeout=60s", json=loop_spec("data", path))
        wait_until(lambda: api.get("data")["status"]["observedGeneration"] == 2, "the second spec seen")
        assert api.phase("data") == "Starting" and not answer.done()
        hold.unlink()
        response = answer.result()
    assert response.status_code == 200, response.text
    status = response.json()["status"]
    assert (status["phase"], status["size"], status["observedGeneration"]) == ("Live", 16 << 20, 2)
    assert _times(api, "BackingTooSmall") == 0


@pytest.mark.long
def test_a_worker_that_did_not_exit_is_reported_as_killed(make_daemon, file_of):
    """The worker is stopped, with a request in hand, when ublkd replaces it."""
    daemon = make_daemon(more_options=["--ignore-feature=BATCH_IO"]).start()
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", file_of(size=16 << 20)))["status"]["id"])
    pid = daemon.worker_pid("data")
    halt(pid)
    write = disk.write_later(0, block("w"))
    disk.wait_inflight()
    assert api.restart("data", timeout="100s")["status"]["worker"]["pid"] != pid
    assert write.result() is None
    items = api.ask("GET", "/events?device=data", 200, headers={"Accept": "application/json"})["items"]
    (end,) = [item for item in items if item["reason"] in ("WorkerRetired", "WorkerKilled", "WorkerDied")]
    assert "killed" in end["message"] and "has exited" not in end["message"] and str(pid) in end["message"]
    # ublkd has asked it to leave before, in vain.
    assert (end["reason"], end["type"]) == ("WorkerKilled", "Warning")


@pytest.mark.long
def test_growth_survives_every_death(daemon, file_of):
    if not _grows():
        return
    path = file_of(size=256 << 20)
    spec = loop_spec("data", path, size="16MiB")
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    for mib in range(32, 161, 32):
        daemon.api.put({**spec, "size": f"{mib}MiB"}, wait=None)
        if mib % 64 == 0:
            os.kill(ublk.info(disk.number)["pid"], signal.SIGKILL)
        daemon.kill()
        daemon.start()
        daemon.api.wait_for("data", lambda device: device["status"]["size"] == mib << 20, f"{mib} MiB")
        assert disk.size() == mib << 20
        disk.write((mib << 20) - 4096, block("z"))


@pytest.mark.long
def test_a_file_that_grew_is_noticed_at_a_restart(api, file_of):
    path = file_of(size=32 << 20)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    user = _open(disk)
    try:
        _grow_file(path, 48)
        assert disk.size() == 32 << 20
        api.restart("data")
        assert disk.size() == (48 if _grows() else 32) << 20
    finally:
        _close(user)


@pytest.mark.long
def test_two_disks_in_one_file_do_not_grow_into_each_other(api, file_of):
    if not _grows():
        return
    path = file_of(size=64 << 20)
    low = loop_spec("low", path, size="16MiB")
    api.create(low)
    api.create(loop_spec("high", path, target={"offset": "32MiB"}))
    problem = api.put({**low, "size": "48MiB"}, status=422)
    assert '"high"' in problem["detail"]
    assert api.put({**low, "size": "32MiB"})["status"]["size"] == 32 << 20


@pytest.mark.long
def test_a_disk_and_its_partition_are_one_store(api, file_of):
    path = file_of(size=64 << 20)
    run("sfdisk", "-q", path, input="label: gpt\nstart=2048, size=32768\nstart=65536, size=32768\n")
    with loop_disk(path, "--partscan") as loop, held_partition(loop, 1) as one, held_partition(loop, 2) as two:
        api.create(loop_spec("first", one))
        # Not even for a range between the partitions: another device may use another one, and only a claim shows it.
        for more in ({}, {"size": "8MiB", "target": {"offset": "20MiB"}}):
            assert api.create(loop_spec("whole", loop, **more), status=422)["reason"] == "BackingFileBusy"
            api.delete("whole")
        api.create(loop_spec("second", two))
        for name in ("first", "second"):
            api.delete(name)
        api.create(loop_spec("part", loop, size="8MiB", target={"offset": "20MiB"}))
        api.delete("part")


@pytest.mark.long
def test_what_changes_under_a_mounted_disk_and_what_does_not(api, directory, file_of):
    path = file_of(size=64 << 20)
    spec = loop_spec("data", path, recovery={"onCrash": "reissue"})
    first = api.create(spec)["status"]
    disk = Disk(first["id"])
    run("mkfs.ext4", "-q", disk.path)
    mount = _mounted(disk, directory / "mnt")
    try:
        for refused, why in [
            ({"enabled": False}, f"/dev/ublkb{first['id']}"), ({"recovery": {"onCrash": "queue"}}, "'recovery.onCrash'"),
            ({"queueDepth": 7}, "'queueDepth'"), ({"id": first["id"] + 1}, "'id'"), ({"readOnly": True}, "'readOnly'"),
        ]:
            problem = api.put({**spec, **refused}, status=409)
            assert why in problem["detail"] and str(mount) in problem["detail"]
        for live in [
            {"id": first["id"]}, {"recovery": {"trigger": "manual"}}, {"recovery": {"giveUpAfter": "1h"}},
            {"labels": {"a": "b"}}, {"owner": {"mode": "0600"}}, {"size": "64MiB"},
        ]:
            after = api.put({**spec, **live})["status"]
            assert after["worker"] == first["worker"] and after["id"] == first["id"]
    finally:
        run("umount", mount)
    assert api.put({**spec, "enabled": False})["status"]["phase"] == "Disabled" and not disk.exists()
    assert api.put(spec)["status"]["id"] == first["id"]


@pytest.mark.long
def test_a_new_trigger_holds_for_the_disk_that_is_there(api, daemon):
    spec = null_spec("data")
    api.create(spec)
    api.put({**spec, "recovery": {"trigger": "manual"}})
    daemon.kill_worker("data")
    api.wait_phase("data", "Quiesced")
    api.put(spec)


@pytest.mark.long
@pytest.mark.parametrize("wrong", ["missing", "small", *variants("a directory")])
def test_a_disk_stays_while_its_new_path_cannot_be_opened(daemon, ext4, file_of, wrong):
    """A typing error takes no disk away: the new store is opened by a preflight worker first."""
    api, path = daemon.api, file_of(where=ext4)
    api.create(loop_spec("data", path, size="64MiB"))
    disk, other = Disk(api.get("data")["status"]["id"]), path.with_suffix(".other")
    disk.write(0, block("a"))
    if wrong == "small":
        file_of(other.name, size=1 << 20, where=ext4)
    elif wrong == "a directory":
        other.mkdir()
    pid = daemon.worker_pid("data")
    problem = api.put(loop_spec("data", other, size="64MiB"), status=422)
    assert ("64MiB" if wrong == "small" else str(other)) in problem["detail"] and disk.path in problem["detail"]
    device = api.get("data")
    assert device["generation"] == 1 and device["status"]["phase"] == "Live" and daemon.worker_pid("data") == pid
    assert disk.read(0, 4096) == block("a")
    if wrong == "a directory":
        other.rmdir()
    file_of(other.name, where=ext4)
    api.put(loop_spec("data", other, size="64MiB"))
    assert Disk(api.get("data")["status"]["id"]).read(0, 4096) == bytes(4096)
    api.delete("data")
