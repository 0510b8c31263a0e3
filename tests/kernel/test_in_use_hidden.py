# SPDX-License-Identifier: MIT
"""Openers that are hard to find: ublkd never removes a disk in use without force."""

import contextlib
import errno
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys

import pytest

from harness import ublk
from harness.api import loop_spec
from harness.disk import Disk
from harness.marks import variants
from harness.shell import output, run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_NAMESPACES = 260  # more than the search looked at once
_PATCH = {"headers": {"Content-Type": "application/merge-patch+json"}}

# What takes a disk away, or the worker with an error that its users see: method, path, more of the request.
_TAKES_AWAY = {
    "delete": ("DELETE", "/devices/data", {}),
    "replace": ("PATCH", "/devices/data", {"json": {"blockSize": 4096}, **_PATCH}),
    "disable": ("PATCH", "/devices/data", {"json": {"enabled": False}, **_PATCH}),
}
_FORESEEN = "dryRun=true&force=true"  # what a removal would find
_HAS = ublk.features()
# recovery.onCrash with which users notice a restart
_RESTARTS = ["none", "queue", *(["fail"] if _HAS["USER_RECOVERY_FAIL_IO"] else [])]


@pytest.fixture
def disk(api, file_of):
    """The disk of the device "data"."""
    return Disk(api.create(loop_spec("data", file_of(size=64 << 20), queues=1))["status"]["id"])


