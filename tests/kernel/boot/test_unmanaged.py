# SPDX-License-Identifier: MIT
"""A boot in which ublkd does not start, for its configuration is wrong, and the driver cannot be loaded: it ends in
emergency mode, where these tests run."""

import os

import machine
from harness import console, units
from harness.api import Api
from harness.shell import output, run
from harness.wait import wait_until


def _one_line(program, name):
    wait_until(lambda: console.lines_of(program, f"{name}: "), lambda: console.text()[-20000:])
    (line,) = console.lines_of(program, f"{name}: ")
    return line


def test_the_boot_has_ended_in_emergency_mode():
    assert units.state("local-fs.target") == "inactive" and units.state("ublkd.service") == "failed"
    assert output("systemctl", "show", "-p", "ExecMainStatus", "--value", "ublkd.service").strip() == "2"


def test_the_reason_of_a_plain_line_is_that_no_manager_runs():
    line = _one_line("ublkd-reason", machine.PLAIN.name)
    assert "no manager runs: ublkd.service is failed" in line and "journalctl -u ublkd.service" in line


def test_the_unit_of_a_disk_has_that_reason_as_well():
    """At once, and it does not have the manager tried again: systemd has just done that."""
    unit = f"ublk-disk@{machine.REQUIRED.name}.service"
    wait_until(lambda: units.state(unit) == "failed", "the unit that has given up")
    line = _one_line("ublkd-start", machine.REQUIRED.name)
    assert "no manager runs: ublkd.service is failed" in line and "journalctl -u ublkd.service" in line


def test_the_driver_is_missed():
    """What is in modules-load.d has failed."""
    assert units.state("systemd-modules-load.service") == "failed"


def test_a_host_without_the_driver_is_the_next_reason():
    machine.WRONG.unlink()
    assert units.state("ublkd.socket") == "active"
    run("systemctl", "start", "ublkd.service")
    wait_until(Api("/run/ublkd/ublkd.sock").is_ready, "ublkd ready")
    name = machine.PLAIN.name
    run("systemctl", "start", "--no-block", f"srv-{name}.mount")
    wait_until(lambda: len(console.lines_of("ublkd-reason", f"{name}: ")) == 2, lambda: console.lines_of("ublkd-reason"))
    assert "modprobe ublk_drv" in console.lines_of("ublkd-reason", f"{name}: ")[1]


def test_the_administrator_loads_the_driver_and_goes_on():
    machine.NO_DRIVER.unlink()
    run("modprobe", "ublk_drv")
    run("systemctl", "start", "local-fs.target", timeout=480)
    machine.wait_mounted(machine.WAITING)
    for point in machine.MOUNTED:
        assert os.path.ismount(point) and (point / "written").exists()
