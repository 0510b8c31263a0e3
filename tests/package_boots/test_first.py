# SPDX-License-Identifier: MIT
"""The first boot: the administrator makes a disk and puts it into fstab. The machine is shut down while it is mounted."""

import json
import os
import pathlib

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


def test_etc_is_kept_for_the_second_boot():
    """All that the installation, systemctl and the administrator have written. This guest has it in memory."""
    story.DROP_IN.parent.mkdir()
    story.DROP_IN.write_text(f"[Unit]\nDescription={story.DESCRIPTION}\n", encoding="ascii")
    run("systemctl", "daemon-reload")
    run("usermod", "--append", "--groups", "ublk", story.MEMBER)
    run("tar", "--create", "--numeric-owner", "-f", pathlib.Path(os.environ["UBLKD_OUT"], "etc.tar"), "-C", "/", "etc")
