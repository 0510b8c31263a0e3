# SPDX-License-Identifier: MIT
"""A control group for each worker, without systemd: cgroup v2 itself. tests/kernel/systemd has the same as a service."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

import pytest

from harness import groups, programs
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.fio import Fio
from harness.hostile import Eaters, Hostile
from harness.kernel_disks import loop_disk
from harness.processes import spares
from harness.wait import wait_until
from harness.ways import HAS, Way, of_this_kernel

pytestmark = pytest.mark.long  # and one kernel runs each test

_RESOURCES = {"cpuWeight": 50, "memoryMax": "256MiB", "pidsMax": 200}


def _count(daemon, reason, name="data"):
    return sum(event["count"] for event in daemon.events(name) if event["reason"] == reason)


def _wait_in_force(api, name="data"):
    def in_force(device):
        condition = condition_of(device, "Resources")
        return condition and condition["status"] == "True"

    return api.wait_for(name, in_force, "with its limits in force")


def _wait_not_in_force(api):
    def not_in_force(device):
        condition = condition_of(device, "Resources")
        return condition and condition["status"] == "False"

    shown = api.wait_for("data", not_in_force, "without limits")
    assert condition_of(shown, "Resources")["reason"] == "ResourcesNotInForce"
    return shown


def _stranger_in(group):
    """A process that the worker could have forked: it has a session of its own, and ignores what it can."""
    process = subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1000; done"], start_new_session=True)
    groups.move(process.pid, group)
    return process


def test_each_worker_has_a_group_of_its_own(daemon, api):
    api.create(null_spec("one"))
    api.create(null_spec("two"))
    one, two = (groups.own_group(daemon.worker_pid(name)) for name in ("one", "two"))
    assert one != two and one.parent == two.parent
    assert groups.group_of(daemon.pid) != one.parent  # controllers are passed on there
    assert condition_of(api.get("one"), "Resources") is None
    api.delete("one")
    wait_until(lambda: not one.exists(), "the group of a worker that is gone")
    assert two.exists()


def test_limits_are_in_force_and_change_under_the_disk(daemon, api, file_of):
    disk = Disk(api.create(loop_spec("data", file_of(), resources=_RESOURCES))["status"]["id"])
    group = groups.own_group(daemon.worker_pid("data"))
    _wait_in_force(api)
    assert groups.read(group, "cpu.weight") == "50"
    assert groups.read(group, "memory.max") == str(256 << 20)
    assert groups.read(group, "pids.max") == "200"
    assert groups.read(group, "memory.oom.group") == "1"
    assert groups.read(group, "cgroup.pressure") == groups.read(group.parent, "cgroup.pressure") == "0"
    pid = daemon.worker_pid("data")
    api.ask("PATCH", "/devices/data", 200, data='{"resources": {"memoryMax": null, "pidsMax": 300}}',
            headers={"Content-Type": "application/merge-patch+json"})
    wait_until(lambda: groups.read(group, "pids.max") == "300", "another limit")
    assert groups.read(group, "memory.max") == "max"
    assert groups.read(group, "cpu.weight") == "50"
    api.put(loop_spec("data", file_of()))
    wait_until(lambda: groups.read(group, "pids.max") == "max", "no limit")
    assert groups.read(group, "cpu.weight") == "100"
    assert daemon.worker_pid("data") == pid
    disk.write(0, block("a"))


def test_io_is_limited_on_the_disk_of_the_store(daemon, api, directory):
    image = directory / "one.img"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    with loop_disk(image) as path:
        limits = {"ioMax": {"read": {"iops": 100}, "write": {"bytesPerSec": "1MiB"}}}
        disk = Disk(api.create(loop_spec("data", path, resources=limits))["status"]["id"])
        _wait_in_force(api)
        group = groups.own_group(daemon.worker_pid("data"))
        wanted = f"{groups.disk_number(path)} rbps=max wbps={1 << 20} riops=100 wiops=max"
        assert groups.read(group, "io.max") == wanted
        began = time.monotonic()
        disk.write(0, block("a", 4 << 20))
        assert time.monotonic() - began > 2  # without the limit, less than half a second
        assert disk.read(0, 4096) == block("a")
        api.delete("data")


def test_io_without_a_disk_is_reported(api, file_of):
    """The store is on a tmpfs."""
    device = api.create(loop_spec("data", file_of(), resources={"cpuWeight": 7, "ioMax": {"read": {"iops": 100}}}))
    assert device["status"]["phase"] == "Live"
    assert _wait_not_in_force(api)["status"]["phase"] == "Live"


def test_all_of_a_worker_ends_with_it(daemon, api, file_of):
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    group = groups.own_group(daemon.worker_pid("data"))
    child = _stranger_in(group)
    pid = daemon.kill_worker("data")
    api.wait_other_worker("data", pid)
    assert child.wait(timeout=60) == -signal.SIGKILL
    wait_until(lambda: not group.exists(), "the group of a dead worker", timeout=120)
    disk.write(0, block("a"))


@pytest.mark.both
def test_a_child_that_a_worker_has_forked_ends_with_it(lair, file_of, make_daemon, monkeypatch):
    """It has all that the main thread of the worker had open, so no other worker can have the disk before its end. The
    filter, which is left out here, refuses the fork itself."""
    monkeypatch.setenv("UBLKD_HOSTILE_WITHOUT_FILTER", "1")
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    disk = Disk(daemon.api.create(loop_spec("data", file_of(), queues=1))["status"]["id"])
    pid = daemon.worker_pid("data")
    group = groups.own_group(pid)
    worker = Hostile(lair, pid, disk)
    worker.do("stay")
    wait_until(worker.has_done, "a child that stays")
    (child,) = {int(line) for line in groups.read(group, "cgroup.procs").split()} - {pid}
    assert groups.is_alive(child)
    daemon.kill_worker("data")
    daemon.api.wait_other_worker("data", pid)
    wait_until(lambda: not groups.is_alive(child), "the end of the child")
    disk.write(0, block("a"))
    assert disk.read(0, 4096) == block("a")


def test_the_next_ublkd_ends_what_a_worker_has_left(daemon, api, file_of):
    """ublkd and a worker die at the same time. The worker of another disk serves on."""
    api.create(loop_spec("data", file_of()))
    api.create(null_spec("other"))
    group, other = (groups.own_group(daemon.worker_pid(name)) for name in ("data", "other"))
    child, pid, kept = _stranger_in(group), daemon.worker_pid("data"), daemon.worker_pid("other")
    daemon.kill()
    os.kill(pid, signal.SIGKILL)
    daemon.start()
    assert child.wait(timeout=60) == -signal.SIGKILL
    api.wait_other_worker("data", pid)
    assert daemon.worker_pid("other") == kept and groups.group_of(kept) == other


@contextlib.contextmanager
def _in_a_pid_namespace():
    """A process that has pid 1 in a namespace below this one; its pid here."""
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sleep", "1000"]) as parent:
        children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        (child,) = map(int, wait_until(lambda: children.read_text(encoding="ascii").split(), "a process in a namespace"))
        try:
            yield child
        finally:
            parent.kill()


def _remove(group):
    """Unless a sweep does."""
    with contextlib.suppress(FileNotFoundError):
        wait_until(lambda: groups.read(group, "cgroup.procs") == "", "an empty group")
        group.rmdir()


def test_the_group_of_a_ublkd_in_a_container_is_left_alone(daemon, api):
    """A pid namespace below: its worker, which has pid 1 there, has another one here. The name of the group says so. A
    process that a worker has forked into a namespace cannot pretend to be that."""
    api.create(null_spec("data", resources=_RESOURCES))
    _wait_in_force(api)
    own = groups.own_group(daemon.worker_pid("data"))
    daemon.kill()
    (own / "pids.max").write_text("max", encoding="ascii")
    with _in_a_pid_namespace() as child, _in_a_pid_namespace() as forked:
        namespace = os.stat(f"/proc/{child}/ns/pid").st_ino
        for process, group in ((child, own.parent / f"worker-1-{namespace}"), (forked, own.parent / "worker-1")):
            group.mkdir()
            groups.move(process, group)
        daemon.start()
        wait_until(lambda: not groups.is_alive(forked), "the end of what a worker has left")
        wait_until(lambda: groups.read(own, "pids.max") == "200", "what comes after the sweep")
        assert groups.is_alive(child) and groups.group_of(child).name == f"worker-1-{namespace}"
    _remove(own.parent / f"worker-1-{namespace}")
    _remove(own.parent / "worker-1")


def test_an_adopted_worker_keeps_its_limits(daemon, api, file_of):
    api.create(loop_spec("data", file_of(), resources=_RESOURCES))
    _wait_in_force(api)
    pid = daemon.worker_pid("data")
    group = groups.own_group(pid)
    daemon.kill()
    (group / "pids.max").write_text("max", encoding="ascii")
    daemon.start()
    wait_until(lambda: groups.read(group, "pids.max") == "200", "the limit again")
    assert daemon.worker_pid("data") == pid
    _wait_in_force(api)


def test_a_worker_of_an_older_ublkd_gets_a_group(daemon, api, file_of):
    """It has none when it is adopted."""
    api.create(loop_spec("data", file_of(), resources=_RESOURCES))
    pid = daemon.worker_pid("data")
    groups.own_group(pid)
    daemon.kill()
    groups.move(pid, groups.ROOT)
    daemon.start()
    assert groups.read(groups.own_group(pid), "pids.max") in ("200", "max")
    _wait_in_force(api)
    assert daemon.worker_pid("data") == pid


def test_the_next_worker_has_the_limits(daemon, api, file_of):
    api.create(loop_spec("data", file_of(), resources=_RESOURCES))
    _wait_in_force(api)
    pid = daemon.kill_worker("data")
    api.wait_other_worker("data", pid)
    group = groups.own_group(daemon.worker_pid("data"))
    wait_until(lambda: groups.read(group, "memory.max") == str(256 << 20), "the limit of the next worker")


@pytest.mark.long
def test_a_worker_that_runs_out_of_memory_dies_alone(daemon, api):
    """No write fails, and the worker of another disk stays."""
    disk = Disk(api.create(null_spec("data", **groups.HUNGRY))["status"]["id"])
    api.create(null_spec("other"))
    _wait_in_force(api)
    other = daemon.worker_pid("other")
    writes = groups.write_more_than_fits(disk)
    wait_until(lambda: _count(daemon, "WorkerOutOfMemory") > 0, "a worker that is killed for its memory")
    api.put(null_spec("data", **groups.SATISFIED))
    for write in writes:
        assert write.result() is None
    api.wait_phase("data", "Live")
    assert daemon.worker_pid("other") == other
    assert _count(daemon, "WorkerDied") == 0


@pytest.mark.variant
def test_a_worker_that_takes_memory_without_end_dies_alone(lair, make_daemon):
    """One that was taken over. Without `memoryMax` it could take all that the machine has."""
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    disk = Disk(daemon.api.create(null_spec("data", resources={"memoryMax": "64MiB"}))["status"]["id"])
    daemon.api.create(null_spec("other"))
    _wait_in_force(daemon.api)
    other, pid = daemon.worker_pid("other"), daemon.worker_pid("data")
    Hostile(lair, pid, disk).do("eat")
    daemon.api.wait_other_worker("data", pid)
    disk.write(0, block("a"))
    assert daemon.worker_pid("other") == other
    assert _count(daemon, "WorkerOutOfMemory") == 1 and _count(daemon, "WorkerDied") == 0


def _check_eaten(eaters, meals):
    """Wait until so many workers have begun to eat. None gets more than its limit, and all the machine has is 2 GiB."""
    wait_until(lambda: eaters.eaten()[1] >= meals, lambda: f"{meals} workers that eat: {eaters.eaten()}", timeout=120)
    most, begun = eaters.eaten()
    print(f"{begun} workers ate, {most} MiB at most")
    assert most <= 64


@pytest.mark.both
@pytest.mark.parametrize("spare", ["with a spare", "without"])
def test_memory_is_limited_from_the_first_moment(lair, make_daemon, spare):
    """A worker that its store has taken over eats before anything else, and so does the next one, again and again."""
    eaters = Eaters(lair)
    options = ["--spare-workers", "0"] if spare == "without" else []
    daemon = make_daemon(worker=programs.worker_hostile(), more_options=options).start()
    disk = Disk(daemon.api.create(null_spec("data", resources={"memoryMax": "64MiB", "pidsMax": 100}))["status"]["id"])
    daemon.api.create(null_spec("other"))
    other = daemon.worker_pid("other")
    if spare == "with a spare":
        (ready,) = wait_until(spares, "a spare worker")
        groups.own_group(ready)
    _wait_in_force(daemon.api)
    eaters.name("data")
    pid = daemon.kill_worker("data")
    write = disk.write_later(0, block("a"))
    _check_eaten(eaters, 3)
    eaters.name("")
    daemon.api.wait_other_worker("data", pid)
    assert write.result() is None
    assert daemon.worker_pid("other") == other
    wait_until(lambda: _count(daemon, "WorkerOutOfMemory") > 0, "what the worker died of")
    assert _count(daemon, "WorkerDied") == 1, daemon.events("data")  # it was killed by the test
    if spare == "with a spare":
        assert not groups.is_alive(ready)  # it was the first that ate


def test_the_first_worker_of_a_disk_has_its_limit_of_memory(lair, make_daemon):
    """There is no group of the device yet, and no spare."""
    eaters = Eaters(lair)
    eaters.name("data")
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    daemon.api.create(null_spec("data", resources={"memoryMax": "64MiB"}), wait=None)
    _check_eaten(eaters, 2)
    eaters.name("")
    daemon.api.wait_phase("data", "Live")
    assert _count(daemon, "WorkerOutOfMemory") > 0
    pid = daemon.worker_pid("data")
    groups.own_group(pid)
    starts = [path.name for path in groups.group_of(pid).parent.glob("start-*")]
    assert len(starts) == 1
    daemon.api.delete("data")
    wait_until(lambda: not list(groups.group_of(daemon.pid).parent.rglob("start-*")), "no group for starts without the device")


@of_this_kernel(Way("zero-copy") if HAS["AUTO_BUF_REG"] else Way("user-copy"), storms=[Way("user-copy")])
def test_a_tight_limit_of_memory_loses_no_byte(way, make_daemon, ext4, file_of, directory):
    """Linux 7.3 counts what it allocates for the registration of a request's pages (io_rsrc_node_alloc)."""
    daemon = way.start(make_daemon)
    spec = loop_spec("data", file_of(where=ext4), queues=2, queueDepth=128, resources={"memoryMax": "16MiB"})
    disk = way.create(daemon.api, spec)
    _wait_in_force(daemon.api)
    fio = Fio(directory, disk, depth=128, jobs=2)
    fio.wait_running(1000)
    fio.finish().assert_clean()


@pytest.mark.parametrize(
    "hide, show",
    [
        pytest.param(["mount", "-t", "tmpfs", "none"], ["umount"], id="not mounted"),
        pytest.param(
            ["mount", "-o", "remount,bind,ro"], ["mount", "-o", "remount,bind,rw"], id="read-only", marks=pytest.mark.variant
        ),
    ],
)
def test_a_machine_without_control_groups_serves(make_daemon, file_of, hide, show):
    """And says that what the spec asks for is not in force, until there are control groups."""
    mounts = pathlib.Path("/proc/self/mounts").read_text(encoding="ascii")
    assert f"cgroup2 {groups.ROOT} " in mounts
    subprocess.run([*hide, str(groups.ROOT)], check=True)
    try:
        daemon = make_daemon().start()
        device = daemon.api.create(loop_spec("data", file_of(), resources=_RESOURCES))
        _wait_not_in_force(daemon.api)
        Disk(device["status"]["id"]).write(0, block("a"))
        pid = daemon.kill_worker("data")
        daemon.api.wait_other_worker("data", pid)
        assert _count(daemon, "ResourcesNotInForce") == 1
    finally:
        subprocess.run([*show, str(groups.ROOT)], check=True)
    _wait_in_force(daemon.api)
