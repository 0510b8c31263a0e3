# SPDX-License-Identifier: MIT
"""In the second boot, after test_second.py: rescue.target and back, while the disks of fstab are mounted."""

import os
from dataclasses import dataclass

import machine
import pytest
from harness import units
from harness.api import Api, condition_of
from harness.shell import output, run
from harness.wait import wait_until

_UNITS = ["ublkd.service", "ublkd.socket", "ublkd.target", "ublkd-workers.service"]
_SPARE = machine.SPARE.name
_UNIT = "ublk-disk@{}.service"


@dataclass
class _Before:
    """What was there before the isolation, and the log since then."""

    manager: int
    workers: dict
    log: units.Log


def _api():
    return Api("/run/ublkd/ublkd.sock")


def _workers():
    """{name: pid} of all disks that are served."""
    devices = {name: _api().get(name) for name in _api().names()}
    return {name: device["status"]["worker"]["pid"] for name, device in devices.items() if device["status"]["phase"] == "Live"}


def _isolate(target):
    """The disk that is missing fails in each target: no job is left when its mount has failed."""
    run("systemctl", "isolate", target)
    wait_until(lambda: not output("systemctl", "list-jobs", "--plain", "--no-legend"), lambda: output("systemctl", "list-jobs"))
    assert units.state(target) == "active"


def _write(path, text):
    """Write a file, and flush it."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


@pytest.fixture(name="before", scope="module")
def fixture_before():
    """The system is in rescue mode."""
    wait_until(lambda: os.path.ismount(machine.SPARE), "the mount that the target of the boot wants")
    machine.wait_mounted(machine.WAITING)
    for point in (*machine.MOUNTED, machine.SPARE):
        _write(point / "kept", f"kept on {point.name}")
    level = output("systemctl", "log-level")
    run("systemctl", "log-level", "info")  # what it stops, and what a stop leaves
    before = _Before(units.main_pid(), _workers(), units.Log())
    assert _SPARE in before.workers
    _isolate("rescue.target")
    yield before
    run("systemctl", "log-level", level)


def test_the_manager_and_the_workers_stay(before):
    assert {unit: units.state(unit) for unit in _UNITS} == dict.fromkeys(_UNITS, "active")
    assert units.main_pid() == before.manager
    assert _workers() == {name: pid for name, pid in before.workers.items() if name != _SPARE}
    assert [line for line in before.log.lines() if "remains running" in line or "left-over" in line] == []


@pytest.mark.parametrize("point", machine.MOUNTED, ids=lambda point: point.name)
def test_a_file_system_of_the_base_system_stays(before, point):  # pylint: disable=unused-argument
    assert os.path.ismount(point)
    _write(point / "rescued", f"written on {point.name}")


def test_the_disk_of_a_tenant_stays(before):
    """It has no unit that systemd could stop."""
    name = machine.TENANT_SPEC["name"]
    assert _workers()[name] == before.workers[name]


def test_the_swap_stays(before):  # pylint: disable=unused-argument
    assert len(machine.swaps()) == 1 and units.state(machine.SWAP_UNIT) == "active"


def test_the_units_of_disks_stay(before):
    names = [_UNIT.format(name) for name in before.workers if name not in (_SPARE, machine.TENANT_SPEC["name"])]
    assert {name: units.state(name) for name in names} == dict.fromkeys(names, "active")


def test_a_disk_that_is_not_needed_goes_after_its_unmount(before):
    log = before.log.text()
    assert 0 < log.find("Unmounted srv-spare.mount") < log.find(f"Stopping {_UNIT.format(_SPARE)}"), log
    assert not os.path.ismount(machine.SPARE)
    assert units.state(_UNIT.format(_SPARE)) == "inactive"
    assert condition_of(_api().get(_SPARE))["reason"] == "Stopped"
    assert not os.path.exists(f"/dev/ublk/by-name/{_SPARE}")
    assert before.workers[_SPARE] not in _workers().values()


def test_what_needs_the_network_is_unmounted(before):
    """Its line in fstab does not name its disk, which stays."""
    assert not os.path.ismount(machine.REMOTE)
    assert _workers()[machine.REMOTE.name] == before.workers[machine.REMOTE.name]


def test_all_is_back_after_the_rescue_mode(before):
    """The target that wants the mount starts its disk again."""
    _isolate("multi-user.target")
    for point in (machine.SPARE, machine.REMOTE):
        wait_until(lambda point=point: os.path.ismount(point), "the mount that this target wants")
    assert units.state("rescue.target") == "inactive" and units.state(_UNIT.format(_SPARE)) == "active"
    for point in (*machine.MOUNTED, machine.SPARE):
        assert (point / "kept").read_text(encoding="utf-8") == f"kept on {point.name}"
    for point in machine.MOUNTED:
        assert (point / "rescued").read_text(encoding="utf-8") == f"written on {point.name}"
    assert units.main_pid() == before.manager
    after = _workers()
    assert after.keys() == before.workers.keys() and after.pop(_SPARE) != before.workers[_SPARE]
    assert after == {name: pid for name, pid in before.workers.items() if name != _SPARE}


def test_no_file_system_was_damaged(before):  # pylint: disable=unused-argument
    log = output("dmesg")
    assert "recovery complete" not in log and "I/O error" not in log
