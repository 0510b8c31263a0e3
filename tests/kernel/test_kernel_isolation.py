# SPDX-License-Identifier: MIT
"""Disks in the driver's unprivileged mode ("isolation": "kernel"): who opens them, and one life of such a disk."""

import os
import pathlib
import stat

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.halt import halt
from harness.tenants import write_as
from harness.wait import wait_until

pytestmark = [pytest.mark.long, pytest.mark.both]

_ALICE, _BOB, _GROUP = 2001, 2002, 2999
_SIZE = 64 << 20


def _spec(path, uid, gid):
    kernel = {"isolation": "kernel", "recovery": {"onCrash": "none"}, "owner": {"uid": uid, "gid": gid}}
    return loop_spec("data", path, size=_SIZE, **kernel)


def _is_unprivileged(device):
    return "UNPRIVILEGED_DEV" in device["status"]["kernelFeatures"]


@pytest.fixture(name="open_to_all")
def node_open_to_all():
    """Make a node of the disk that all users may open, as far as the node goes."""
    path = pathlib.Path("/dev/open-to-all")

    def make(device):
        os.mknod(path, stat.S_IFBLK, os.stat(device["status"]["device"]).st_rdev)
        path.chmod(0o666)
        return path

    yield make
    path.unlink(missing_ok=True)


if ublk.is_new():

    def test_only_user_and_group_of_the_owner_open_the_disk(daemon, file_of, open_to_all):
        """Even by a node that lets all users in: the driver asks."""
        device = daemon.api.create(_spec(file_of(size=_SIZE), _ALICE, _ALICE))
        assert _is_unprivileged(device) and device["status"]["dataPath"] == "copy"
        node = open_to_all(device)
        assert write_as(_ALICE, node) is None
        assert write_as(_BOB, node) == "EPERM"
        assert write_as(_ALICE, node, gid=_GROUP) == "EPERM"
        assert Disk(device["status"]["id"]).read(0, 4096) == block("t")  # as root
        daemon.api.delete("data")


    def test_one_life_of_a_disk(daemon, file_of):
        """Of an administrator, for a user: it is found again by the next ublkd, made again after a crash, stopped and removed."""
        device = daemon.api.create(_spec(file_of(size=_SIZE), _ALICE, _ALICE))
        disk = Disk(device["status"]["id"])
        assert _is_unprivileged(device)
        disk.write(0, block("a"))
        assert write_as(_ALICE, disk.path, "b") is None and write_as(_BOB, disk.path) is not None
        daemon.kill()
        daemon.start()
        assert daemon.api.wait_phase("data", "Live")["status"]["worker"]["pid"] == device["status"]["worker"]["pid"]
        daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
        again = daemon.api.wait_phase("data", "Live")
        assert _is_unprivileged(again) and again["status"]["id"] == disk.number and condition_of(again)["reason"] == "Live"
        assert Disk(disk.number).read(0, 4096) == block("b")
        daemon.api.ask("POST", "/devices/data/stop?wait&timeout=60s", 200)
        daemon.api.ask("POST", "/devices/data/start?wait=ready&timeout=60s", 200)
        assert Disk(disk.number).read(0, 4096) == block("b")
        daemon.api.delete("data")


    def test_a_disk_for_root_has_no_capability(daemon, file_of):
        """The driver would make another disk for a process with CAP_SYS_ADMIN."""
        device = daemon.api.create(_spec(file_of(size=_SIZE), 0, 0))
        assert _is_unprivileged(device)
        assert write_as(0, device["status"]["device"]) is None
        assert write_as(_ALICE, device["status"]["device"]) is not None
        daemon.api.delete("data")


    @pytest.mark.variant
    def test_an_opener_keeps_the_number(daemon, file_of):
        """This driver waits for it when it deletes the disk, and shows nothing of the disk meanwhile."""
        device = daemon.api.create(_spec(file_of(size=_SIZE), _ALICE, _ALICE))
        opener = os.open(device["status"]["device"], os.O_RDONLY)
        try:
            daemon.api.ask("DELETE", "/devices/data?force=true", 202)
            daemon.api.wait_for("data", lambda seen: condition_of(seen)["reason"] == "StillHeld", "with its opener named", timeout=90)
        finally:
            os.close(opener)
        wait_until(lambda: not daemon.api.names() and not ublk.numbers(), "the device gone")
        assert _is_unprivileged(daemon.api.create(_spec(file_of(name="other.img", size=_SIZE), _ALICE, _ALICE)))
        daemon.api.delete("data")


    def test_requests_of_a_worker_that_died_end(daemon, file_of):
        """Also with all tags of the queue in flight: nothing waits for ever, and the disk is made again."""
        spec = {**_spec(file_of(size=_SIZE), _ALICE, _ALICE), "queues": 1, "queueDepth": 1}
        disk = Disk(daemon.api.create(spec)["status"]["id"])
        pid = daemon.worker_pid("data")
        assert halt(pid)
        waiting = [disk.write_later(number << 12, block("w")) for number in range(4)]
        disk.wait_inflight()
        daemon.kill_worker("data")
        assert {write.result() for write in waiting} == {"EIO"}
        daemon.api.wait_other_worker("data", pid)
        daemon.api.delete("data")


if not ublk.is_new():

    def test_a_driver_that_never_ends_the_requests_of_a_dead_worker_is_not_asked(daemon, file_of):
        daemon.api.create(_spec(file_of(size=_SIZE), _ALICE, _ALICE), wait=None)
        daemon.api.wait_for("data", lambda seen: condition_of(seen)["reason"] == "NotSupported", "refused")
        assert ublk.numbers() == []
        daemon.api.delete("data")
