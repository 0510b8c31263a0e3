"""The second boot: the disks have come in another order. Each device has the right one, or none."""

import names
import world
from harness.disk import Disk, block
from harness.shell import run


def test_each_device_has_the_right_disk_or_none(make_daemon):
    top = names.mount()
    disks = names.appear(top, names.SWAPPED)
    kernel_name = world.load(top)["c"]
    assert kernel_name == disks["d"].node, "the names have changed places"
    daemon = make_daemon(state=top / "state").start()
    api = daemon.api
    for letter in ("a", "b"):
        status = api.wait_phase(letter, "Live")["status"]
        assert Disk(status["id"]).read(0, 4096) == block(letter), f"{letter} is another disk"
    device = api.wait_phase("c", "Live", "Failed", "Backoff")
    if device["status"]["phase"] == "Live":
        assert Disk(device["status"]["id"]).read(0, 4096) == block("c"), "another disk is served in its place"
    for name in api.names():
        api.delete(name)
    daemon.stop()
    for disk in disks.values():
        disk.close()
    run("umount", top)
