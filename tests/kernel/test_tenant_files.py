# SPDX-License-Identifier: MIT
"""Users without any right have disks on files of their own, with the real driver. What the user may not open, no worker opens for
it, also not later."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from harness.api import condition_of
from harness.disk import Disk, block
from harness.fio import FileOnDisk, Fio
from harness.marks import variants
from harness.shell import run
from harness.silent_fs import silent_fs
from harness.tenants import Place, User, kill_under
from harness.wait import wait_until

pytestmark = pytest.mark.long

_ALICE, _BOB = 2001, 2002
_SIZE = 64 << 20
_MARK = block("r")


class _Files(Place):
    """A daemon, a user, and a directory of the user on a file system with O_DIRECT."""

    def __init__(self, make_daemon, directory, ext4):
        for path in (ext4.parent.parent, ext4.parent, ext4):
            path.chmod(0o755)
        super().__init__(make_daemon, directory, {"rules": [{
            "name": "test", "who": {"users": [_ALICE]}, "targets": ["loop"], "directories": [str(ext4)], "devices": 4, "size": "1GiB",
        }]})
        self.alice = User(self.daemon, _ALICE)
        self.root = ext4
        self.own = ext4 / "alice"
        self.own.mkdir()
        os.chown(self.own, _ALICE, _ALICE)

    def file(self, name="disk.img", owner=_ALICE, mode=0o600, mark=None, where=None):
        path = (where or self.own) / name
        with open(path, "wb") as file:
            file.truncate(_SIZE)
            if mark:
                file.write(mark)
        os.chown(path, owner, owner)
        path.chmod(mode)
        return path

    def secret(self):
        """A file that only root may open."""
        return self.file("secret", 0, 0o600, _MARK, self.root)

    def spec(self, path, name="data", **more):
        return {"name": f"u{_ALICE}-{name}", "target": {"type": "loop", "path": str(path)}, "size": _SIZE, **more}

    def create(self, path):
        """A device that is Live: its name and its disk."""
        device = self.alice.create(self.spec(path))
        return device["name"], Disk(device["status"]["id"])

    def refuses(self, name, reason):
        """Wait until the device has that reason."""
        return self.daemon.api.wait_for(name, lambda device: condition_of(device)["reason"] == reason, reason)

    def lose_everything(self, name):
        """No process has a descriptor of the file any more: worker and ublkd die, and the disk stays."""
        pid = self.daemon.worker_pid(name)
        self.daemon.kill()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}/fd").exists(), "the worker gone")


@pytest.fixture(name="files")
def files_of_tenants(ext4, make_daemon, directory):  # in this order: devices go before their file system
    return _Files(make_daemon, directory, ext4)


@pytest.mark.variant  # test_tenants.py does it with an image of a pool
def test_a_file_of_a_user_recovers(files):
    """fio checks what it reads as that user, while the worker and ublkd are killed, and the file stays."""
    path, daemon = files.file(), files.daemon
    device = files.alice.create(files.spec(path))
    name, disk = device["name"], Disk(device["status"]["id"])
    assert condition_of(device, "PathLeadsToStore") is None
    fio = Fio(files.home(files.alice), FileOnDisk(device["status"]["node"], disk), size="16M", jobs=2, prefix=files.alice.prefix)
    try:
        kill_under(fio, daemon, name)
        files.lose_everything(name)
        daemon.start()
        daemon.api.wait_phase(name, "Live")
        fio.wait_running()
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert disk.read(0, 1 << 20) == path.read_bytes()[:1 << 20]
    assert files.alice.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
    assert (path.stat().st_uid, path.stat().st_size) == (_ALICE, _SIZE)


@pytest.mark.parametrize("how", ["a file", "a link", "a hard link"])
def test_a_file_of_root_is_refused(files, how):
    """Also one that every user may write, and one that the user gave a name of its own."""
    secret = files.secret()
    path = files.own / "other"
    if how == "a file":
        path = files.file("open", 0, 0o666, _MARK)
    elif how == "a link":
        path.symlink_to(secret)
    else:
        path.hardlink_to(secret)
    reason = "BackingFileUnsuitable" if how == "a link" else "BackingFileNotPermitted"
    assert files.alice.ask("POST", "/devices", files.spec(path))[0] == 201
    device = files.refuses(f"u{_ALICE}-data", reason)
    assert device["status"]["id"] is None or not Disk(device["status"]["id"]).exists()
    assert path.read_bytes()[:4096] == _MARK


@pytest.mark.parametrize("kind", ["mkfifo", "mknod b 7 0", "mknod c 1 3"])
def test_what_is_not_a_file_is_not_opened(files, kind):
    path = files.own / "special"
    command, *numbers = kind.split()
    run(command, "-m", "666", path, *numbers)
    os.chown(path, _ALICE, _ALICE)
    assert files.alice.ask("POST", "/devices", files.spec(path))[0] == 201
    files.refuses(f"u{_ALICE}-data", "BackingFileUnsuitable")


def test_a_file_that_may_only_be_read(files):
    path = files.file(mode=0o400)
    assert files.alice.ask("POST", "/devices", files.spec(path))[0] == 201
    files.refuses(f"u{_ALICE}-data", "BackingFileNotPermitted")
    assert files.alice.ask("DELETE", f"/devices/u{_ALICE}-data?wait&timeout=60s")[0] == 204
    files.alice.create(files.spec(path, readOnly=True))


@pytest.mark.parametrize("how", [pytest.param("link", marks=pytest.mark.variant), pytest.param("hard link", marks=pytest.mark.variant), "directory"])
def test_a_path_that_is_swapped_under_a_disk(files, how):
    """With a descriptor that ublkd keeps the disk goes on with its file. Without one the file of root is refused."""
    path, secret = files.file(), files.secret()
    name, disk = files.create(path)
    disk.write(0, block("a"))
    kept = files.root / "kept"
    if how == "directory":
        files.own.rename(kept)
        files.own.symlink_to(files.root)
        (files.root / "disk.img").hardlink_to(secret)
    else:
        path.rename(kept)
        (path.symlink_to if how == "link" else path.hardlink_to)(secret)
    pid = files.daemon.kill_worker(name)
    files.daemon.api.wait_other_worker(name, pid)
    disk.write(4096, block("b"))
    files.lose_everything(name)
    files.daemon.start()
    files.refuses(name, "BackingFileNotPermitted" if how == "hard link" else "BackingFileUnsuitable")
    assert secret.read_bytes() == _MARK + bytes(_SIZE - len(_MARK))
    if how == "directory":
        files.own.unlink()
        kept.rename(files.own)
    else:
        kept.replace(path)
    assert files.alice.ask("POST", f"/devices/{name}/recover")[0] in (200, 202)
    files.daemon.api.wait_phase(name, "Live")
    assert disk.read(0, 8192) == block("a") + block("b")
    assert secret.read_bytes() == _MARK + bytes(_SIZE - len(_MARK))


def test_another_file_of_the_user_is_refused(files):
    """It belongs to the user, and is not the one that the disk was made on."""
    path = files.file()
    name, disk = files.create(path)
    disk.write(0, block("a"))
    kept = path.rename(files.own / "kept")
    other = files.file(mark=block("z"))
    files.lose_everything(name)
    files.daemon.start()
    files.refuses(name, "BackingChanged")
    assert other.read_bytes()[:4096] == block("z")
    kept.replace(path)
    assert files.alice.ask("POST", f"/devices/{name}/recover")[0] in (200, 202)
    files.daemon.api.wait_phase(name, "Live")
    assert disk.read(0, 4096) == block("a")


@pytest.mark.parametrize("how", ["owner", *variants("mode")])
def test_a_right_that_was_taken_away_counts_for_the_next_worker(files, how):
    """Also with a descriptor that ublkd keeps. The disk waits, and goes on once the right is back."""
    path = files.file()
    name, disk = files.create(path)
    disk.write(0, block("a"))
    if how == "owner":
        os.chown(path, 0, 0)
    else:
        path.chmod(0o400)
    assert disk.read(0, 4096) == block("a")
    files.daemon.kill_worker(name)
    files.refuses(name, "BackingFileNotPermitted")
    os.chown(path, _ALICE, _ALICE)
    path.chmod(0o600)
    assert files.alice.ask("POST", f"/devices/{name}/recover")[0] in (200, 202)
    files.daemon.api.wait_phase(name, "Live")
    assert disk.read(0, 4096) == block("a")


def test_a_file_system_that_does_not_answer_is_not_asked(files):
    """FUSE whose server is stopped: the device is refused at once, and another one gets its disk meanwhile."""
    with silent_fs(files.own / "silent") as silent, silent.silent():
        assert files.alice.ask("POST", "/devices", files.spec(silent.path, "slow"))[0] == 201
        files.refuses(f"u{_ALICE}-slow", "BackingFileUnsuitable")
        files.create(files.file())
        files.daemon.api.delete(f"u{_ALICE}-slow")


@pytest.mark.variant
def test_a_rootless_container_has_a_disk_on_a_volume(files):
    """Its path is another one on the host. A file that only the container has is none of the host."""
    path = files.file()
    inside = User(files.daemon, _ALICE, container=True)
    inside.prefix += ["sh", "-c", 'mount --bind "$1" /mnt && mount -t tmpfs none /media && shift && exec "$@"', "sh", files.own]
    device = inside.create(files.spec(f"/mnt/{path.name}"))
    assert device["spec"]["target"]["path"] == str(path) and device["tenant"] == f"uid:{_ALICE}"
    node, name = device["status"]["node"], device["name"]
    assert inside.run("dd", "if=/dev/zero", f"of={node}", "bs=4096", "count=1", "oflag=direct", "status=none").returncode == 0
    files.lose_everything(name)
    files.daemon.start()
    files.daemon.api.wait_phase(name, "Live")
    assert Disk(device["status"]["id"]).read(0, 4096) == bytes(4096)
    status, problem = inside.ask("POST", "/devices", files.spec("/media/x", "other"))
    assert status == 403 and [fault["reason"] for fault in problem["errors"]] == ["PathOfContainer"]


_SWAP = """
import ctypes, select, sys
exchange, one, other = ctypes.CDLL(None).renameat2, *(path.encode() for path in sys.argv[1:])
print(exchange(-100, one, -100, other, 2), flush=True)  # AT_FDCWD, RENAME_EXCHANGE
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(100):
        exchange(-100, one, -100, other, 2)
