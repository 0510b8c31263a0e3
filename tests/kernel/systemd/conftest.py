# SPDX-License-Identifier: MIT
"""The tests under systemd: tests/kernel/run boots a guest of their own, with systemd as PID 1."""

import json
import pathlib
import shutil

import pytest

from harness import programs, units
from harness.api import Api, loop_spec
from harness.shell import run
from harness.wait import wait_until


@pytest.fixture(scope="session", autouse=True)
def guest():
    """Only in a throw-away machine. systemd has given it the name of its host, so its root identifies it."""
    command_line = pathlib.Path("/proc/cmdline").read_text(encoding="ascii")
    assert "rootfstype=virtiofs" in command_line, "run these with tests/kernel/run: it makes a VM for them"
    run("modprobe", "ublk_drv")


_RULE = pathlib.Path("/run/udev/rules.d/60-ublkd.rules")


@pytest.fixture
def rule():
    """udev as an installation has it: it starts the units."""
    _RULE.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(programs.source("units/60-ublkd.rules"), _RULE)
    run("udevadm", "control", "--reload")
    yield
    _RULE.unlink()
    run("udevadm", "control", "--reload")


@pytest.fixture(scope="session", name="installed")
def installed_units(guest):  # pylint: disable=redefined-outer-name,unused-argument
    """The units of the build: systemd reads all of a machine's units once, and that takes seconds under emulation."""
    units.install()


@pytest.fixture
def service(request, installed):  # pylint: disable=redefined-outer-name,unused-argument
    """The API of a ublkd that systemd runs. It serves one test after the other; one that has failed leaves it to none."""
    run("systemctl", "start", "ublkd.service")
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    failed = request.session.testsfailed
    yield api
    for name in api.names():  # a test that failed has left them
        api.delete(name, force=True)
    if request.session.testsfailed > failed:
        run("systemctl", "stop", "ublkd.service", "ublkd.socket")


_POLICY = pathlib.Path("/etc/ublkd/policy.d/50-test.json")


@pytest.fixture
def rules(service):  # pylint: disable=redefined-outer-name
    """Put these rules into force, and the pools that they name."""
    def apply(*given, pools=None):
        _POLICY.parent.mkdir(parents=True, exist_ok=True)
        _POLICY.write_text(json.dumps({"rules": given, **({"pools": pools} if pools else {})}), encoding="utf-8")
        _POLICY.chmod(0o644)
        run("systemctl", "reload", "ublkd.service")
        problems = [problem["reason"] for problem in service.ask("GET", "/host", 200)["problems"] if problem["reason"].startswith("Policy")]
        assert problems == []
    yield apply
    _POLICY.unlink(missing_ok=True)
    run("systemctl", "reload", "ublkd.service")


@pytest.fixture
def mounted(service, file_of, directory):
    """A disk with a file system, and where it is to be mounted: (api, path, mount point)."""
    path, point = file_of(), directory / "mnt"
    point.mkdir()
    api = service
    api.create(loop_spec("data", path))
    run("mkfs.ext4", "-q", "-F", "/dev/ublk/by-name/data")
    yield api, path, point
    run("umount", point, check=False)
