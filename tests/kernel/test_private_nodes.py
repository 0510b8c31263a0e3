# SPDX-License-Identifier: MIT
"""A tenant's disk has a node that only the tenant opens, and that opens no other disk, whatever dies when."""

import errno
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

from harness import ublk
from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.tenants import Elsewhere, hand_over, write_as
from harness.wait import wait_until

import pytest

pytestmark = pytest.mark.long

_TENANT, _STRANGER = 1000, 1001
_NODES = pathlib.Path("/dev/ublk/private")


@pytest.fixture(name="tenant_disk")
def disk_of_a_tenant(daemon, file_of):
    """A disk on a file; return its disk and its node."""
    path = file_of()
    device = daemon.api.create(loop_spec("theirs", path))
    assert device["status"]["node"] is None
    daemon.stop()
    hand_over(daemon.state, "theirs", _TENANT, path)
    daemon.start()
    return Disk(device["status"]["id"]), _node(daemon.api)


def _node(api, name="theirs"):
    device = api.wait_for(name, lambda device: device["status"]["node"], "with a node")
    assert device["status"]["node"] == str(_NODES / device["uid"])
    return device["status"]["node"]


def _number(path):
    return os.stat(path).st_rdev


def _next_disk_of(api, number):
    """A disk of the administrators that has the device number which a tenant's disk had."""
    disk = Disk(api.create(null_spec("next"))["status"]["id"])
    wait_until(lambda: _number(disk.path) == number, "the same number for another disk")
    return disk


def test_only_the_tenant_opens_the_node_and_only_root_the_public_one(tenant_disk):
    disk, node = tenant_disk
    found = os.stat(node)
    assert (found.st_uid, stat.S_IMODE(found.st_mode), found.st_rdev) == (_TENANT, 0o600, _number(disk.path))
    assert write_as(_TENANT, node, "t") is None
    assert disk.read(0, 4096) == block("t")
    assert write_as(_STRANGER, node) == "EACCES"
    public = os.stat(disk.path)
    assert (public.st_uid, public.st_gid, stat.S_IMODE(public.st_mode)) == (0, 0, 0o600)
    assert write_as(_TENANT, disk.path) == "EACCES"


def test_the_directory_is_closed_to_readers(tenant_disk):
    assert tenant_disk
    found = os.stat(_NODES)
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o711)


def test_no_bind_mount_opens_the_next_disk_of_the_number(daemon, tenant_disk):
    disk, node = tenant_disk
    number = _number(disk.path)
    with Elsewhere(node, _TENANT) as there:
        daemon.api.delete("theirs")
        assert not os.path.exists(node)
        following = _next_disk_of(daemon.api, number)
        assert there.number() == number == _number(following.path)
        assert there.write_as(_TENANT) == "EACCES"
        assert there.write_as(_STRANGER) == "EACCES"


@pytest.mark.variant
def test_a_stopped_disk_has_no_node_and_a_started_one_another(daemon, tenant_disk):
    _disk, node = tenant_disk
    with Elsewhere(node, _TENANT) as there:
        daemon.api.ask("POST", "/devices/theirs/stop?wait&timeout=60s", 200)
        assert daemon.api.get("theirs")["status"]["node"] is None and not os.path.exists(node)
        assert there.write_as(_TENANT) == "EACCES"
        daemon.api.ask("POST", "/devices/theirs/start?wait=ready&timeout=60s", 200)
        assert _node(daemon.api) == node
        assert write_as(_TENANT, node) is None
        assert there.write_as(_TENANT) == "EACCES"


def test_the_node_stays_while_workers_and_ublkd_die(daemon, tenant_disk):
    _disk, node = tenant_disk
    inode = os.stat(node).st_ino
    with Elsewhere(node, _TENANT) as there:
        pid = daemon.kill_worker("theirs")
        daemon.api.wait_other_worker("theirs", pid)
        daemon.kill()
        assert there.write_as(_TENANT, "u") is None
        daemon.start()
        assert _node(daemon.api) == node and os.stat(node).st_ino == inode
        assert there.write_as(_TENANT, "v") is None


@pytest.mark.variant
def test_a_ublkd_that_starts_takes_back_the_nodes_of_disks_that_are_gone(daemon, strangers, tenant_disk):
    disk, node = tenant_disk
    number = _number(disk.path)
    with Elsewhere(node, _TENANT) as there:
        worker = daemon.worker_pid("theirs")
        daemon.kill()
        ublk.remove(disk.number)
        wait_until(lambda: not pathlib.Path(f"/proc/{worker}/fd").exists(), "the worker gone")
        wait_until(lambda: not ublk.is_known(disk.number), "the number free")
        stranger = strangers(disk.number)
        wait_until(lambda: os.path.exists(disk.path) and _number(disk.path) == number, "a stranger's disk of that number")
        assert os.path.exists(node), "the node was not left behind, so this shows nothing"
        daemon.start()
        assert not os.path.exists(node) or os.stat(node).st_rdev != number
        assert there.write_as(_TENANT) == "EACCES"
        daemon.api.delete("theirs")
        stranger.close()