@contextlib.contextmanager
def _process(*command):
    """A process that prints a line when it is ready, and is killed in the end."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout.readline(), f"{command} is ready"
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _python(body, *arguments):
    """A command: python with the libc at hand."""
    return (sys.executable, "-c", f"import ctypes, mmap, os, sys, time\nlibc = ctypes.CDLL(None)\n{body}\n"
            "print(flush=True)\ntime.sleep(1000)", *arguments)


@contextlib.contextmanager
def _named(name, body, path):
    """A process that calls itself `name` (PR_SET_NAME) and then does `body` to the disk."""
    with _process(*_python(f"libc.prctl(15, {name.encode()!r}, 0, 0, 0)\n{body}", path)) as process:
        comm = pathlib.Path(f"/proc/{process.pid}/comm").read_text(encoding="utf-8").strip()
        assert comm == name
        yield process


def _check_live(api, disk):
    """The disk is as it was: not even asked for."""
    device = api.get("data")
    assert device["status"]["phase"] == "Live" and device["spec"].get("enabled") is not False
    assert os.path.exists(disk.path)


def _check_refused(api, disk, *values, way="delete"):
    """The users of the disk are found, and the answer has these paths, processes and names of them."""
    method, path, more = _TAKES_AWAY[way]
    problem = api.ask(method, path, 409, **more)
    assert problem["type"].endswith("in-use")
    assert api.ask("DELETE", f"/devices/data?{_FORESEEN}", 200)["use"] == "used"
    for value in values:
        assert value in problem["detail"], problem["detail"]
    _check_live(api, disk)


@contextlib.contextmanager
def _many_namespaces():
    body = (
        "for _ in range(int(sys.argv[1])):\n"
        "    if os.fork() == 0:\n"
        "        assert libc.unshare(0x20000) == 0\n"  # CLONE_NEWNS
        "        os.write(1, b'.')\n"
        "        time.sleep(1000)"
    )
    with subprocess.Popen(_python(body, str(_NAMESPACES)), stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            seen = b""
            while seen.count(b".") < _NAMESPACES:
                part = process.stdout.read1()
                assert part, "all have a mount namespace"
                seen += part
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.variant
@pytest.mark.long
def test_a_mount_behind_260_namespaces(api, disk, directory):  # pylint: disable=redefined-outer-name
    """As on a host with some hundred containers. The search stopped at 256, and found no users."""
    inside = directory / "inside"
    inside.mkdir()
    run("mkfs.ext4", "-q", "-F", disk.path)
    with _many_namespaces():
        script = f"mount {disk.path} {inside} && echo && exec sleep 1000"
        with _process("unshare", "-m", "--propagation", "private", "sh", "-c", script) as container:
            _check_refused(api, disk, str(inside))
            with open(f"/proc/{container.pid}/root{inside}/file", "wb") as file:
                file.write(b"there")
                file.flush()
                os.fsync(file.fileno())
    wait_until(lambda: api.request("DELETE", "/devices/data?wait&timeout=60s").status_code == 204, "removed when free")


@pytest.mark.long
@pytest.mark.parametrize("name", ["ublkd-worker", "systemd-udevd", *variants("(udev-worker)", "ublkd-control")])
@pytest.mark.parametrize(
    "body", ["disk = os.open(sys.argv[1], os.O_RDWR)",
             "disk = os.open(sys.argv[1], os.O_RDWR); memory = mmap.mmap(disk, 4096); os.close(disk)"],
    ids=["open", "mapped"],
)
def test_a_name_hides_no_process(api, disk, name, body):  # pylint: disable=redefined-outer-name
    """A process can have any name, root or not."""
    with _named(name, body, disk.path) as process:
        _check_refused(api, disk, f"process {process.pid} ({name})")
    wait_until(lambda: api.request("DELETE", "/devices/data?wait&timeout=60s").status_code == 204, "removed when free")


@pytest.mark.parametrize("name", ["ublkd-worker", *variants("(udev-worker)")])
def test_a_name_hides_no_mount(api, disk, directory, name):  # pylint: disable=redefined-outer-name
    """In a mount namespace without other processes."""
    inside = directory / "inside"
    inside.mkdir()
    run("mkfs.ext4", "-q", "-F", disk.path)
    body = (
        "assert libc.unshare(0x20000) == 0 and libc.mount(None, b'/', None, 0x44000, None) == 0\n"
        "assert libc.mount(sys.argv[1].encode(), sys.argv[2].encode(), b'ext4', 0, None) == 0"
    )
    with _process(*_python(f"libc.prctl(15, {name.encode()!r}, 0, 0, 0)\n{body}", disk.path, inside)):
        _check_refused(api, disk, str(inside))


def test_another_name_of_the_node(api, disk, directory):  # pylint: disable=redefined-outer-name
    """As a container has it: the disk is known by its number."""
    node = pathlib.Path("/dev/in-use-test")
    os.mknod(node, 0o600 | 0o060000, os.stat(disk.path).st_rdev)
    try:
        for body in ("disk = os.open(sys.argv[1], os.O_RDWR)",
                     "disk = os.open(sys.argv[1], os.O_RDWR); memory = mmap.mmap(disk, 4096); os.close(disk)"):
            with _process(*_python(body, node)) as process:
                _check_refused(api, disk, f"process {process.pid} (python3")
    finally:
        node.unlink()


def test_a_thread_with_descriptors_of_its_own(api, disk):  # pylint: disable=redefined-outer-name
    """A thread may have descriptors of its own: unshare(CLONE_FILES)."""
    body = (
        "import threading\nready = threading.Event()\n"
        "def hold():\n"
        "    assert libc.unshare(0x400) == 0\n"
        "    os.open(sys.argv[1], os.O_RDWR)\n"
        "    ready.set()\n    time.sleep(1000)\n"
        "threading.Thread(target=hold, daemon=True).start()\nready.wait()"
    )
    with _process(*_python(body, disk.path)) as process:
        _check_refused(api, disk, f"process {process.pid} (python3")


def _make_fat(path):
    """A FAT16 file system, of which /sys/fs shows nothing; mkfs.vfat need not be there."""
    with open(path, "r+b") as disk:
        sectors = disk.seek(0, os.SEEK_END) // 512
        boot = struct.pack("<3s8sHBHBHHBHHHII", b"\xeb\x3c\x90", b"MSDOS5.0", 512, 4, 1, 2, 512, 0, 0xF8, 128, 32, 2, 0,
                           sectors)
        boot += struct.pack("<BBBI11s8s", 0x80, 0, 0x29, 1, b"NO NAME    ", b"FAT16   ")
        fat = b"\xf8\xff\xff\xff".ljust(128 * 512, b"\0")
        disk.seek(0)
        disk.write(boot.ljust(510, b"\0") + b"\x55\xaa" + fat + fat)
        os.fsync(disk.fileno())


@contextlib.contextmanager
def _lazily_unmounted(path, mount, kind):
    """Yields a file that is open for writing on a file system that no mount table shows; then closes it."""
    if kind == "vfat":
        _make_fat(path)
    else:
        run("mkfs.ext4", "-q", "-F", path)
    mount.mkdir()
    run("mount", "-t", kind, path, mount)
    with open(mount / "file", "wb", buffering=0) as file:
        run("umount", "-l", mount)
        yield file


def _write(file):
    file.write(b"x" * 4096)
    os.fsync(file.fileno())


@pytest.mark.parametrize("way", ["delete", *variants("replace", "disable")])
def test_a_file_system_that_was_unmounted_lazily(api, disk, directory, way):  # pylint: disable=redefined-outer-name
    """It is in no mount table, and a process writes to it. ublkd refuses every way to remove the disk."""
    with _lazily_unmounted(disk.path, directory / "mnt", "ext4") as file:
        _check_refused(api, disk, "ext4", way=way)
        _write(file)


@pytest.mark.parametrize("on_crash", _RESTARTS)
def test_a_restart_that_its_users_would_notice(api, file_of, directory, daemon, on_crash):
    """Of a disk that is mounted, or was unmounted lazily. With "queue" they notice it where QUIESCE_DEV is not sent."""
    device = loop_spec("data", file_of(size=64 << 20), queues=1, recovery={"onCrash": on_crash})
    disk = Disk(api.create(device)["status"]["id"])
    worker = daemon.worker_pid("data")
    with _lazily_unmounted(disk.path, directory / "mnt", "ext4") as file:
        if on_crash == "queue" and _HAS["IO_DESC_SIZE"]:
            api.restart("data")
            assert daemon.worker_pid("data") != worker
            _write(file)
            return
        problem = api.ask("POST", "/devices/data/restart", 409)
        assert problem["type"].endswith("in-use") and "ext4" in problem["detail"]
        assert daemon.worker_pid("data") == worker
        _write(file)


def _partition(disk):
    run("sfdisk", "-q", "--no-reread", "--no-tell-kernel", disk.path, input=",,L\n")
    part = f"{disk.path}p1"
    wait_until(lambda: os.path.exists(part), "the partition's node")
    return part


@pytest.mark.parametrize("where", ["disk", *variants("partition")])
def test_a_lazy_unmount_keeps_the_disk_in_use(api, file_of, directory, where):
    """No table shows it (FAT is not in /sys/fs): an exclusive open is refused, and so is all that its users would
    notice. A partition holds the whole disk. It is taken away once it is free."""
    device = loop_spec("data", file_of(size=64 << 20), queues=1, recovery={"onCrash": "none"})
    disk = Disk(api.create(device)["status"]["id"])
    path = _partition(disk) if where == "partition" else disk.path
    with _lazily_unmounted(path, directory / "mnt", "vfat") as file:
        with pytest.raises(OSError, match="busy"):
            os.close(os.open(disk.path, os.O_RDONLY | os.O_EXCL))
        for way in _TAKES_AWAY:
            _check_refused(api, disk, way=way)
        api.ask("POST", "/devices/data/restart", 409)
        _check_live(api, disk)
        _write(file)
    wait_until(lambda: api.request("DELETE", "/devices/data?wait&timeout=60s").status_code == 204, "removed when free")


def test_a_mount_namespace_without_processes(api, disk, directory):  # pylint: disable=redefined-outer-name
    """Only a bind mount keeps the namespace, as with the network namespaces of "ip netns"."""
    inside, kept = directory / "inside", directory / "kept"
    inside.mkdir()
    kept.mkdir()
    _make_fat(disk.path)
    run("mount", "--bind", kept, kept)
    run("mount", "--make-private", kept)
    (kept / "mnt").touch()
    try:
        run("unshare", f"--mount={kept}/mnt", "--propagation", "private", "mount", "-t", "vfat", disk.path, inside)
        _check_refused(api, disk)
        run("umount", kept / "mnt")
    finally:
        run("umount", "-l", kept)
    wait_until(lambda: api.request("DELETE", "/devices/data?wait&timeout=60s").status_code == 204, "removed when free")


def test_the_look_leaves_no_trace(api, disk):  # pylint: disable=redefined-outer-name
    """ublkd's own exclusive open does not count as a user, and causes no event of udev."""
    with subprocess.Popen(
        ["udevadm", "monitor", "--kernel", "--subsystem-match=block"], stdout=subprocess.PIPE, text=True
    ) as monitor:
        assert "KERNEL" in "".join(iter(monitor.stdout.readline, "\n")), "udevadm listens"
        output("udevadm", "settle")
        name = os.path.basename(disk.path)
        wait_until(lambda: api.request("DELETE", "/devices/data?wait&timeout=60s").status_code in (204, 404), "removed")
        seen = []
        for line in monitor.stdout:
            seen.append(line)
            if "remove" in line and name in line:
                break
        monitor.kill()
    assert not [line for line in seen if "change" in line and f"/{name} " in line], seen


