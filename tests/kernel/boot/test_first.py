# SPDX-License-Identifier: MIT
"""The first boot: disks with file systems. The machine is shut down while all of them are mounted."""

import machine
import pytest
from harness import stacks, units
from harness.api import Api, loop_spec
from harness.shell import run
from harness.wait import wait_until


def _make(api, name, size):
    path = machine.IMAGES / f"{name}.img"
    with open(path, "wb") as file:
        file.truncate(size)
    api.create(loop_spec(name, path))
    return f"/dev/ublk/by-name/{name}"


@pytest.mark.parametrize("kind", stacks.ALL, ids=lambda kind: kind.name)
def test_a_stack_is_made_and_stays_mounted(kind):
    """Only the shutdown stops it."""
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    stack, point = kind(), machine.STACKS[kind.name]
    stack.build([_make(api, f"{kind.name}-{number}", stacks.SIZE) for number in range(kind.disks)])
    stack.make_file_system()
    point.mkdir(exist_ok=True)
    run("mount", stack.top, point)
    (point / "written").write_text(f"on {kind.name}", encoding="utf-8")  # and never flushed


def test_disks_are_made_and_stay_mounted():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    for point in (machine.REQUIRED, machine.PLAIN, machine.MISSING, machine.SPARE):
        path = _make(api, point.name, 32 << 20)
        run("mkfs.ext4", "-q", "-F", path)
        point.mkdir(exist_ok=True)
        run("mount", path, point)
        (point / "written").write_text(f"on {point.name}", encoding="utf-8")  # and never flushed
        wait_until(lambda unit=f"ublk-disk@{point.name}.service": units.state(unit) == "active", "the unit of the disk")
    run("umount", machine.MISSING)
    api.ask("POST", "/devices/missing/stop?wait=ready", 200)
    (machine.IMAGES / "missing.img").rename(machine.IMAGES / "missing.away")
