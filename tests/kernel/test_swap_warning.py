# SPDX-License-Identifier: MIT
"""Swap on a disk whose pages are copied: the status, an event and the host say that the machine can hang."""

import contextlib
import pathlib

import pytest

from harness.api import condition_of, loop_spec
from harness.disk import Disk
from harness.kernel_disks import dm_linear
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_REASON = "SwapNeedsMemory"
_SIZE = 16 << 20


@contextlib.contextmanager
def _swap(path):
    run("mkswap", path)
    run("swapon", "--priority", "0", path)
    try:
        yield
    finally:
        run("swapoff", path)


def _found(api, name):
    return condition_of(api.get(name), "SwapSafe")


def _wait_reported(api, name):
    condition = wait_until(lambda: _found(api, name), "a condition about swap")
    assert (condition["status"], condition["reason"]) == ("False", _REASON)


def _wait_over(api, name):
    wait_until(lambda: not _found(api, name), "the end of that condition")


def _host(api):
    return [problem["title"] for problem in api.ask("GET", "/host", 200)["problems"]]


def _events(daemon):
    return sum(event["count"] for event in daemon.events("data") if event["reason"] == _REASON)


@pytest.fixture(name="disk")
def copied_disk(daemon, file_of):
    """A disk whose pages are copied, with any kernel."""
    status = daemon.api.create(loop_spec("data", file_of(size=_SIZE), queues=1, dataPath="copy"))["status"]
    yield Disk(status["id"])
    daemon.api.delete("data")


def test_swap_is_reported_while_it_is_there(daemon, disk):
    """Also by the next ublkd, which reads the list when it starts."""
    api = daemon.api
    assert not _found(api, "data") and _host(api) == []
    with _swap(disk.path):
        _wait_reported(api, "data")
        assert _host(api) == [_REASON] and _events(daemon) == 1
        daemon.kill()
        daemon.start()
        _wait_reported(api, "data")
        assert _host(api) == [_REASON]
    _wait_over(api, "data")
    assert _host(api) == []


def test_swap_on_a_volume_of_the_disk(daemon, disk):
    """Device mapper, as of LVM and LUKS, is followed down to the disk."""
    with dm_linear("swap-volume", disk.path, 0, _SIZE) as volume, _swap(volume):
        _wait_reported(daemon.api, "data")
    _wait_over(daemon.api, "data")


@pytest.mark.variant
def test_a_swap_file_in_a_file_system_of_the_disk_is_not_seen(daemon, disk, directory, file_of):
    """The kernel lists it as a file. When swap of the disk itself is reported after it, the list has been read with it."""
    mount = directory / "mount"
    mount.mkdir()
    run("mkfs.ext4", "-q", disk.path)
    run("mount", disk.path, mount)
    try:
        file = mount / "swap"
        run("dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=4", "conv=fsync")
        file.chmod(0o600)
        other = daemon.api.create(loop_spec("other", file_of("other.img", _SIZE), queues=1, dataPath="copy"))
        with _swap(file), _swap(Disk(other["status"]["id"]).path):
            _wait_reported(daemon.api, "other")
            assert not _found(daemon.api, "data")
        daemon.api.delete("other")
    finally:
        run("umount", mount)


def test_swap_that_is_written_where_it_is(daemon, disk, ext4, file_of):
    """With zero copy there is nothing to report; the list has been read when the other disk is reported."""
    api = daemon.api
    status = api.create(loop_spec("direct", file_of("direct.img", _SIZE, ext4), {"directIo": "on"}))["status"]
    copied = status["dataPath"] != "zero-copy"
    assert copied == ("AUTO_BUF_REG" not in api.ask("GET", "/host", 200)["ublk"]["features"])
    with _swap(Disk(status["id"]).path), _swap(disk.path):
        _wait_reported(api, "data")
        assert bool(_found(api, "direct")) == copied
    api.delete("direct")
    assert pathlib.Path("/proc/swaps").read_text(encoding="ascii").count("\n") == 1
