# SPDX-License-Identifier: MIT
"""ublkd as a service: what systemd keeps for it while it is away."""

import os
import pathlib
import signal

import pytest

from harness import programs
from harness.api import Api, loop_spec
from harness.disk import Disk, block
from harness.kernel_disks import loop_disk
from harness.shell import output, run
from harness.wait import wait_until

_UNITS = pathlib.Path("/etc/systemd/system")
_SOURCE = pathlib.Path(__file__).resolve().parents[3] / "units"


def _install():
    """The units as they are shipped, with the programs of the build."""
    service = (_SOURCE / "ublkd.service.in").read_text(encoding="utf-8")
    lines = [line if not line.startswith("ExecStart=") else f"ExecStart={programs.ublkd()} --worker {programs.worker()}"
             for line in service.splitlines()]
    (_UNITS / "ublkd.service").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (_UNITS / "ublkd.socket").write_text((_SOURCE / "ublkd.socket").read_text(encoding="utf-8"), encoding="utf-8")
    run("systemctl", "daemon-reload")


@pytest.fixture
def service():
    """The API of a ublkd that systemd runs."""
    _install()
    run("systemctl", "start", "ublkd.service")
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    yield api
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")


def _main_pid():
    return int(output("systemctl", "show", "-p", "MainPID", "--value", "ublkd.service"))


def _kept():
    return int(output("systemctl", "show", "-p", "NFileDescriptorStore", "--value", "ublkd.service"))


def test_systemd_keeps_the_store_of_a_disk(service, ext4, file_of):
    """ublkd and the worker die together, and the path leads to another file: the disk keeps the one that it had."""
    api, path = service, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    assert _kept() == 1
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(block("z") * (64 << 8))
    fresh.rename(path)
    old, worker = _main_pid(), api.get("data")["status"]["worker"]["pid"]
    os.kill(old, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: _main_pid() not in (0, old) and api.is_ready(), "the next ublkd")
    api.wait_other_worker("data", worker)
    assert disk.read(0, 4096) == block("a")
    assert api.get("data")["status"]["backing"]["kept"]
    api.delete("data")
    wait_until(lambda: _kept() == 0, "a store that systemd has let go")


def test_systemd_keeps_the_claim_that_a_disk_inherited(service, directory):
    """Of two disks on parts of one block device the one with the claim is removed, then ublkd is replaced."""
    api, image = service, directory / "one.img"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    with loop_disk(image) as path:
        api.create(loop_spec("low", path, size="8MiB"))
        api.create(loop_spec("high", path, {"offset": "32MiB"}, size="8MiB"))
        api.delete("low")
        old = _main_pid()
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: _main_pid() not in (0, old) and api.is_ready(), "the next ublkd")
        with pytest.raises(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_EXCL))
        api.delete("high")
        wait_until(lambda: _kept() == 0, "a claim that systemd has let go")
        os.close(os.open(path, os.O_RDWR | os.O_EXCL))


def test_a_stop_and_a_start_keep_the_store(service, ext4, file_of):
    """systemd drops what it keeps when a service is stopped: the worker that lives passes the store again."""
    api, path = service, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    path.unlink()
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    run("systemctl", "start", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    worker = api.get("data")["status"]["worker"]["pid"]
    os.kill(worker, signal.SIGKILL)
    api.wait_other_worker("data", worker)
    assert disk.read(0, 4096) == block("a")
    api.delete("data")
