# SPDX-License-Identifier: MIT
"""The service in the sandbox of its unit: it has what docs/service-sandbox.md says, and all that it does still works."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

from harness import groups
from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.shell import output, run
from harness.tenants import hand_over, write_as
from harness.wait import wait_until

# linux/capability.h
_CAPABILITIES = {
    "CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_FOWNER": 3, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7,
    "CAP_SETPCAP": 8, "CAP_NET_ADMIN": 12, "CAP_SYS_CHROOT": 18, "CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21,
    "CAP_SYS_RESOURCE": 24, "CAP_MKNOD": 27,
}
_MEMALLOC_NOIO = 0x00080000  # linux/sched.h: a part of what PR_SET_IO_FLUSHER sets
_USER = 1234


def _status(task):
    lines = (task / "status").read_text(encoding="utf-8").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _flags(task):
    return int((task / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[6])


def _main_task():
    return pathlib.Path("/proc", output("systemctl", "show", "-p", "MainPID", "--value", "ublkd.service"))


def test_the_service_has_the_capabilities_that_its_page_lists_and_no_way_to_others(service):
    wanted = sum(1 << number for number in _CAPABILITIES.values())
    status = _status(_main_task())
    for name in ("CapBnd", "CapPrm", "CapEff"):
        assert int(status[name], 16) == wanted, f"{name}: {status[name]}"
    assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    shares = (_main_task() / "ns" / "mnt").readlink() == pathlib.Path("/proc/1/ns/mnt").readlink()
    assert shares, "no mount namespace of its own, which would hold what is mounted from the disks"


def test_no_page_of_the_manager_or_of_a_worker_is_swapped_out(service):
    """Both have locked all that they have, and their control groups may not swap what the lock leaves out."""
    service.create(null_spec("data"))
    worker = service.get("data")["status"]["worker"]["pid"]
    places = {_main_task(): groups.group_of(_main_task().name), pathlib.Path("/proc", str(worker)): groups.own_group(worker).parent}
    for task, group in places.items():
        status = _status(task)
        locked, mapped = (int(status[key].split()[0]) for key in ("VmLck", "VmSize"))
        assert locked > mapped * 0.9, status
        assert groups.read(group, "memory.swap.max") == "0"
    service.delete("data")


def test_a_worker_has_no_capability_left_and_its_queues_wait_for_no_io_of_their_own(service):
    service.create(null_spec("data", queues=2))
    tasks = pathlib.Path("/proc", str(service.get("data")["status"]["worker"]["pid"]), "task")
    queues = 0
    for task in tasks.iterdir():
        name, status = (task / "comm").read_text(encoding="utf-8").strip(), _status(task)
        if name.startswith("iou-"):
            continue
        for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[kind], 16) == 0, (name, kind)
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), name
        if name.startswith("queue-"):
            queues += 1
            assert _flags(task) & _MEMALLOC_NOIO, name
    assert queues == 2
    service.delete("data")


@contextlib.contextmanager
def _folder(parent):
    with tempfile.TemporaryDirectory(prefix="sandbox-", dir=parent) as name:
        yield pathlib.Path(name)


@contextlib.contextmanager
def _mounted_later():
    """A file system that is mounted while the service runs."""
    with _folder("/srv") as where:
        run("mount", "-t", "tmpfs", "later", where)
        try:
            yield where
        finally:
            run("umount", where)


@contextlib.contextmanager
def _of_a_user():
    """A directory that only a user may enter, who is not root."""
    with _folder("/home") as where:
        os.chown(where, _USER, _USER)
        where.chmod(0o700)
        yield where


_PLACES = {
    "tmp": lambda: _folder("/tmp"),
    "var-tmp": lambda: _folder("/var/tmp"),
    "home": lambda: _folder("/home"),
    "of a user": _of_a_user,
    "mounted later": _mounted_later,
}


@pytest.mark.parametrize("place", _PLACES)
def test_a_backing_file_may_be_anywhere(service, place, file_of):
    """The disk is written, recovered and read."""
    with _PLACES[place]() as where:
        path = file_of(where=where)
        os.chown(path, *(where.stat().st_uid,) * 2)
        path.chmod(0o600)
        disk = Disk(service.create(loop_spec("data", path))["status"]["id"])
        disk.write(0, block("a"))
        worker = service.get("data")["status"]["worker"]["pid"]
        os.kill(worker, 9)
        service.wait_other_worker("data", worker)
        assert disk.read(0, 4096) == block("a")
        service.delete("data")
        assert path.read_bytes()[:4096] == block("a")


def _owner(disk):
    node = os.stat(disk.path)
    return node.st_uid, node.st_gid, node.st_mode & 0o7777


def test_a_node_is_given_to_a_user_and_to_the_next(service):
    """Its owner is not root then, whose mode only CAP_FOWNER changes."""
    spec = null_spec("data", owner={"uid": _USER, "gid": _USER, "mode": "0640"})
    disk = Disk(service.create(spec)["status"]["id"])
    wait_until(lambda: _owner(disk) == (_USER, _USER, 0o640), lambda: f"the owner; it is {_owner(disk)}")
    service.put(spec | {"owner": {"uid": 77, "gid": 78, "mode": "0600"}})
    wait_until(lambda: _owner(disk) == (77, 78, 0o600), lambda: f"the next owner; it is {_owner(disk)}")
    service.delete("data")


def test_a_tenant_opens_the_node_of_his_disk(service):
    """Only CAP_MKNOD makes it, where users of the host find it."""
    disk = Disk(service.create(null_spec("data"))["status"]["id"])
    run("systemctl", "stop", "ublkd.service")
    hand_over(pathlib.Path("/var/lib/ublkd"), "data", _USER)
    run("systemctl", "start", "ublkd.service")
    node = service.wait_for("data", lambda device: device["status"]["node"], "with a node")["status"]["node"]
    assert os.stat(node).st_rdev == os.stat(disk.path).st_rdev
    assert write_as(_USER, node) is None
    assert write_as(_USER + 1, node) == "EACCES"
    with _container(node) as mounts:
        assert "/ublk/private/" in mounts.read_text(encoding="utf-8")
        service.delete("data")
        assert not os.path.exists(node)
        # CAP_SYS_PTRACE, CAP_SYS_CHROOT and the right to enter a user namespace unmount it there.
        wait_until(lambda: "/ublk/private/" not in mounts.read_text(encoding="utf-8"), "the node unmounted in the container")


@contextlib.contextmanager
def _container(node):
    """The mounts of a process of the user with namespaces of its own, which has the node mounted as a rootless engine does."""
    body = f"mount -t tmpfs none /mnt && touch /mnt/data && mount --bind {node} /mnt/data && echo ready && read end"
    with subprocess.Popen(
            ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "unshare", "--user", "--map-root-user", "--mount",
             "sh", "-c", body], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        yield pathlib.Path(f"/proc/{process.pid}/mountinfo")


@contextlib.contextmanager
def _opener(path):
    """A process of a user that has the disk open."""
    body = f"import os, sys, time; fd = os.open({path!r}, os.O_RDONLY); os.setgid({_USER}); os.setuid({_USER}); "
    body += "print(flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def test_the_process_of_a_user_that_has_the_disk_open_is_found(service):
    disk = Disk(service.create(null_spec("data"))["status"]["id"])
    with _opener(disk.path) as pid:
        problem = service.ask("DELETE", "/devices/data?wait&timeout=60s", 409)
        assert f"process {pid} (" in problem["detail"], problem["detail"]
    service.delete("data")


@pytest.mark.parametrize("kind", ["ext4", pytest.param("xfs", marks=pytest.mark.variant)])
def test_a_file_system_is_made_and_mounted(service, file_of, kind):
    """By programs that have even less than the service; the mount is there for all of the host, and outlives the service."""
    service.create(loop_spec("data", file_of(size=400 << 20)))
    made = service.ask("POST", "/devices/data/filesystem", 200, json={"type": kind})
    assert made["status"]["filesystem"]["state"] == "made"
    where = pathlib.Path(service.ask("POST", "/devices/data/mount", 200, json={"holder": "test"})["status"]["mount"])
    assert where.is_mount() and where.parent == pathlib.Path("/run/ublkd-mounts")
    (where / "file").write_bytes(block("f"))
    run("systemctl", "restart", "ublkd.service")
    wait_until(service.is_ready, "the next ublkd")
    service.ask("DELETE", "/devices/data?wait&timeout=60s", 409)
    assert (where / "file").read_bytes() == block("f")
    service.ask("POST", "/devices/data/unmount", 200, json={"holder": "test"})
    assert not where.exists()
    service.delete("data")


def test_partitions_are_read_and_mounted(service, file_of, directory):
    path, where = file_of(), directory / "mount"
    run("sfdisk", "--quiet", "--wipe=never", path, input="label: gpt\nstart=1MiB,size=32MiB\n")
    disk = Disk(service.create(loop_spec("data", path))["status"]["id"])
    part = pathlib.Path(f"{disk.path}p1")
    wait_until(part.is_block_device, "the partition")
    run("mkfs.ext4", "-q", part)
    where.mkdir()
    run("mount", part, where)
    try:
        (where / "file").write_bytes(block("f"))
        service.ask("DELETE", "/devices/data?wait&timeout=60s", 409)
    finally:
        run("umount", where)
    service.delete("data")


@pytest.fixture
def private(directory):
    """A directory from which no mount spreads to another namespace, nor does its end."""
    where = directory / "private"
    where.mkdir()
    run("mount", "-t", "tmpfs", "private", where)
    run("mount", "--make-private", where)
    yield where
    run("umount", "--recursive", where)


def test_an_unmounted_file_system_leaves_its_disk(service, file_of, private):
    """Neither the service nor a spare holds a copy of a mount that was there when it started."""
    disk, where = Disk(service.create(loop_spec("data", file_of()))["status"]["id"]), private / "mount"
    run("mkfs.ext4", "-q", disk.path)
    where.mkdir()
    run("mount", disk.path, where)
    run("systemctl", "restart", "ublkd.service")
    wait_until(service.is_ready, "the next ublkd")
    run("umount", where)
    service.delete("data")


def test_a_file_on_a_private_mount_that_came_later_is_found(service, file_of, private):
    service.create(loop_spec("data", file_of(where=private)))
    service.delete("data")
