# SPDX-License-Identifier: MIT
"""ublkd makes a file system on a disk once, whatever dies when, and never where there are data."""

import contextlib
import os
import pathlib
import signal
import threading

import pytest

from harness.api import Api, loop_spec
from harness.disk import Disk, block
from harness.shell import output, run
from harness.wait import wait_until

pytestmark = pytest.mark.long

_SIZE = 400 << 20  # xfs wants 300 MiB


def _ask(api, kind, status=200, name="data"):
    return api.ask("POST", f"/devices/{name}/filesystem", status, json={"type": kind})


def _uuid(disk):
    return output("blkid", "-p", "-o", "value", "-s", "UUID", disk.path).strip()


@contextlib.contextmanager
def _mounted(disk, where):
    where.mkdir(exist_ok=True)
    run("mount", disk.path, where)
    try:
        yield where
    finally:
        run("umount", where)


@pytest.mark.parametrize("kind", ["ext4", pytest.param("xfs", marks=pytest.mark.variant)])
def test_a_file_system_is_made_once(daemon, file_of, directory, kind):
    disk = Disk(daemon.api.create(loop_spec("data", file_of(size=_SIZE)))["status"]["id"])
    made = _ask(daemon.api, kind)["status"]["filesystem"]
    assert made == {"type": kind, "uuid": _uuid(disk), "state": "made"}
    with _mounted(disk, directory / "mnt") as where:
        (where / "file").write_bytes(block("f"))
        assert _ask(daemon.api, kind)["status"]["filesystem"] == made  # also while it is mounted
    daemon.kill()
    daemon.start()
    daemon.api.wait_phase("data", "Live")
    assert _ask(daemon.api, kind)["status"]["filesystem"] == made
    _ask(daemon.api, "xfs" if kind == "ext4" else "ext4", 409)
    with _mounted(disk, directory / "mnt") as where:
        assert (where / "file").read_bytes() == block("f")


def test_a_disk_with_data_stays_as_it_is(daemon, file_of):
    disk = Disk(daemon.api.create(loop_spec("data", file_of(size=_SIZE)))["status"]["id"])
    disk.write(8192, block("d"))
    _ask(daemon.api, "ext4", 409)
    assert disk.read(8192, 4096) == block("d")
    assert daemon.api.get("data")["status"]["filesystem"] is None


def test_mkfs_on_a_disk_in_use_is_refused(daemon, file_of):
    """Such as device mapper, which has it for itself."""
    disk = Disk(daemon.api.create(loop_spec("data", file_of(size=_SIZE)))["status"]["id"])
    run("dmsetup", "create", "over", "--table", f"0 {_SIZE // 512} linear {disk.path} 0")
    try:
        assert "in-use" in _ask(daemon.api, "ext4", 409)["type"]
    finally:
        run("dmsetup", "remove", "over")
    _ask(daemon.api, "ext4")


def _ask_until_killed(daemon):
    with contextlib.suppress(OSError):
        Api(daemon.runtime / "ublkd.sock").request("POST", "/devices/data/filesystem", json={"type": "ext4"})


def _stage(daemon):
    return (daemon.api.get("data")["status"]["filesystem"] or {}).get("state")


def _mkfs_runs():
    names = []
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            names.append(path.read_text().strip())
    return "mkfs.ext4" in names or "ublkd-mkfs" in names


