# SPDX-License-Identifier: MIT
"""mkfs, mount, unmount and deliver. What they do to a disk is in tests/kernel/test_made_filesystems.py
and test_rootless_podman.py."""
import pytest

from ctl import NOT_FOUND, REFUSED, TIMED_OUT, USAGE

NULL = ["target.type=null", "size=1MiB"]
UUID = "11111111-2222-4333-8444-555555555555"  # of the server of the tests
IN_USE, NOT_BLANK, TOO_LONG = 11, 7, 18  # enum filesystem_verdict


def status(server):
    return server.ask("GET", "/devices/data").json["status"]


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_file_system_is_made(server, ctl, kind):
    ctl("create", "data", *NULL)
    for _ in range(2):  # again
        assert ctl("mkfs", "data", "--type", kind).out == f"data has {kind} {UUID}\n"
    assert status(server)["filesystem"] == {"type": kind, "uuid": UUID, "state": "made"}


@pytest.mark.parametrize("arguments", [
    ["data"], ["data", "--type", "btrfs"], ["--type", "ext4"], ["data", "more", "--type", "ext4"],
    ["data", "--type", "ext4", "--force"], ["data", "ext4"]])
def test_no_file_system_is_made_by_accident(server, ctl, arguments):
    for name in ("data", "more"):
        ctl("create", name, *NULL)
    ctl("mkfs", *arguments, status=USAGE)
    assert status(server)["filesystem"] is None


def test_remake_needs_the_uuid_of_the_interrupted_mkfs(server, ctl):
    ctl("create", "data", *NULL)
    ctl("mkfs", "data", "--type", "ext4", "--remake", UUID.replace("1", "9"), status=REFUSED)
    assert status(server)["filesystem"] is None
    ctl("mkfs", "data", "--type", "ext4", "--remake", UUID)
    assert status(server)["filesystem"]["state"] == "made"


@pytest.mark.parametrize("verdict, exit_status", [(IN_USE, REFUSED), (NOT_BLANK, REFUSED), (TOO_LONG, TIMED_OUT)])
def test_a_refusal_is_the_sentence_of_ublkd(server, ctl, verdict, exit_status):
    ctl("create", "data", *NULL, f"labels.filesystem=end {verdict} 0")
    detail = server.ask("POST", "/devices/data/filesystem", {"type": "ext4"}).json["detail"]
    run = ctl("mkfs", "data", "--type", "ext4", status=exit_status)
    assert run.err == f"ublkctl: data: {detail}\n" and run.out == ""


def test_a_mount_prints_its_directory(server, ctl):
    uid = ctl("create", "data", *NULL, "-o", "json").json["uid"]
    for _ in range(2):
        assert ctl("mount", "data", "--no-exec").out == f"/mounts/{uid}\n"
    for verb in ("unmount", "umount"):
        assert ctl(verb, "data").out == "data is not mounted\n"
    assert status(server)["mount"] is None


def test_a_mount_stays_for_its_holders(server, ctl):
    ctl("create", "data", *NULL)
    ctl("mount", "data", "--holder", "a")
    ctl("mount", "data", "--holder", "b")
    ctl("unmount", "data", status=REFUSED)
    assert ctl("unmount", "data", "--holder", "a").out.startswith("data stays mounted for 1 ")
    assert status(server)["mountHolders"] == 1
    ctl("unmount", "data", "--holder", "b", "--all-holders", status=USAGE)
    ctl("unmount", "data", "--all-holders")
    assert (status(server)["mount"], status(server)["mountHolders"]) == (None, 0)


def test_each_device_is_mounted_also_after_one_that_is_not_there(server, ctl):
    ctl("create", "data", *NULL)
    run = ctl("mount", "other", "data", status=NOT_FOUND)
    assert len(run.lines) == 1 and status(server)["mount"] == run.lines[0]
    ctl("unmount", "other", "data", status=NOT_FOUND)
    assert status(server)["mount"] is None


def test_what_is_mounted_is_delivered(server, ctl):
    ctl("create", "data", *NULL)
    deliver = ("deliver", "data", "/data", "--mount")
    ctl(*deliver, status=REFUSED)  # not mounted
    ctl("deliver", "data", "/dev/data", status=REFUSED)  # no tenant's, so it has no private node
    ctl("mount", "data")
    assert ctl(*deliver, "--read-only", "--no-exec", "--pid", "1").out == "/data\n"
    ctl(*deliver, "--pid", str(1 << 22), status=REFUSED)  # the server of the tests has no such process
    ctl("deliver", "data", "/end/5/30", "--mount", status=REFUSED)  # DELIVERY_NO_FILE
    for wrong in (("--pid", "0"), ("--pid", "x"), ("--pid", str((1 << 22) + 1))):
        ctl(*deliver, *wrong, status=USAGE)
    ctl("deliver", "data", "/data", "--read-only", status=USAGE)
