# SPDX-License-Identifier: MIT
"""The second boot: fstab has the disk. It is used as before, and then the package is removed without a trace."""

import os
import pathlib

import story
from harness.shell import output, run
from harness.wait import wait_until


def test_the_disk_is_mounted_with_its_data(api):
    assert os.path.ismount(story.POINT), "mounted before local-fs.target, after which the tests start"
    assert story.WRITTEN.read_text(encoding="ascii") == "before the reboot"
    assert api.wait_phase("data", "Live")["status"]["recoveries"]["count"] == 0
    wait_until(lambda: story.state(story.UNIT) == "active", "the unit of the disk")
    assert "ublk" not in output("systemctl", "list-units", "--failed", "--plain", "--no-legend")


def test_what_the_administrator_and_the_installation_have_written_is_there():
    assert output("systemctl", "show", "--property", "Description", "--value", story.UNIT) == story.DESCRIPTION
    assert "ublk" in output("id", "--name", "--groups", story.MEMBER).split()
    assert pathlib.Path("/etc/fstab").read_text(encoding="ascii").endswith(story.LINE)
    for unit in ("ublkd.service", "ublkd.socket"):
        assert output("systemctl", "is-enabled", unit) == "enabled"


def test_a_removal_is_refused_while_there_is_the_disk(api):
    """The disk, its worker and the manager go on."""
    worker = api.get("data")["status"]["worker"]["pid"]
    refused = run("dpkg", "--remove", "ublkd", check=False, timeout=600)
    assert refused.returncode != 0 and "data" in refused.stdout
    assert output("dpkg-query", "-W", "-f", "${db:Status-Status}", "ublkd") == "installed"
    assert [story.state(unit) for unit in ("ublkd.service", "ublkd.socket", story.UNIT)] == ["active"] * 3
    assert api.get("data")["status"]["worker"]["pid"] == worker
    (story.POINT / "refused").write_text("still here", encoding="ascii")
    os.sync()


def test_a_purge_after_the_disk_leaves_nothing(api):
    run("umount", story.POINT)
    run("fsck.ext4", "-f", "-n", story.DISK)
    run("ublkctl", "delete", "data")
    assert api.names() == []
    run("dpkg", "--purge", "ublkd", timeout=600)
    assert run("dpkg-query", "-W", "ublkd", check=False).returncode != 0
    assert story.IMAGE.exists(), "the administrator's file"
    assert list(pathlib.Path("/var/lib/ublkd").iterdir()) in ([], [pathlib.Path("/var/lib/ublkd/lost+found")])
    assert not pathlib.Path("/run/ublkd").exists() and not pathlib.Path("/etc/ublkd").exists()
    assert run("getent", "group", "ublk", check=False).stdout == ""
