# SPDX-License-Identifier: MIT
"""What forbids a delivery: profiles of AppArmor that confine the container, the client or ublkd itself, a file system that is
read-only, and a container whose root is that of the host. The guests have no policy of SELinux."""

import os
import subprocess

import pytest

from harness.api import loop_spec, null_spec
from harness.apparmor import AppArmor, confined
from harness.disk import block
from harness.rooms import Room
from harness.tenants import Place, User
from harness.wait import wait_until

pytestmark = pytest.mark.long

_USER = 1234
_NAME = f"u{_USER}-data"
_SIZE = 64 << 20
_OURS, _THEIRS = "ublkd-test", "ublkd-test-user"  # profiles


@pytest.fixture(name="apparmor")
def module_of_the_kernel():
    """Name it before `place`: it must go after it."""
    module = AppArmor("/run")
    assert "apparmor" in module.modules()
    for profile in (_OURS, _THEIRS):
        module.load(profile)
    yield module
    module.close()


@pytest.fixture(name="prefix")
def what_starts_ublkd():
    return ()


@pytest.fixture(name="place")
def daemon_with_a_rule_for_the_user(make_daemon, directory, prefix):
    rule = {"name": "user", "who": {"users": [_USER]}, "targets": ["loop", "null"], "directories": [str(directory)], "devices": 3,
            "size": "1GiB"}
    return Place(make_daemon, directory, {"rules": [rule]}, prefix=prefix)


def _give_node(place):
    """The user has a disk with a node."""
    return User(place.daemon, _USER).create(null_spec(_NAME))["status"]["node"]


class _Volume:
    """A file system of the administrators that is mounted."""

    def __init__(self, api, path):
        self._api = api
        api.create(loop_spec("volume", path))
        self._ask("filesystem", {"type": "ext4"})
        self.mount()

    def _ask(self, verb, body, status=200):
        return self._api.ask("POST", f"/devices/volume/{verb}", status, json=body)

    def mount(self):
        """On the host."""
        self._ask("mount", {})

    def deliver(self, pid, path="/mnt/volume", status=200):
        """Into the container of a process; return the answer."""
        return self._ask("deliver", {"path": path, "mount": True, "pid": pid}, status)

    def unmount(self):
        """Everywhere; again if this guest has given the look at the containers too little time."""
        answers = []

        def ends():
            answers.append(self._api.request("POST", "/devices/volume/unmount", json={"allHolders": True}))
            return answers[-1].status_code == 200

        wait_until(ends, lambda: f"the unmount: {answers[-1].text}")


@pytest.fixture(name="volume")
def file_system_that_is_mounted(place, file_of):
    volume = _Volume(place.daemon.api, file_of(size=_SIZE))
    yield volume
    volume.unmount()


def _reasons(problem):
    return [(fault["pointer"], fault["reason"]) for fault in problem["errors"]]


def _write(room, path):
    return room.run(f"dd if=/dev/zero of={path} bs=4096 count=1 conv=notrunc,fsync status=none")


# ---- a profile of the container ----


def test_a_container_that_may_not_mount_gets_its_node_and_its_volume(apparmor, place, volume):
    """Its profile is of its processes, and not of those that deliver. What the processes may open, it decides."""
    apparmor.load(_THEIRS, "mount", "umount", "/mnt/forbidden rw", "/mnt/volume/forbidden rw")
    _give_node(place)
    with Room(place.daemon.runtime / "ublkd.sock", _USER, confined(_THEIRS)) as room:
        assert room.run("cat /proc/self/attr/current") == (0, f"{_THEIRS} (enforce)")
        assert room.run("mkdir /mnt/own && mount -t tmpfs none /mnt/own")[0] != 0, "the profile is not in force"
        for path in ("/mnt/data", "/mnt/forbidden"):
            assert room.ask("POST", f"/devices/{_NAME}/deliver", {"path": path}) == (200, {"path": path})
        assert _write(room, "/mnt/data")[0] == 0
        status, text = _write(room, "/mnt/forbidden")
        assert status != 0 and "Permission denied" in text
        volume.deliver(room.pid)
        assert room.run("echo data >/mnt/volume/file && cat /mnt/volume/file") == (0, "data")
        assert room.run("echo data >/mnt/volume/forbidden")[0] != 0
        assert room.run("umount /mnt/volume")[0] != 0


