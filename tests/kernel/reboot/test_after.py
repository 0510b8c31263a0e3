# SPDX-License-Identifier: MIT
"""The second boot: an empty kernel, and every enabled device back under its number."""

import world
from harness import ublk
from harness.disk import Disk, block
from harness.wait import wait_until


def test_devices_are_back_after_the_reboot(unmounted, make_daemon):  # pylint: disable=unused-argument
    top = world.mount("devices")
    facts = world.load(top)
    assert ublk.numbers() == []
    daemon = make_daemon(state=top / "state").start()
    api = daemon.api
    temporary = world.temporary()["name"]
    wait_until(lambda: temporary not in api.names(), "the temporary device removed")
    assert sorted(api.names()) == sorted(facts)
    for name in ("first", "second", "fixed", "manual"):
        status = api.wait_phase(name, "Live")["status"]
        assert status["id"] == facts[name]["id"], f"{name} came back under another number"
        Disk(status["id"]).read(0, 4096)
    for name, fact in facts.items():
        device = api.get(name)
        assert (device["uid"], device["generation"]) == (fact["uid"], fact["generation"])
        assert device["status"]["id"] == fact["id"]
    assert api.phase("disabled") == "Disabled"
    assert api.wait_phase("missing", "Backoff")["status"]["device"] is None
    assert Disk(facts["second"]["id"]).read(4096, 4096) == block("r")
    with open(top / "missing.img", "wb") as file:
        file.truncate(32 << 20)
    # That is another file, and the data of the disk is not in it.
    found = api.wait_phase("missing", "Failed")["status"]["backing"]["found"]["identity"]
    api.ask("POST", f"/devices/missing/recover?accept-backing={found}&wait=ready&timeout=60s", 200)
    assert api.get("missing")["status"]["id"] == facts["missing"]["id"]
    for name in facts:
        api.delete(name)
