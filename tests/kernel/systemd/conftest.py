# SPDX-License-Identifier: MIT
"""The tests under systemd: tests/kernel/run boots a guest of their own, with systemd as PID 1."""

import pathlib

import pytest

from harness.shell import run


@pytest.fixture(scope="session", autouse=True)
def guest():
    """Only in a throw-away machine. systemd has given it the name of its host, so its root identifies it."""
    command_line = pathlib.Path("/proc/cmdline").read_text(encoding="ascii")
    assert "rootfstype=virtiofs" in command_line, "run these with tests/kernel/run: it makes a VM for them"
    run("modprobe", "ublk_drv")
