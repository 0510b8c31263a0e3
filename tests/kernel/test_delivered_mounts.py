# SPDX-License-Identifier: MIT
"""What has a mounted file system where no list of ublkd leads: a copy that a user has passed on from its container to one of
another user, one that is mounted nowhere, another mount on the host, and the copies of namespaces that are made later."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

from harness.api import loop_spec
from harness.disk import Disk
from harness.rooms import Room
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long

_FIRST, _SECOND = 1234, 1235

# A container of the user that evaluates each line, and prints the result.
_CONTAINER = """
import ctypes, os, socket, sys
uid, link = int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
libc = ctypes.CDLL(None, use_errno=True)

def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def make_file():  # which every user may write to: the ids of the copy stay those of the first container
    os.close(os.open("/mnt/data/file", os.O_WRONLY | os.O_CREAT))
    os.chmod("/mnt/data/file", 0o666)

def pass_on():
    tree = check(libc.syscall(428, -100, b"/mnt/data", 1))  # open_tree(), OPEN_TREE_CLONE
    socket.send_fds(link, [b"t"], [tree])
    os.close(tree)
    check(libc.umount2(b"/mnt/data", 0))

def keep():  # mounted nowhere, and no mountinfo shows it
    tree = check(libc.syscall(428, -100, b"/mnt/data", 1))
    check(libc.umount2(b"/mnt/data", 0))
    return tree

def add(tree, text):
    use = os.open("file", os.O_WRONLY | os.O_APPEND, dir_fd=tree)
    write(use, text)
    os.close(use)

def take():
    (tree,) = socket.recv_fds(link, 1, 1)[1]
    os.mkdir("/mnt/data")
    check(libc.syscall(429, tree, b"", -100, b"/mnt/data", 4))  # move_mount(), MOVE_MOUNT_F_EMPTY_PATH
    os.close(tree)

def write(use, text):
    os.write(use, text)
    os.fsync(use)

os.setgroups([]); os.setgid(uid); os.setuid(uid)
libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its files in /proc are its own
check(libc.unshare(0x10020000))  # CLONE_NEWUSER | CLONE_NEWNS
for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {uid} 1")):
    with open(f"/proc/self/{file}", "w") as map:
        map.write(text)
check(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None))
print("ready", flush=True)
for line in sys.stdin:
    try:
        print(eval(line), flush=True)
    except Exception as error:
        print(repr(error), flush=True)
"""


class _Container:
    def __init__(self, uid, link):
        self._process = subprocess.Popen([sys.executable, "-c", _CONTAINER, str(uid), str(link.fileno())], pass_fds=(link.fileno(),),
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        self.pid = self._process.pid
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def run(self, line):
        """Evaluate a line there; return what it prints."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def has_it(self):
        return " /mnt/data " in pathlib.Path(f"/proc/{self.pid}/mountinfo").read_text(encoding="ascii")


def _ask(daemon, verb, body, status=200):
    return daemon.api.ask("POST", f"/devices/data/{verb}", status, json=body)


def _unmount_all(daemon):
    """Again if this guest has given the look at the containers too little time."""
    def ask():
        response = daemon.api.request("POST", "/devices/data/unmount", json={"allHolders": True})
        return response.json() if response.status_code == 200 else None
    assert wait_until(ask, "the unmount")["status"]["mount"] is None


@pytest.fixture(name="pair")
def containers_of_two_users(daemon, file_of):
    """The file system was delivered to the first one alone."""
    ours, theirs = socket.socketpair()
    with ours, theirs, _Container(_FIRST, ours) as first, _Container(_SECOND, theirs) as second:
        daemon.api.create(loop_spec("data", file_of(size=64 << 20)))
        _ask(daemon, "filesystem", {"type": "ext4"})
        where = _ask(daemon, "mount", {})["status"]["mount"]
        _ask(daemon, "deliver", {"path": "/mnt/data", "mount": True, "pid": first.pid})
        assert first.run("make_file()") == "None"
        assert set(os.listdir(f"{where}.users")) == {str(_FIRST), "end"}
        yield first, second
    if "data" in daemon.api.names():
        _unmount_all(daemon)