def test_ublkd_is_killed_when_it_has_begun(store, daemon):
    """The disk takes its time for writes, so that the program has begun and has not ended when ublkd dies."""
    disk = Disk(daemon.api.create(loop_spec("data", store.path))["status"]["id"])
    with store.holding():
        asker = threading.Thread(target=_ask_until_killed, args=(daemon,))
        asker.start()
        wait_until(lambda: _stage(daemon) == "begun", "a note of what begins")
        daemon.kill()
        asker.join()
    wait_until(lambda: not _mkfs_runs(), "the end of the program")
    before = disk.read(0, 1 << 20)
    daemon.start()
    device = daemon.api.wait_phase("data", "Live")
    assert device["status"]["filesystem"]["state"] == "begun"
    response = daemon.api.request("POST", "/devices/data/filesystem", json={"type": "ext4"})
    if response.status_code == 200:
        run("e2fsck", "-f", "-n", disk.path)
        return
    assert response.status_code == 409 and disk.read(0, 1 << 20) == before
    begun = device["status"]["filesystem"]
    body = {"type": "ext4", "remake": begun["uuid"]}
    assert daemon.api.ask("POST", "/devices/data/filesystem", 200, json=body)["status"]["filesystem"] == begun | {"state": "made"}
    run("e2fsck", "-f", "-n", disk.path)


def _waiting_programs():
    """The programs of a file system that the kernel does not let end now, whatever signal they get, and how often each has waited."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            if name == "mkfs.ext4" and rest.split()[0] == "D":
                found[int(path.parent.name)] = [line for line in path.with_name("status").read_text().splitlines() if "ctxt" in line]
    return found


def _held_programs(api):
    """Those that wait for the store: no other wait, as that for a page, is the same one after a restart of another device."""
    before = _waiting_programs()
    if before:
        api.restart("other")
    after = _waiting_programs()
    return [pid for pid, times in before.items() if after.get(pid) == times]


@pytest.fixture(name="patient_kernel")
def kernel_that_lets_processes_wait():
    """It does not complain of a process that waits as long as the test wants."""
    before = output("sysctl", "-n", "kernel.hung_task_timeout_secs")
    run("sysctl", "-qw", "kernel.hung_task_timeout_secs=0")
    yield
    run("sysctl", "-qw", f"kernel.hung_task_timeout_secs={before}")


def _ask_and_note(daemon, answers):
    """Ask for a file system, and note how that ends; not if ublkd ends first."""
    with contextlib.suppress(OSError):
        response = Api(daemon.runtime / "ublkd.sock").request("POST", "/devices/data/filesystem", json={"type": "ext4"})
        answers.append((response.status_code, response.json()["type"].rpartition(":")[2]))


@pytest.mark.variant
def test_a_program_that_cannot_be_killed_holds_up_its_disk_alone(patient_kernel, store, daemon, file_of):
    """It ends with the writes that it waits for; until then its disk is in use, also for the next ublkd."""
    assert patient_kernel is None
    api, answers = daemon.api, []
    disk = Disk(api.create(loop_spec("data", store.path))["status"]["id"])
    api.create(loop_spec("other", file_of(size=8 << 20)))
    with store.holding():
        askers = [threading.Thread(target=_ask_and_note, args=(daemon, answers)) for _ in range(2)]
        askers[0].start()
        store.wait_arrived(1)
        (program,) = wait_until(lambda: _held_programs(api), "a program that waits for the disk")
        parent = int(pathlib.Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)  # as ublkd does at the deadline; the program gets the signal from the kernel
        askers[0].join()
        assert answers == [(504, "timeout")]
        askers[1].start()  # the next process may wait in the kernel as well
        for _ in range(2):
            problem = api.delete("data", status=409)
            assert "in-use" in problem["type"] and f"process {program} (" in problem["detail"], problem
            _ask(api, "ext4", name="other")
            api.restart("other")
            assert api.phase("data") == "Live" and list(_waiting_programs()) == [program]
            daemon.kill()
            daemon.start()
            api = daemon.api
        askers[1].join()
    wait_until(lambda: not _mkfs_runs(), "the end of the program")
    begun = api.wait_phase("data", "Live")["status"]["filesystem"]
    assert begun["state"] == "begun"
    body = {"type": "ext4", "remake": begun["uuid"]}
    assert api.ask("POST", "/devices/data/filesystem", 200, json=body)["status"]["filesystem"] == begun | {"state": "made"}
    run("e2fsck", "-f", "-n", disk.path)


def test_the_worker_is_killed_while_it_is_made(daemon, file_of):
    """As for every program that uses the disk: it waits for the next worker."""
    disk = Disk(daemon.api.create(loop_spec("data", file_of(size=_SIZE)))["status"]["id"])
    answers = []
    asker = threading.Thread(target=lambda: answers.append(_ask(Api(daemon.runtime / "ublkd.sock"), "xfs")))
    asker.start()
    wait_until(lambda: _stage(daemon), "a note of what begins")
    daemon.kill_worker("data")
    asker.join()
    assert answers[0]["status"]["filesystem"]["state"] == "made"
    run("xfs_repair", "-n", disk.path)


@pytest.fixture(name="mounting")
def _mounting(daemon):
    """A daemon; what is mounted in the end is unmounted, as it would keep its disk."""
    yield daemon
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[4].startswith(f"{_top(daemon)}/"):
            run("umount", line.split()[4])


def _mounts(path):
    """The options of the mount at a path; None: nothing is mounted there."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split()[4] == str(path):
            return line.split()[5].split(",") + line.split(" - ")[1].split()[2].split(",")
    return None


