# SPDX-License-Identifier: MIT
"""A disk in the driver's unprivileged mode, made from the sandbox of the unit."""

import os
import signal

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.tenants import write_as

_ALICE, _BOB = 1234, 1235
_SIZE = 64 << 20


@pytest.mark.skipif(not ublk.is_new(), reason="this driver is not asked for such disks")
def test_a_disk_in_the_unprivileged_mode(service, file_of):
    """It is made with the rights of its owner, grows, is served by another worker and removed."""
    path = file_of(size=2 * _SIZE)
    spec = loop_spec("data", path, size=_SIZE, isolation="kernel", recovery={"onCrash": "none"}, owner={"uid": _ALICE, "gid": _ALICE})
    device = service.create(spec)
    assert "UNPRIVILEGED_DEV" in device["status"]["kernelFeatures"] and condition_of(device)["reason"] == "Live"
    disk = Disk(device["status"]["id"])
    disk.write(0, block("a"))
    assert write_as(_ALICE, disk.path, "b") is None and write_as(_BOB, disk.path) is not None
    grown = service.put({**spec, "size": 2 * _SIZE})
    assert grown["status"]["size"] == disk.size() == 2 * _SIZE and grown["status"]["worker"]["pid"] == device["status"]["worker"]["pid"]
    os.kill(grown["status"]["worker"]["pid"], signal.SIGKILL)
    service.wait_other_worker("data", grown["status"]["worker"]["pid"])
    again = Disk(service.wait_phase("data", "Live")["status"]["id"])
    assert again.size() == 2 * _SIZE and again.read(0, 4096) == block("b")
    service.delete("data")