@pytest.fixture(name="second")
def container_that_has_it_from_another_user(pair):
    """Only the second one has it."""
    first, second = pair
    assert [first.run("pass_on()"), second.run("take()")] == ["None"] * 2
    assert second.has_it() and not first.has_it()
    return second


def test_a_copy_that_was_passed_on_and_is_used_has_the_unmount_refused(daemon, second):
    """The answer that all is unmounted would allow a client to copy the store while the container writes to it."""
    assert second.run("(use := os.open('/mnt/data/file', os.O_WRONLY))").isdigit()
    for _ in range(2):
        assert "in-use" in _ask(daemon, "unmount", {"allHolders": True}, 409)["type"]
        assert second.run("write(use, b'more')") == "None" and second.has_it()
        assert "in-use" in daemon.api.delete("data", status=409)["type"]
    second.run("os.close(use)")
    _unmount_all(daemon)
    assert not second.has_it()
    daemon.api.ask("DELETE", "/devices/data?wait&timeout=60s", 204)


@pytest.mark.variant
def test_a_copy_that_was_passed_on_is_unmounted_with_those_of_all_holders(daemon, second):
    """And stays without that, as every copy does."""
    assert "in-use" in _ask(daemon, "unmount", {}, 409)["type"]
    assert second.has_it()
    _unmount_all(daemon)
    assert not second.has_it()
    daemon.api.ask("DELETE", "/devices/data?wait&timeout=60s", 204)


def test_a_copy_that_is_mounted_nowhere_has_the_unmount_refused(daemon, pair):
    """No look finds it, and the container writes to it."""
    first, _ = pair
    tree = first.run("keep()")
    assert tree.isdigit() and not first.has_it()
    for _ in range(2):
        assert "in-use" in _ask(daemon, "unmount", {"allHolders": True}, 409)["type"]
        assert daemon.api.get("data")["status"]["mount"] is None
        assert first.run(f"add({tree}, b'more')") == "None"
        assert "in-use" in daemon.api.delete("data", status=409)["type"]
    assert first.run(f"os.close({tree})") == "None"
    _unmount_all(daemon)
    daemon.api.ask("DELETE", "/devices/data?wait&timeout=60s", 204)


@pytest.mark.variant
def test_another_mount_on_the_host_has_the_unmount_refused(daemon, file_of, directory):
    """It has the disk as a copy has it; a disk that nothing has is known as such, and gets a list of users."""
    disk = Disk(daemon.api.create(loop_spec("data", file_of(size=64 << 20)))["status"]["id"])
    _ask(daemon, "filesystem", {"type": "ext4"})
    where, other = _ask(daemon, "mount", {})["status"]["mount"], directory / "other"
    other.mkdir()
    users = pathlib.Path(f"{where}.users")
    assert os.listdir(users) == ["end"]
    run("mount", disk.path, other)
    try:
        assert "in-use" in _ask(daemon, "unmount", {"allHolders": True}, 409)["type"]
        assert daemon.api.get("data")["status"]["mount"] is None
    finally:
        run("umount", other)
    _unmount_all(daemon)
    assert not users.exists()
    run("mount", disk.path, other)
    try:
        _ask(daemon, "mount", {})
        assert not users.exists()
    finally:
        run("umount", other)
    _unmount_all(daemon)
    daemon.api.ask("DELETE", "/devices/data?wait&timeout=60s", 204)


@pytest.mark.variant
def test_namespaces_that_a_user_makes_later_have_a_copy_that_stays(daemon, file_of):
    """The kernel copies all mounts, and locks them: no process of these namespaces can unmount it, and ublkd neither."""
    daemon.api.create(loop_spec("data", file_of(size=64 << 20)))
    _ask(daemon, "filesystem", {"type": "ext4"})
    _ask(daemon, "mount", {})
    with Room(daemon.runtime / "ublkd.sock", _SECOND):
        for _ in range(2):
            assert "in-use" in _ask(daemon, "unmount", {"allHolders": True}, 409)["type"]
            assert daemon.api.get("data")["status"]["mount"] is None
            assert "in-use" in daemon.api.delete("data", status=409)["type"]
    _unmount_all(daemon)
    daemon.api.ask("DELETE", "/devices/data?wait&timeout=60s", 204)