def _mount(api, body=None, status=200):
    return api.ask("POST", "/devices/data/mount", status, json=body or {})


def _unmount(api, status=200):
    return api.ask("POST", "/devices/data/unmount", status, json={})


def _top(daemon):
    return pathlib.Path(f"{daemon.runtime}-mounts")


@pytest.mark.parametrize("kind", ["ext4", pytest.param("xfs", marks=pytest.mark.variant)])
def test_a_file_system_is_mounted(mounting, file_of, kind):
    """Once, for root alone, and the mount keeps the disk in use, over restarts of ublkd and of the worker."""
    device = mounting.api.create(loop_spec("data", file_of(size=_SIZE)))
    assert device["status"]["mount"] is None
    _mount(mounting.api, status=409)  # there is no file system
    _ask(mounting.api, kind)
    where = pathlib.Path(_mount(mounting.api, {"noExec": True})["status"]["mount"])
    assert where == _top(mounting) / device["uid"] and _top(mounting).stat().st_mode & 0o7777 == 0o700
    assert {"nosuid", "nodev", "noexec"} <= set(_mounts(where))
    (where / "file").write_bytes(block("f"))
    assert _mount(mounting.api)["status"]["mount"] == str(where)  # it is there already
    assert "in-use" in mounting.api.ask("POST", "/devices/data/stop", 409)["type"]
    problem = mounting.api.delete("data", status=409)
    assert problem["type"].endswith("in-use") and str(where) in problem["detail"], problem
    mounting.kill()
    mounting.start()
    device = mounting.api.wait_phase("data", "Live")
    assert device["status"]["mount"] == str(where)
    mounting.kill_worker("data")
    (where / "file").write_bytes(block("g"))
    with open(where / "file", "rb"):
        assert "in-use" in _unmount(mounting.api, 409)["type"]
    assert _unmount(mounting.api)["status"]["mount"] is None
    assert _mounts(where) is None and not where.exists()
    _unmount(mounting.api)  # nothing is mounted
    assert _mount(mounting.api)["status"]["mount"] == str(where)
    assert "noexec" not in _mounts(where) and (where / "file").read_bytes() == block("g")
    if kind == "ext4":
        assert "errors=remount-ro" in _mounts(where)
    run("umount", where)  # by another program
    mounting.api.wait_for("data", lambda device: device["status"]["mount"] is None, "without a mount")
    mounting.api.delete("data")


@pytest.mark.variant
def test_an_unmount_goes_on_over_the_death_of_the_worker(mounting, file_of):
    """The kernel writes for it, and waits for the next worker, as all writes do."""
    mounting.api.create(loop_spec("data", file_of(size=_SIZE)))
    _ask(mounting.api, "ext4")
    where = pathlib.Path(_mount(mounting.api)["status"]["mount"])
    (where / "file").write_bytes(block("f"))
    mounting.kill_worker("data")
    assert _unmount(mounting.api)["status"]["mount"] is None and _mounts(where) is None
    _mount(mounting.api)
    assert (where / "file").read_bytes() == block("f")
    _unmount(mounting.api)


