# SPDX-License-Identifier: MIT
"""A disk comes into a container that runs: by the helpers of the service, which are in the sandbox of its unit."""

import contextlib
import os
import pathlib

import pytest

from harness.api import null_spec
from harness.disk import Disk, block
from harness.rooms import Room
from harness.shell import run
from harness.wait import wait_until

_USER = 1234
_NAME = f"u{_USER}-data"
_RULE = {"name": "user", "who": {"users": [_USER]}, "targets": ["loop"], "pools": ["fast"], "mount": True, "devices": 1, "size": "1GiB"}
_MOUNTS = pathlib.Path("/run/ublkd-mounts")
_HELPERS = {"ublkd-delivery", "ublkd-recall", "ublkd-mkfs", "mkfs.ext4", "e2fsck"}


class _Container(Room):
    def __init__(self):
        super().__init__("/run/ublkd/ublkd.sock", _USER)

    def write(self, letter):
        """Write a block to the node that was delivered; return the exit status."""
        return self.run(f"head -c 4096 /dev/zero | tr '\\0' {letter} | dd of=/mnt/data bs=4096 iflag=fullblock oflag=direct "
                        "conv=nocreat,notrunc status=none")[0]


@pytest.fixture(name="pool")
def pool_of_the_user(ext4, service, rules):  # in this order: the devices go before their pool
    """The user may have a disk there."""
    assert service
    pool = ext4 / "pool"
    pool.mkdir(mode=0o700)
    rules(_RULE, pools={"fast": {"directory": str(pool)}})
    return pool


def _create(there, **more):
    spec = {"name": _NAME, "target": {"type": "loop", "pool": "fast"}, "size": 64 << 20, **more}
    status, device = there.ask("POST", "/devices?wait=ready&timeout=60s", spec)
    assert status == 201 and device["tenant"] == f"uid:{_USER}", device
    return device


def _restart(service):
    run("systemctl", "restart", "ublkd.service")
    wait_until(service.is_ready, "the next ublkd")


def _replace_worker(service):
    device = service.wait_for(_NAME, lambda device: device["status"]["worker"], "with a worker")  # the next ublkd adopts it
    worker = device["status"]["worker"]["pid"]
    os.kill(worker, 9)
    service.wait_other_worker(_NAME, worker)


def _left_helpers():
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            found.add(path.read_text(encoding="utf-8").strip())
    return found & _HELPERS


def _entries(directory):
    return os.listdir(directory) if directory.exists() else []


def _assert_nothing_left(service, there, pool):
    """No mount, node, image, directory or process, on the host or in the container."""
    assert service.names() == []
    wait_until(lambda: "/ublk/private/" not in there.mountinfo() and "/dev/ublkb" not in there.mountinfo(), "no mount left in the container")
    wait_until(lambda: "/dev/ublkb" not in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8"), "no mount left on the host")
    for directory in (pathlib.Path("/dev/ublk/private"), pool, _MOUNTS):
        wait_until(lambda there=directory: not _entries(there), f"nothing left in {directory}")
    wait_until(lambda: not _left_helpers(), lambda: f"no helper left: {_left_helpers()}")


@pytest.mark.variant
def test_a_node_comes_into_a_running_container_and_goes_with_the_disk(service, pool):
    with _Container() as there:
        disk = Disk(_create(there)["status"]["id"])
        service.wait_for(_NAME, lambda device: device["status"]["node"], "with a node")
        assert there.ask("POST", f"/devices/{_NAME}/deliver", {"path": "/mnt/data"}) == (200, {"path": "/mnt/data"})
        assert there.write("a") == 0 and disk.read(0, 4096) == block("a")
        _restart(service)
        _replace_worker(service)
        assert there.write("b") == 0 and disk.read(0, 4096) == block("b")
        assert there.ask("DELETE", f"/devices/{_NAME}?wait&timeout=60s")[0] == 204
        _assert_nothing_left(service, there, pool)
        assert there.write("c") != 0


def _deliver_volume(there):
    """Have the device of the user mounted in the container."""
    device = _create(there, privateNode=False)
    steps = (("filesystem", {"type": "ext4"}), ("mount", {}), ("deliver", {"path": "/mnt/volume", "mount": True}))
    assert [there.ask("POST", f"/devices/{_NAME}/{verb}", body)[0] for verb, body in steps] == [200] * 3
    assert set(os.listdir(_MOUNTS / f"{device['uid']}.users")) == {str(_USER), "end"}  # whose containers an unmount looks at
    return device


def test_a_mounted_volume_comes_into_a_running_container(service, pool):
    with _Container() as there:
        _deliver_volume(there)
        assert there.run("echo hello >/mnt/volume/file && test -O /mnt/volume/file")[0] == 0
        _restart(service)
        _replace_worker(service)
        assert there.run("sync /mnt/volume/file && cat /mnt/volume/file") == (0, "hello")
        assert there.ask("DELETE", f"/devices/{_NAME}")[0] == 409
        assert there.ask("POST", f"/devices/{_NAME}/unmount", {})[0] == 409  # the container has it
        assert there.ask("POST", f"/devices/{_NAME}/unmount", {"allHolders": True})[0] == 200
        assert there.run("ls /mnt/volume") == (0, "")
        assert there.ask("DELETE", f"/devices/{_NAME}?wait&timeout=60s")[0] == 204
        _assert_nothing_left(service, there, pool)


@pytest.mark.variant
def test_a_forced_removal_gives_the_number_of_the_disk_to_no_other_while_a_container_has_it_mounted(service, pool):
    with _Container() as there:
        disk = Disk(_deliver_volume(there)["status"]["id"])
        number = os.stat(disk.path).st_rdev
        service.ask("DELETE", f"/devices/{_NAME}?force=true", 202)
        service.wait_for(_NAME, lambda device: device["status"]["worker"] is None, "without a worker")
        other = Disk(service.create(null_spec("other"))["status"]["id"])
        assert os.stat(other.path).st_rdev != number
        assert there.run("cat /proc/self/mountinfo")[1].count(f"{disk.path} ") == 1
        unmounted = there.ask("POST", f"/devices/{_NAME}/unmount", {"allHolders": True})
        assert unmounted[0] in (200, 404), unmounted  # 404: the removal has ended before the answer
        service.delete("other")
        wait_until(lambda: service.names() == [], "the end of the removal")
        _assert_nothing_left(service, there, pool)