def test_a_node_that_is_not_there(api, disk):  # pylint: disable=redefined-outer-name
    """Whether the disk is in use cannot be found out then."""
    aside = disk.path + "-aside"
    os.rename(disk.path, aside)
    try:
        problem = api.ask("DELETE", "/devices/data", 409)
        assert problem["type"].endswith("in-use") and disk.path in problem["detail"]
        assert api.ask("DELETE", f"/devices/data?{_FORESEEN}", 200)["use"] == "unknown"
        assert api.phase("data") == "Live"
        os.symlink("/dev/zero", disk.path)
        assert api.ask("DELETE", "/devices/data", 409)["type"].endswith("in-use")
        assert api.ask("DELETE", f"/devices/data?{_FORESEEN}", 200)["use"] == "unknown"
        os.unlink(disk.path)
    finally:
        os.rename(aside, disk.path)
    api.delete("data")


_MAY_NOT_LOOK = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")


def _curl(daemon, path, *more):
    """The status and the JSON of an answer to a root that has no more rights than such a ublkd, which can look at it."""
    done = run(*_MAY_NOT_LOOK, "curl", "-s", "-w", "\\n%{http_code}", "--unix-socket", daemon.runtime / "ublkd.sock", *more,
               f"http://localhost{path}", check=False)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body) if body.strip() else None


def test_an_unreadable_process_may_be_an_opener(make_daemon, file_of):
    """A ublkd that may not look at the processes of others refuses, and names what it could not read. It cannot see either
    that a root with more rights than its own is not in a container."""
    daemon = make_daemon(prefix=_MAY_NOT_LOOK)
    daemon.start(ready=False)
    wait_until(lambda: _curl(daemon, "/readyz")[0] == 200, "ublkd ready")
    spec = json.dumps(loop_spec("data", file_of(), queues=1))
    assert _curl(daemon, "/devices?wait", "-H", "Content-Type: application/json", "-d", spec)[0] == 201
    with _process("setpriv", "--reuid", "65534", "--clear-groups", "sh", "-c", "echo; exec sleep 1000"):
        status, problem = _curl(daemon, "/devices/data", "-X", "DELETE")
    assert status == 409 and problem["type"].endswith("in-use")
    assert os.strerror(errno.EACCES) in problem["detail"]
    assert daemon.api.ask("GET", "/devices/data", 403)["type"].endswith("forbidden")
    daemon.stop()
    daemon.prefix = ()
    daemon.start()
    assert daemon.api.phase("data") == "Live"
