# SPDX-License-Identifier: MIT
"""A boot straight into rescue mode: nothing but this target has ublkd started, and the lines of fstab name no unit."""

import os

import machine
import pytest
from harness import units
from harness.wait import wait_until


def test_the_boot_has_ended_in_rescue_mode():
    assert units.state("rescue.service") in ("activating", "active"), "these tests are its command"
    assert units.state("local-fs.target") == "active"
    wait_until(lambda: units.state("ublkd.service") == "active", "the start of ublkd")
    assert units.state("emergency.service") == units.state("multi-user.target") == "inactive"


@pytest.mark.parametrize("point", machine.MOUNTED, ids=lambda point: point.name)
def test_a_file_system_of_fstab_is_mounted(point):
    if point == machine.WAITING:
        machine.wait_mounted(point)
    assert os.path.ismount(point) and (point / "written").exists()


def test_the_swap_is_in_use():
    assert units.state("swap.target") == "active" and len(machine.swaps()) == 1


def test_what_only_other_targets_want_is_not_mounted():
    assert not os.path.ismount(machine.SPARE) and not os.path.ismount(machine.REMOTE)
