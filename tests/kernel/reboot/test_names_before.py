# SPDX-License-Identifier: MIT
"""The first boot: devices on block devices, by names that stay and by one that does not."""

import subprocess

import names
import world
from harness import programs
from harness.api import loop_spec
from harness.daemon import Daemon
from harness.disk import Disk, block


def _attach(daemon, path, name):
    """As an administrator does it. What it warns of."""
    command = [programs.build() / "ublkctl", "--socket", daemon.runtime / "ublkd.sock", "attach", path, "--name", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stderr


def test_disks_are_attached_by_their_names(directory):
    top = names.mount()
    names.write(top)
    disks = names.appear(top, names.STORES)
    daemon = Daemon(directory, state=top / "state").start()
    assert _attach(daemon, disks["a"].mapper, "a") == ""
    assert _attach(daemon, disks["b"].by_id, "b") == ""
    assert disks["c"].by_id in _attach(daemon, disks["c"].node, "c")
    for letter in ("a", "b", "c"):
        assert Disk(daemon.api.get(letter)["status"]["id"]).read(0, 4096) == block(letter)
    device = daemon.api.create(loop_spec("serial", world.SECOND_DISK))
    assert device["status"]["backing"]["basis"] == "serial"
    Disk(device["status"]["id"]).write(0, block("s"))
    world.save(top, {"c": disks["c"].node})
