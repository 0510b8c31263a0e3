# SPDX-License-Identifier: MIT
"""A target is isolated that needs nothing of ublkd: disks in use, the manager and the workers stay all the same."""

import pytest

from harness import units
from harness.shell import output, run
from harness.wait import wait_until

_TARGET = "alone.target"
_UNITS = ["ublkd.service", "ublkd.socket", "ublkd-workers.service", "ublk-disk@data.service"]


@pytest.fixture(autouse=True)
def _rule(rule):
    """udev starts the unit of the disk."""


@pytest.fixture(name="log")
def fixture_log():
    """The log of systemd with its lines about what a stop leaves."""
    before = output("systemctl", "log-level")
    run("systemctl", "log-level", "info")
    yield units.Log()
    run("systemctl", "log-level", before)


@pytest.fixture(name="target")
def fixture_target():
    """It needs what rescue.target does, but for the shell."""
    path = units.UNITS / _TARGET
    path.write_text("[Unit]\nRequires=sysinit.target\nAfter=sysinit.target\nAllowIsolate=yes\n", encoding="utf-8")
    run("systemctl", "daemon-reload")
    yield _TARGET
    run("systemctl", "start", "vm.target", "basic.target", "dbus.socket")
    path.unlink()
    run("systemctl", "daemon-reload")


@pytest.mark.variant  # tests/lint/units_test.py reads each unit
def test_an_isolation_stops_no_disk(mounted, target, log):
    api, _, point = mounted
    run("mount", "/dev/ublk/by-name/data", point)
    wait_until(lambda: units.state("ublk-disk@data.service") == "active", "the unit of the disk")
    manager, worker = units.main_pid(), api.get("data")["status"]["worker"]["pid"]

    run("systemctl", "isolate", target)
    wait_until(lambda: not output("systemctl", "list-jobs", "--plain", "--no-legend"), lambda: output("systemctl", "list-jobs"))
    assert units.state(target) == "active" and units.state("basic.target") == "inactive"
    assert {unit: units.state(unit) for unit in _UNITS} == dict.fromkeys(_UNITS, "active")
    assert units.main_pid() == manager and api.get("data")["status"]["worker"]["pid"] == worker
    assert [line for line in log.lines() if "remains running" in line or "left-over" in line] == []
    (point / "file").write_text("still here", encoding="utf-8")
    run("umount", point)
    api.delete("data")
