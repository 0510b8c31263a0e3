# SPDX-License-Identifier: MIT
"""The first boot: disks with file systems. The machine is shut down while all of them are mounted."""

import machine
from harness import units
from harness.api import Api, loop_spec
from harness.shell import run
from harness.wait import wait_until


def test_disks_are_made_and_stay_mounted():
    api = Api("/run/ublkd/ublkd.sock")
    wait_until(api.is_ready, "ublkd ready")
    for point in (machine.REQUIRED, machine.PLAIN, machine.MISSING):
        path = machine.IMAGES / f"{point.name}.img"
        with open(path, "wb") as file:
            file.truncate(32 << 20)
        api.create(loop_spec(point.name, path))
        run("mkfs.ext4", "-q", "-F", f"/dev/ublk/by-name/{point.name}")
        point.mkdir(exist_ok=True)
        run("mount", f"/dev/ublk/by-name/{point.name}", point)
        (point / "written").write_text(f"on {point.name}", encoding="utf-8")  # and never flushed
        wait_until(lambda unit=f"ublk-disk@{point.name}.service": units.state(unit) == "active", "the unit of the disk")
    run("umount", machine.MISSING)
    api.ask("POST", "/devices/missing/stop?wait=ready", 200)
    (machine.IMAGES / "missing.img").rename(machine.IMAGES / "missing.away")
