# SPDX-License-Identifier: MIT
"""The first boot: the administrator makes a disk and puts it into fstab. The machine is shut down while it is mounted."""

import json
import os
import pathlib
import shutil

import story
from harness.shell import output, run
from harness.wait import wait_until


def test_the_installation_has_enabled_the_service(api):
    assert api.names() == []
    for unit in ("ublkd.service", "ublkd.socket"):
        assert (output("systemctl", "is-enabled", unit), story.state(unit)) == ("enabled", "active")


def test_a_disk_is_put_into_fstab(api):
    with open(story.IMAGE, "wb") as file:
        file.truncate(64 << 20)
    run("ublkctl", "create", "data", "target.type=loop", f"target.path={story.IMAGE}")
    run("mkfs.ext4", "-q", story.DISK)
    with open("/etc/fstab", "a", encoding="ascii") as fstab:
        fstab.write(story.LINE)
    story.POINT.mkdir()
    run("systemctl", "daemon-reload")
    run("mount", story.POINT)
    worker = json.loads(output("ublkctl", "get", "data"))["status"]["worker"]["pid"]
    os.kill(worker, 9)
    story.WRITTEN.write_text("before the reboot", encoding="ascii")  # and never flushed
    api.wait_other_worker("data", worker)
    wait_until(lambda: story.state(story.UNIT) == "active", "the unit of the disk")
    shutil.copy("/etc/fstab", pathlib.Path(os.environ["UBLKD_OUT"], "fstab"))  # this /etc goes with the guest