"""


@pytest.mark.storm
def test_a_container_that_swaps_its_path_gets_no_file_of_root(files):
    """It exchanges its file with a link to one of root as fast as it can, while it asks for disks."""
    own, secret = files.file(), files.secret()
    (files.own / "link").symlink_to(secret)
    inside = User(files.daemon, _ALICE, container=True)
    inside.prefix += ["sh", "-c", 'mount --bind "$1" /mnt && shift && exec "$@"', "sh", files.own]
    command = [*inside.prefix, sys.executable, "-c", _SWAP, f"/mnt/{own.name}", "/mnt/link"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as swaps:
        assert swaps.stdout.readline() == b"0\n"
        for _ in range(20):
            spec = files.spec(f"/mnt/{own.name}")
            status, answer = inside.ask("POST", "/devices?wait=ready&timeout=60s", spec)
            if status == 201:
                assert Disk(answer["status"]["id"]).read(0, 4096) == bytes(4096)
            else:
                assert (status, answer["type"]) == (422, "urn:ublkd:problem:cannot-start"), answer
            assert inside.ask("DELETE", f"/devices/{spec['name']}?wait&timeout=60s")[0] == 204
        assert swaps.poll() is None
    assert secret.read_bytes()[:4096] == _MARK


_HOLD = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
if len(sys.argv) > 2:
    fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def _held_by(uid, path, *lock):
    """A process of a user that has the file open, and has a lock on it with one more argument; yields its pid."""
    command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", sys.executable, "-c", _HOLD, str(path), *lock]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as process:
        assert process.stdout.readline() == b"\n"
        yield process.pid
        process.stdin.close()


def test_a_message_names_nothing_of_others(files):
    """Bob has a lock on the file of alice, and root has her disk open. Root reads which process that is; she does not."""
    path, root = files.file(mode=0o666), files.daemon.api
    name = files.spec(path)["name"]
    url = ["--unix-socket", files.daemon.runtime / "ublkd.sock", "-H", "Accept: application/json"]
    with _held_by(_BOB, path, "lock") as holder:
        assert files.alice.ask("POST", "/devices", files.spec(path))[0] == 201
        assert f"process {holder} " in json.dumps(files.refuses(name, "BackingInUse"))
        for target in (f"devices/{name}", "devices", f"events?device={name}"):
            text = files.alice.run("curl", "-sSf", *url, f"http://localhost/{target}").stdout
            assert "BackingInUse" in text and f"process {holder}" not in text
    disk = Disk(root.wait_phase(name, "Live")["status"]["id"])
    with _held_by(0, disk.path) as holder:
        for client, shown in ((files.alice, False), (User(files.daemon, 0), True)):
            status, answer = client.ask("DELETE", f"/devices/{name}")
            assert status == 409 and (f"process {holder} " in json.dumps(answer)) is shown
    assert files.alice.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
