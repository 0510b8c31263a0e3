# SPDX-License-Identifier: MIT
"""The files for container engines: a small runner does what they describe, as an engine of root and as one of a tenant."""

import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from harness import ublk
from harness.api import loop_spec
from harness.disk import Disk, block
from harness.tenants import hand_over
from harness.wait import wait_until

pytestmark = pytest.mark.long

_TENANT, _STRANGER = 1000, 1001

# What an engine does with a file: read it as its user, enter namespaces (a rootless one also users), and apply the edits of the
# device. It writes a block to what it finds at the path in the container, and prints the number of the error.
_ENGINE = """
import ctypes, json, os, sys
file, name, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
flags = 0x20000  # CLONE_NEWNS
if uid:
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
    libc.prctl(4, 1, 0, 0, 0)
    flags |= 0x10000000  # CLONE_NEWUSER
try:
    with open(file) as text:
        spec = json.load(text)
except OSError as error:
    print(error.errno)
    sys.exit()
assert spec["kind"] == "ublkd.io/disk"
edits, = [device["containerEdits"] for device in spec["devices"] if device["name"] == name]
assert libc.unshare(flags) == 0
if uid:
    for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {uid} 1")):
        with open(f"/proc/self/{file}", "w") as map:
            map.write(text)
assert libc.mount(b"none", b"/", None, 0x44000, None) == 0  # MS_REC | MS_PRIVATE
# The root directory of the container: a node is opened only on a file system that a user has not made.
root = b"/mnt"
assert libc.mount(b"none", root, b"tmpfs", 0, None) == 0
paths = []
for mount in edits.get("mounts", []):
    path = root.decode() + mount["containerPath"]
    os.makedirs(os.path.dirname(path))
    open(path, "w").close()
    assert libc.mount(mount["hostPath"].encode(), path.encode(), None, 4096, None) == 0  # MS_BIND
    paths.append(path)
for node in edits.get("deviceNodes", []):
    path = root.decode() + node["path"]
    os.makedirs(os.path.dirname(path))
    os.mknod(path, 0o660 | 0o060000, os.makedev(node["major"], node["minor"]))
    os.chown(path, node["uid"], node["gid"])
    paths.append(path)
path, = paths
try:
    node = os.open(path, os.O_RDWR)
    os.pwrite(node, b"e" * 4096, 0)
    os.fsync(node)
except OSError as error:
    print(error.errno)
else:
    print(0)
"""


def _engine(file, uid=0, name="data"):
    """The number of the error; 0: it has written."""
    return int(subprocess.run(
        [sys.executable, "-c", _ENGINE, str(file), name, str(uid)], check=True, stdout=subprocess.PIPE, text=True, timeout=60,
        cwd="/").stdout)


@pytest.fixture(name="cdi")
def directory_of_the_engines(directory):
    directory.chmod(0o755)
    return directory / "cdi"


@pytest.fixture(name="cdi_daemon")
def daemon_that_writes_files(make_daemon, cdi):
    return make_daemon(more_options=("--cdi-dir", str(cdi))).start()


def test_a_container_of_root_gets_the_disk_until_it_is_removed(cdi_daemon, cdi, file_of):
    disk = Disk(cdi_daemon.api.create(loop_spec("data", file_of()))["status"]["id"])
    file = cdi / "ublkd-data.json"
    assert _engine(file) == 0
    assert disk.read(0, 4096) == block("e")
    inode = file.stat().st_ino
    cdi_daemon.api.wait_other_worker("data", cdi_daemon.kill_worker("data"))
    assert file.stat().st_ino == inode
    cdi_daemon.api.ask("POST", "/devices/data/stop?wait&timeout=60s", 200)
    assert not file.exists()
    cdi_daemon.api.ask("POST", "/devices/data/start?wait=ready&timeout=60s", 200)
    assert _engine(file) == 0
    cdi_daemon.api.delete("data")
    assert not list(cdi.iterdir())


def test_a_disk_in_use_that_is_not_removed_keeps_its_file(cdi_daemon, cdi, file_of):
    disk = Disk(cdi_daemon.api.create(loop_spec("data", file_of()))["status"]["id"])
    opener = os.open(disk.path, os.O_RDWR)
    cdi_daemon.api.delete("data", status=409)
    os.close(opener)
    wait_until((cdi / "ublkd-data.json").exists, "the file again")


def test_a_rootless_container_gets_the_disk_of_its_tenant_alone(cdi_daemon, cdi, file_of):
    disk = Disk(cdi_daemon.api.create(loop_spec("data", file_of()))["status"]["id"])
    cdi_daemon.stop()
    hand_over(cdi_daemon.state, "data", _TENANT)
    cdi_daemon.start()
    uid = cdi_daemon.api.wait_for("data", lambda device: device["status"]["node"], "with a node")["uid"]
    file, = cdi.iterdir()
    assert file.name == f"ublkd-@{uid}.json"
    found = file.stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (0, 0o440)
    assert _engine(file, _TENANT) == 0
    assert disk.read(0, 4096) == block("e")
    assert os.strerror(_engine(file, _STRANGER)) == "Permission denied"


def test_files_that_are_left_behind_go_at_the_start(cdi_daemon, cdi, file_of):
    disk = Disk(cdi_daemon.api.create(loop_spec("data", file_of()))["status"]["id"])
    file, theirs = cdi / "ublkd-data.json", cdi / "ublkd-theirs.json"
    theirs.write_text(json.dumps({"cdiVersion": "0.5.0"}))
    worker = cdi_daemon.worker_pid("data")
    cdi_daemon.kill()
    ublk.remove(disk.number)
    wait_until(lambda: not pathlib.Path(f"/proc/{worker}/fd").exists(), "the worker gone")
    assert file.exists(), "the file was not left behind, so this shows nothing"
    os.setxattr(file, "trusted.test.old", b"1")  # another file may get the same inode number
    cdi_daemon.start()
    assert not file.exists() or "trusted.test.old" not in os.listxattr(file)
    assert theirs.exists()


def _let_others_write(_daemon, cdi):
    cdi.chmod(0o777)


def _break_the_list(daemon, _cdi):
    names = daemon.state / "cdi-directories"
    names.unlink()
    names.mkdir()


@pytest.mark.parametrize("spoil", [_let_others_write, _break_the_list])
def test_a_directory_that_may_not_be_used_any_more_keeps_no_file(cdi_daemon, cdi, file_of, spoil):
    cdi_daemon.api.create(loop_spec("data", file_of()))
    file = cdi / "ublkd-data.json"
    cdi_daemon.stop()
    assert file.exists(), "the file was not left behind, so this shows nothing"
    spoil(cdi_daemon, cdi)
    cdi_daemon.start()
    assert not file.exists()
    cdi_daemon.api.delete("data")
