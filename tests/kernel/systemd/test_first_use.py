# SPDX-License-Identifier: MIT
"""The first use of a disk by systemd: the moment at which its device unit is active.

The driver adds the disk when the worker has fetched on every queue (ublk_ctrl_start_dev() in drivers/block/ublk_drv.c), so
it answers from then on, and udev has nothing to hide (SYSTEMD_READY=0) until ublkd has noticed. ublkd-mortal is stopped
right before the command that adds the disk, and again before it has noticed that the disk is in service."""

import os
import pathlib
import signal

import pytest

from harness import programs, ublk, units
from harness.api import Api, loop_spec
from harness.disk import block
from harness.halt import wait_halted
from harness.shell import output, run
from harness.wait import wait_until

_DROP_IN = units.UNITS / "ublkd.service.d" / "mortal.conf"
_STOP_BEFORE = pathlib.Path("/run/ublkd-tests.stop-before")
_LINK = "/dev/ublk/by-name/data"
_READER = "ublkd-tests-reader.service"


@pytest.fixture(name="stopping")
def ublkd_that_stops(installed, rule):  # pylint: disable=unused-argument
    """The API of a service that is stopped before the operation that a test names."""
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    _DROP_IN.parent.mkdir(exist_ok=True)
    _DROP_IN.write_text("\n".join([
        "[Service]", f"Environment=UBLKD_DIE_FILE={_STOP_BEFORE}", "ExecStart=",
        f"ExecStart={programs.ublkd_mortal()} --worker {programs.worker()}", ""]), encoding="utf-8")
    run("systemctl", "daemon-reload")
    run("systemctl", "start", "ublkd.service")
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    pid = units.main_pid()
    yield api, pid
    _STOP_BEFORE.unlink(missing_ok=True)
    if units.main_pid() == pid:
        os.kill(pid, signal.SIGCONT)
    for name in api.names():  # a test that failed has left them
        api.delete(name, force=True)
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    _DROP_IN.unlink()
    run("systemctl", "daemon-reload")


def _go_on(pid, until):
    """Let ublkd go on until it is stopped before an operation."""
    _STOP_BEFORE.write_text(until, encoding="ascii")
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not _STOP_BEFORE.exists(), f"ublkd before {until}")
    assert wait_halted(pid)


@pytest.fixture(name="reader")
def unit_that_reads(directory):
    """A unit that needs the device unit, and reads the disk: where it leaves what it has read."""
    read, unit = directory / "read", pathlib.Path("/run/systemd/system", _READER)
    device = output("systemd-escape", "--path", "--suffix=device", _LINK).strip()
    unit.write_text("\n".join([
        "[Unit]", f"Requires={device}", f"After={device}", "[Service]", "Type=oneshot", "RemainAfterExit=yes",
        f"ExecStart=dd if={_LINK} of={read} bs=4096 count=1 iflag=direct", ""]), encoding="utf-8")
    run("systemctl", "daemon-reload")
    yield read
    run("systemctl", "stop", _READER)
    unit.unlink()
    run("systemctl", "daemon-reload")


def test_a_disk_answers_once_its_device_unit_is_active(stopping, reader, file_of):
    (api, pid), path = stopping, file_of()
    path.write_bytes(block("a") * 4096)
    _STOP_BEFORE.write_text("START_DEV", encoding="ascii")
    api.create(loop_spec("data", path), wait="")
    wait_until(lambda: not _STOP_BEFORE.exists(), "ublkd before START_DEV")
    assert wait_halted(pid)
    (number,) = ublk.numbers()
    node = pathlib.Path(f"/dev/ublkb{number}")
    assert not node.exists() and not pathlib.Path("/sys/class/block", node.name).exists(), "systemd has no disk to wait for"
    run("systemctl", "start", "--no-block", _READER)
    _go_on(pid, "LIVE")
    wait_until(lambda: units.state(_READER) in ("active", "failed"), "the end of the read")
    assert units.state(_READER) == "active" and reader.read_bytes() == block("a")
    assert wait_halted(pid) and not pathlib.Path("/run/ublkd/live/data").exists(), "ublkd has not noticed yet"
    assert "SYSTEMD_READY" not in output("udevadm", "info", "--query=property", node)
    os.kill(pid, signal.SIGCONT)
    api.wait_phase("data", "Live")
    api.delete("data")