@pytest.mark.both
@pytest.mark.variant
def test_a_volume_is_taken_back_from_a_container_that_may_not_unmount(apparmor, place, volume):
    """While the container runs: it is ublkd that unmounts, with its own profile. The container is older than the mount: what is
    mounted when it is made it has as a copy that the kernel locks (docs/filesystems.md)."""
    apparmor.load(_THEIRS, "mount", "umount")
    volume.unmount()
    with Room(place.daemon.runtime / "ublkd.sock", _USER, confined(_THEIRS)) as room:
        for letter in "abcde":
            volume.mount()
            volume.deliver(room.pid)
            assert room.run(f"echo {letter} >/mnt/volume/file && cat /mnt/volume/file") == (0, letter)
            assert room.run("umount /mnt/volume")[0] != 0, "the profile is not in force"
            volume.unmount()
            assert room.run("ls -A /mnt/volume") == (0, "")


# ---- a profile of the client ----


def test_a_client_that_may_connect_has_what_its_user_has(apparmor, place):
    """Its profile forbids the file, and a disk on the file gives it the bytes: ublkd knows its user (docs/security.md). A profile that
    forbids the nodes stops that."""
    user = User(place.daemon, _USER)
    user.prefix += confined(_THEIRS)
    path = place.home(user) / "disk.img"
    path.write_bytes(block("s") + bytes(_SIZE - 4096))
    os.chown(path, _USER, _USER)
    assert user.run("head", "-c", "1", path).stdout == "s"
    apparmor.load(_THEIRS, f"{path.parent}/** rwklm")
    assert user.run("head", "-c", "1", path).returncode != 0, "the profile is not in force"
    node = user.create(loop_spec(_NAME, path, size=_SIZE))["status"]["node"]
    assert user.run("head", "-c", "1", node).stdout == "s"
    apparmor.load(_THEIRS, "/dev/ublk/private/** rw")
    assert user.run("head", "-c", "1", node).returncode != 0
    apparmor.load(_THEIRS)
    assert user.ask("DELETE", f"/devices/{_NAME}?wait&timeout=60s")[0] == 204


# ---- a profile of ublkd ----

_DENIED = (("mount -> /mnt/**", "SecurityModule"), ("capability sys_chroot", "SecurityModule"), ("/mnt/** w", "NoRight"))


@pytest.mark.parametrize("prefix", [confined(_OURS)], ids=["confined"])
def test_a_delivery_that_the_profile_of_ublkd_forbids_leaves_nothing(apparmor, place, volume):
    """The same one succeeds when the profile allows it."""
    _give_node(place)
    with Room(place.daemon.runtime / "ublkd.sock", _USER) as room:
        before = room.mounts()
        for denied, reason in _DENIED:
            apparmor.load(_OURS, denied)
            status, problem = room.ask("POST", f"/devices/{_NAME}/deliver", {"path": "/mnt/data"})
            assert (status, _reasons(problem)) == (409, [("/path", reason)]), denied
            assert _reasons(volume.deliver(room.pid, status=409)) == [("/path", reason)], denied
            assert room.run("ls -A /mnt") == (0, "") and room.mounts() == before, denied
        apparmor.load(_OURS)
        assert room.ask("POST", f"/devices/{_NAME}/deliver", {"path": "/mnt/data"})[0] == 200
        volume.deliver(room.pid)
        assert _write(room, "/mnt/data")[0] == 0 and _write(room, "/mnt/volume/file")[0] == 0


# ---- no module ----


def test_a_read_only_file_system_in_a_container_is_refused(place, volume):
    """As that for /dev of a container with --read-only."""
    _give_node(place)
    with Room(place.daemon.runtime / "ublkd.sock", _USER) as room:
        assert room.run("mkdir /mnt/dev && mount -t tmpfs -o ro none /mnt/dev")[0] == 0
        status, problem = room.ask("POST", f"/devices/{_NAME}/deliver", {"path": "/mnt/dev/data"})
        assert (status, _reasons(problem)) == (409, [("/path", "ReadOnly")])
        assert _reasons(volume.deliver(room.pid, "/mnt/dev/data", 409)) == [("/path", "ReadOnly")]
        assert room.run("ls -A /mnt/dev") == (0, "")


def test_a_container_of_root_is_sent_to_its_start(place, volume):
    """Its control group for devices would not let it open the disk: it is refused before that shows. test_docker.py has one with a
    user namespace, which sees it when it opens the node."""
    _give_node(place)
    with subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo && read -r end"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as container:
        assert container.stdout.readline() == b"\n"
        body = {"path": "/mnt/data", "pid": container.pid}
        problem = place.daemon.api.ask("POST", f"/devices/{_NAME}/deliver", 409, json=body)
        assert _reasons(problem) == [("/path", "NoUserNamespace")]
        assert _reasons(volume.deliver(container.pid, "/mnt/volume", 409)) == [("/path", "NoUserNamespace")]
        container.stdin.close()
