# SPDX-License-Identifier: MIT
"""A guest with systemd on which the package was installed before it booted."""

import pathlib
import sys

import pytest

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "kernel")]

# pylint: disable=wrong-import-position
from harness.api import Api
from harness.wait import wait_until


@pytest.fixture(scope="session", autouse=True)
def guest():
    """Only in a throw-away machine: the package is removed from it."""
    command_line = pathlib.Path("/proc/cmdline").read_text(encoding="ascii")
    assert "rootfstype=virtiofs" in command_line, "run these with tests/package_boots/run: it makes a VM for them"


@pytest.fixture(name="api")
def fixture_api():
    """The API of the service, which nothing but the package has started."""
    found = Api("/run/ublkd/ublkd.sock")
    wait_until(found.is_ready, "ublkd ready", timeout=240)
    return found
