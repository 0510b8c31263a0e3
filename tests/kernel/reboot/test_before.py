# SPDX-License-Identifier: MIT
"""The first boot: devices are created, and ublkd dies before the machine goes down."""

import world
from harness.daemon import Daemon
from harness.disk import Disk, block


def test_devices_are_made_before_the_reboot(directory):
    top = world.mount("devices")
    daemon = Daemon(directory, state=top / "state").start()
    api = daemon.api
    for name in ("second.img", "missing.img"):
        with open(top / name, "wb") as file:
            file.truncate(32 << 20)
    for spec in world.specs(top):
        api.create(spec)
    api.delete("removed")
    api.put({**api.get("disabled")["spec"], "enabled": False})
    Disk(api.get("second")["status"]["id"]).write(4096, block("r"))
    facts = {}
    for name in api.names():
        device = api.get(name)
        facts[name] = {"uid": device["uid"], "id": device["status"]["id"], "generation": device["generation"]}
    api.create(world.temporary())
    (top / "missing.img").unlink()
    world.save(top, facts)
    daemon.kill()  # its directory goes with this test