@pytest.mark.variant
def test_a_node_of_a_device_that_the_database_does_not_know_is_taken_back(daemon, tenant_disk):
    _disk, node = tenant_disk
    stale = _NODES / "11111111-2222-4333-8444-555555555555"
    daemon.kill()
    os.rename(node, stale)
    with Elsewhere(stale, _TENANT) as there:
        daemon.start()
        assert not stale.exists()
        assert there.write_as(_TENANT) == "EACCES"
        assert write_as(_TENANT, _node(daemon.api)) is None


@pytest.mark.variant
def test_a_disk_that_another_program_deletes_leaves_no_node(daemon, tenant_disk):
    disk, node = tenant_disk
    with Elsewhere(node, _TENANT) as there:
        ublk.remove(disk.number)
        wait_until(lambda: there.write_as(_TENANT) == "EACCES", "the old node taken back")
        daemon.api.wait_phase("theirs", "Live")
        assert write_as(_TENANT, _node(daemon.api)) is None
        assert there.write_as(_TENANT) == "EACCES"


def test_a_disk_in_use_that_is_not_removed_keeps_its_node(daemon, tenant_disk):
    _disk, node = tenant_disk
    opener = os.open(node, os.O_RDWR)
    daemon.api.delete("theirs", status=409)
    os.close(opener)
    assert write_as(_TENANT, node) is None


# A user who makes himself a container, asks from there, and writes to the node that comes. Each line that it reads is a path
# to write to; it prints the answer of the API, and then the number of each error.
_CONTAINER = """
import ctypes, http.client, os, socket, sys
socket_path, name, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
os.setgroups([]); os.setgid(uid); os.setuid(uid)
libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its files in /proc are its own
assert libc.unshare(0x10020000) == 0  # CLONE_NEWUSER | CLONE_NEWNS
for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {uid} 1")):
    with open(f"/proc/self/{file}", "w") as map:
        map.write(text)
assert libc.mount(b"none", b"/mnt", b"tmpfs", 0, None) == 0
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(socket_path)
connection.request("POST", f"/devices/{name}/deliver", '{"path": "/mnt/data"}', {"Content-Type": "application/json"})
answer = connection.getresponse()
print(answer.status, answer.read().decode().strip(), flush=True)
for line in sys.stdin:
    try:
        node = os.open("/mnt/data", os.O_RDWR)
        os.pwrite(node, line[:1].encode() * 4096, 0)
        os.fsync(node)
        os.close(node)
        print(0, flush=True)
    except OSError as error:
        print(error.errno, flush=True)
"""

_RULE = {"name": "all", "who": {"users": [_TENANT, _STRANGER]}, "targets": ["loop", "null"], "devices": 3, "size": "1GiB"}


class _Container:
    def __init__(self, daemon, name, uid):
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CONTAINER, daemon.runtime / "ublkd.sock", name, str(uid)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
        )
        status, _, text = self.process.stdout.readline().partition(" ")
        self.status, self.answer = int(status), json.loads(text)

    def write(self, letter):
        """The number of the error; 0: it was written."""
        self.process.stdin.write(letter + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(name="open_place")
def place_that_every_user_reaches():
    """Name it before `make_daemon`: it must go after it."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="open-"))
    place.chmod(0o755)
    (place / "policy.d").mkdir()
    (place / "policy.d/10-all.json").write_text(json.dumps({"rules": [_RULE]}))
    yield place
    shutil.rmtree(place)


@pytest.fixture(name="open_daemon")
def daemon_with_a_policy(open_place, make_daemon):
    """Its socket can be reached by every user."""
    return make_daemon(runtime=open_place / "run", more_options=("--policy-dir", str(open_place / "policy.d"))).start()


@pytest.mark.both
def test_a_running_container_gets_the_node_and_loses_it_with_the_disk(open_daemon, file_of):
    daemon = open_daemon
    path = file_of()
    disk = Disk(daemon.api.create(loop_spec("theirs", path))["status"]["id"])
    daemon.stop()
    hand_over(daemon.state, "theirs", _TENANT, path)
    daemon.start()
    _node(daemon.api)
    number = _number(disk.path)
    with _Container(daemon, "theirs", _TENANT) as container:
        assert (container.status, container.answer) == (200, {"path": "/mnt/data"})
        assert container.write("c") == 0
        assert disk.read(0, 4096) == block("c")
        pid = daemon.kill_worker("theirs")
        daemon.api.wait_other_worker("theirs", pid)
        daemon.kill()
        daemon.start()
        assert container.write("d") == 0
        assert not os.path.exists("/mnt/data")
        with _Container(daemon, "theirs", _STRANGER) as stranger:
            assert stranger.status == 404
        daemon.api.delete("theirs")
        _next_disk_of(daemon.api, number)
        wait_until(lambda: container.write("e") == errno.ENXIO, "the node unmounted in the container")
