# SPDX-License-Identifier: MIT
"""The second boot: the disks have come in another order. Each device has the right one, or none."""

import names
import world
from harness.api import condition_of
from harness.disk import Disk, block


def test_each_device_has_the_right_disk_or_none(unmounted, make_daemon):  # pylint: disable=unused-argument
    top = names.mount()
    disks = names.appear(top, names.SWAPPED)
    kernel_name = world.load(top)["c"]
    assert kernel_name == disks["d"].node, "the names have changed places"
    daemon = make_daemon(state=top / "state").start()
    api = daemon.api
    for letter in ("a", "b"):
        status = api.wait_phase(letter, "Live")["status"]
        assert Disk(status["id"]).read(0, 4096) == block(letter), f"{letter} is another disk"
    status = api.wait_phase("serial", "Live")["status"]
    assert status["backing"]["basis"] == "serial"
    assert Disk(status["id"]).read(0, 4096) == block("s")
    device = api.wait_phase("c", "Live", "Failed", "Backoff")
    assert device["status"]["device"] is None, "another disk is served in its place"
    assert (device["status"]["phase"], condition_of(device)["reason"]) == ("Failed", "BackingChanged")
    api.put({**device["spec"], "target": {"type": "loop", "path": disks["c"].by_id}})
    status = api.wait_phase("c", "Live")["status"]
    assert Disk(status["id"]).read(0, 4096) == block("c"), "the name that the warning gave is the right disk"
    for name in api.names():
        api.delete(name)
    for disk in disks.values():
        disk.close()