def test_a_forced_removal_ends_with_the_unmount(mounting, file_of):
    """The disk is taken from under the mount; the device is there until the kernel releases the disk."""
    mounting.api.create(loop_spec("data", file_of(size=_SIZE)))
    _ask(mounting.api, "ext4")
    where = _mount(mounting.api, {"holder": "a"})["status"]["mount"]
    mounting.api.delete("data", status=409)
    mounting.api.ask("DELETE", "/devices/data?force=true", 202)
    device = mounting.api.wait_for("data", lambda device: device["status"]["worker"] is None, "without a worker")
    assert device["status"]["mount"] == where and _mounts(where) is not None
    _mount(mounting.api, status=409)
    response = mounting.api.request("POST", "/devices/data/unmount", json={"holder": "a"})
    assert response.status_code in (200, 404), response.text  # 404: the removal has ended before the answer
    assert _mounts(where) is None
    wait_until(lambda: mounting.api.names() == [], "the end of the removal")


def test_what_ublkd_has_not_made_is_not_mounted(mounting, file_of):
    disk = Disk(mounting.api.create(loop_spec("data", file_of(size=_SIZE)))["status"]["id"])
    run("mkfs.ext4", "-q", disk.path)
    _mount(mounting.api, status=409)
    _ask(mounting.api, "ext4", 409)
    assert mounting.api.get("data")["status"]["mount"] is None


def test_another_file_system_in_its_place_is_not_mounted(mounting, file_of):
    """The store was replaced, or another program has made its own file system."""
    disk = Disk(mounting.api.create(loop_spec("data", file_of(size=_SIZE)))["status"]["id"])
    _ask(mounting.api, "ext4")
    run("mkfs.ext4", "-q", "-F", disk.path)
    _mount(mounting.api, status=409)
    _ask(mounting.api, "ext4", 409)


def test_a_store_that_users_may_write_to_is_not_mounted(mounting, file_of):
    path = pathlib.Path(file_of(size=_SIZE))
    mounting.api.create(loop_spec("data", str(path)))
    _ask(mounting.api, "ext4")
    path.chmod(0o666)
    _mount(mounting.api, status=409)
    path.chmod(0o600)
    _mount(mounting.api)
    assert "in-use" in mounting.api.ask("PATCH", "/devices/data", 409, json={"owner": {"mode": "0666"}})["type"]
    _unmount(mounting.api)


def test_a_directory_that_others_may_write_to_is_refused(mounting, file_of):
    mounting.api.create(loop_spec("data", file_of(size=_SIZE)))
    _ask(mounting.api, "ext4")
    _top(mounting).mkdir()
    _top(mounting).chmod(0o777)
    _mount(mounting.api, status=409)
    _top(mounting).chmod(0o700)
    _mount(mounting.api)
    _unmount(mounting.api)


@pytest.mark.variant
def test_ublkd_is_killed_while_it_mounts(mounting, file_of):
    """Whatever was done, the next request ends with one mount, and the one after that with none."""
    mounting.api.create(loop_spec("data", file_of(size=_SIZE)))
    _ask(mounting.api, "ext4")
    for _ in range(3):
        asker = threading.Thread(target=_ask_for_mount, args=(mounting,))
        asker.start()
        wait_until(lambda: _mkfs_runs() or not asker.is_alive(), "a process that mounts")
        mounting.kill()
        asker.join()
        mounting.start()
        mounting.api.wait_phase("data", "Live")
        wait_until(lambda: not _mkfs_runs(), "the end of the process")
        where = _mount(mounting.api)["status"]["mount"]
        assert pathlib.Path("/proc/self/mountinfo").read_text().count(f" {where} ") == 1
        _unmount(mounting.api)
        assert _mounts(where) is None


def _ask_for_mount(daemon):
    with contextlib.suppress(OSError):
        Api(daemon.runtime / "ublkd.sock").request("POST", "/devices/data/mount", json={})
