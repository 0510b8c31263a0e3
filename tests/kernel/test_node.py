# SPDX-License-Identifier: MIT
"""Owner, mode and link of the block node, with the udev rule that is installed with ublkd.

Udev gives every new disk to root:disk in its own time. The rule, which reads
what ublkd has left in /run/ublkd, is what makes it say the same as ublkd.
"""

import itertools
import json
import os
import pathlib
import shutil
import stat

from harness import programs
from harness.api import loop_spec, null_spec
from harness.disk import Disk
from harness.shell import output, run
from harness.tenants import hand_over
from harness.wait import wait_until

import pytest

pytestmark = pytest.mark.long  # and one kernel runs each test

_RULE = pathlib.Path("/run/udev/rules.d/60-ublkd.rules")
_WITNESS = "/sys/class/mem/null"
_TOKENS = itertools.count()


def _reload():
    """Returns once udev works by the rules that are there: a rule that is written last has had its effect."""
    token = f"rules-{next(_TOKENS)}"
    _RULE.with_name("99-witness.rules").write_text(f'KERNEL=="null", ENV{{UBLKD_TEST}}="{token}"\n')

    def known():
        run("udevadm", "control", "--reload")
        run("udevadm", "trigger", "--action=change", "--settle", _WITNESS)
        return f"UBLKD_TEST={token}" in output("udevadm", "info", "--query=property", _WITNESS).split()

    wait_until(known, "udev with the rules of this test")


@pytest.fixture(name="installed")
def daemon_with_the_rule(make_daemon):
    """A daemon in the directory that the udev rule knows."""
    _RULE.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(programs.source("units/60-ublkd.rules"), _RULE)
    _reload()
    yield make_daemon(runtime="/run/ublkd").start()
    _RULE.unlink()
    _reload()


@pytest.fixture(name="api")
def api_of_the_installed_one(installed):
    return installed.api


def _owner(disk):
    node = os.stat(disk.path)
    return node.st_uid, node.st_gid, stat.S_IMODE(node.st_mode)


def test_node_has_owner_mode_and_link(api):
    owner = {"uid": 1234, "gid": 4321, "mode": "0640"}
    link = pathlib.Path("/dev/ublk/by-name/my.disk-1")
    disk = Disk(api.create(null_spec("my.disk-1", owner=owner))["status"]["id"])
    run("udevadm", "settle")
    assert _owner(disk) == (1234, 4321, 0o640)
    assert link.is_symlink() and os.path.samefile(link, disk.path)
    run("udevadm", "trigger", "--action=change", "--settle", disk.sys)
    assert _owner(disk) == (1234, 4321, 0o640) and os.path.samefile(link, disk.path)
    api.delete("my.disk-1")
    wait_until(lambda: not link.is_symlink(), "the link gone")


def test_node_is_of_root_and_group_disk_by_default(api):
    disk = Disk(api.create(null_spec("data"))["status"]["id"])
    run("udevadm", "settle")
    uid, _gid, mode = _owner(disk)
    assert (uid, mode) == (0, 0o660)


def test_owner_changes_on_a_live_disk(api):
    before = api.create(null_spec("data"))
    disk = Disk(before["status"]["id"])
    after = api.put(null_spec("data", owner={"uid": 77, "gid": 78, "mode": "0600"}))
    assert after["status"]["id"] == disk.number
    run("udevadm", "settle")
    assert _owner(disk) == (77, 78, 0o600)


@pytest.fixture(name="slow_udev")
def udev_that_stops_between_reading_and_setting(directory):
    """Udev stops at every new disk after the rule of ublkd has read the owner, until the file `go` exists."""
    rule = _RULE.with_name("61-slow.rules")
    rule.parent.mkdir(parents=True, exist_ok=True)
    script = directory / "slow"
    script.write_text(f"#!/bin/sh\n: > {directory}/stopped\nuntil [ -e {directory}/go ]; do sleep 0.05; done\n")
    script.chmod(0o755)
    rule.write_text(f'ACTION=="add", KERNEL=="ublkb*", IMPORT{{program}}="{script}"\n')
    _reload()
    yield directory
    (directory / "go").touch()
    rule.unlink()
    _reload()


def _wait_stopped(slow_udev, disk):
    def what():
        return f"udev in the middle of the new disk, of which it knows {output('udevadm', 'info', disk.sys)}"

    wait_until((slow_udev / "stopped").exists, what)


@pytest.mark.variant
def test_a_new_owner_outlasts_what_udev_has_read_before(api, slow_udev):
    disk = Disk(api.create(null_spec("data"))["status"]["id"])
    _wait_stopped(slow_udev, disk)
    api.put(null_spec("data", owner={"uid": 77, "gid": 78, "mode": "0600"}))
    (slow_udev / "go").touch()
    run("udevadm", "settle")
    assert _owner(disk) == (77, 78, 0o600)


def test_the_owner_outlasts_udev_without_the_rule(make_daemon, slow_udev):
    owner = {"uid": 77, "gid": 78, "mode": "0604"}
    disk = Disk(make_daemon().start().api.create(null_spec("plain", owner=owner))["status"]["id"])
    assert _owner(disk) == (77, 78, 0o604)
    _wait_stopped(slow_udev, disk)
    (slow_udev / "go").touch()
    run("udevadm", "settle")  # it has given the disk to root:disk
    wait_until(lambda: _owner(disk) == (77, 78, 0o604), "the owner as the spec says")


def test_a_name_is_linked_without_udev_rules_too(make_daemon):
    disk = Disk(make_daemon().start().api.create(null_spec("plain"))["status"]["id"])
    assert os.path.samefile("/dev/ublk/by-name/plain", disk.path)


def _properties(disk, part=""):
    lines = output("udevadm", "info", "--query=property", f"{disk.path}{part}").splitlines()
    return dict(line.split("=", 1) for line in lines)


def _lsblk(disk):
    tree = json.loads(output("lsblk", "--json", "--output", "NAME,SERIAL,FSTYPE,LABEL,PARTTYPE", disk.path))
    return tree["blockdevices"][0]


def test_a_disk_has_a_serial_number_and_a_link_by_it(api):
    device = api.create(null_spec("data"))
    disk = Disk(device["status"]["id"])
    uid = device["uid"]
    properties = _properties(disk)  # without udevadm settle: udev is done when the API answers
    assert (properties["ID_SERIAL"], properties["ID_SERIAL_SHORT"]) == (f"ublk-{uid}", uid)
    assert os.path.samefile(f"/dev/disk/by-id/ublk-{uid}", disk.path)
    assert _lsblk(disk)["serial"] == uid
    api.delete("data")
    wait_until(lambda: not os.path.lexists(f"/dev/disk/by-id/ublk-{uid}"), "the link gone")


def test_udev_and_lsblk_know_what_is_on_a_disk(api, file_of):
    """Also with a systemd whose own rules pass over disks of ublk, and after each change of the disk."""
    device = api.create(loop_spec("data", file_of(size=64 << 20)))
    disk = Disk(device["status"]["id"])
    assert _lsblk(disk)["fstype"] is None
    run("mkfs.ext4", "-q", "-L", "of-data", disk.path)
    wait_until(lambda: _properties(disk).get("ID_FS_TYPE") == "ext4", "udev that knows the file system")
    assert (_lsblk(disk)["fstype"], _lsblk(disk)["label"]) == ("ext4", "of-data")
    wait_until(lambda: os.path.exists("/dev/disk/by-label/of-data"), "the link by the label")
    assert os.path.samefile(f"/dev/disk/by-uuid/{_properties(disk)['ID_FS_UUID']}", disk.path)
    run("wipefs", "--all", "--quiet", disk.path)
    run("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", disk.path, input="label: gpt\nsize=16MiB, type=linux\n")
    part = f"/dev/disk/by-id/ublk-{device['uid']}-part1"
    wait_until(lambda: os.path.exists(part), "the link of the partition")
    wait_until(lambda: "ID_PART_ENTRY_TYPE" in _properties(disk, "p1"), "udev that knows the partition")
    assert os.path.samefile(part, f"{disk.path}p1")
    assert _lsblk(disk)["children"][0]["parttype"] == _properties(disk, "p1")["ID_PART_ENTRY_TYPE"]
    wait_until(lambda: not os.path.lexists("/dev/disk/by-label/of-data"), "the link by the label gone")


_TWO = "label: gpt\nstart=1MiB, size=16MiB, type=linux, name=one\nstart=32MiB, size=16MiB, type=swap, name=two\n"


@pytest.fixture(name="parted")
def disk_with_two_partitions(api, file_of):
    """A device, and its disk with two partitions that udev knows; ext4 is on the first one."""
    path, names = file_of(), [f"/dev/ublk/by-name/data-part{number}" for number in (1, 2)]
    run("sfdisk", "--quiet", "--wipe=never", path, input=_TWO)
    device = api.create(loop_spec("data", path, owner={"uid": 77, "gid": 78, "mode": "0600"}))
    disk = Disk(device["status"]["id"])
    wait_until(lambda: all(map(os.path.exists, names)), "the links of the partitions")
    run("mkfs.ext4", "-q", "-L", "of-part", names[0])
    wait_until(lambda: _properties(disk, "p1").get("ID_FS_TYPE") == "ext4", "udev that knows the file system")
    return device, disk


def test_partitions_have_the_names_the_owner_and_the_serial_number_of_their_disk(api, parted):
    device, disk = parted
    links = []
    for number in (1, 2):
        part, properties = f"{disk.path}p{number}", _properties(disk, f"p{number}")
        links += [f"/dev/ublk/by-name/data-part{number}", f"/dev/disk/by-id/ublk-{device['uid']}-part{number}"]
        assert {os.path.realpath(link) for link in links[-2:]} == {part}
        assert set(links[-2:]) <= set(properties["DEVLINKS"].split())
        assert properties["ID_SERIAL"] == f"ublk-{device['uid']}" and properties["UBLKD_NAME"] == "data"
        assert properties["ID_PART_ENTRY_NUMBER"] == str(number)
        node = os.stat(part)
        assert (node.st_uid, node.st_gid, stat.S_IMODE(node.st_mode)) == (77, 78, 0o600)
    api.delete("data")
    wait_until(lambda: not any(map(os.path.lexists, links)), "the links gone")


def _text(path):
    """What a plain file has; udev removes some meanwhile."""
    try:
        return "" if path.is_symlink() or not path.is_file() else path.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _shown_to_all(*words):
    """Where every user reads one of these: links and files, and properties of udev."""
    folders = ("/dev/ublk", "/dev/disk", "/run/ublkd/disks", "/run/udev/links", "/run/udev/data")
    paths = [pathlib.Path(top, name) for folder in folders for top, folds, files in os.walk(folder) for name in folds + files]
    return [str(path) for path in paths if any(word in text for text in (str(path), _text(path)) for word in words)]


@pytest.fixture(name="prober")
def rule_that_looks_at_disks_without_a_type():
    """As 69-bcache.rules does, which then has the kernel read what it finds: by the same condition."""
    rule = _RULE.with_name("69-prober.rules")
    rule.parent.mkdir(parents=True, exist_ok=True)
    rule.write_text('KERNEL!="ublkb*", GOTO="end"\nENV{ID_FS_TYPE}=="?*", GOTO="end"\nENV{UBLKD_PROBED}="1"\nLABEL="end"\n')
    _reload()
    yield
    rule.unlink()
    _reload()


@pytest.mark.usefixtures("prober")
def test_no_rule_looks_at_the_disk_of_a_tenant_itself(installed, file_of, directory):
    """Nor does a program that goes by the links of udev. One that reads all disks is not stopped: libblkid does by default."""
    path = file_of(size=64 << 20)
    disk = Disk(installed.api.create(loop_spec("data", path))["status"]["id"])
    assert _properties(disk).get("UBLKD_PROBED") == "1"
    run("mkfs.ext4", "-q", "-L", "of-tenant", disk.path)
    wait_until(lambda: _properties(disk).get("ID_FS_TYPE") == "ext4", "udev that knows the file system")
    installed.stop()
    hand_over(installed.state, "data", 1000, path)
    installed.start()
    installed.api.wait_for("data", lambda now: now["status"]["node"], "with a node")
    run("udevadm", "trigger", "--action=change", "--settle", disk.sys)
    known = {name: value for name, value in _properties(disk).items() if name.startswith(("ID_FS_", "UBLKD_PROBED"))}
    assert known == {"ID_FS_TYPE": "ublkd_tenant"}
    by_links, default = directory / "links.conf", directory / "default.conf"
    by_links.write_text("EVALUATE=udev\n")
    default.write_text("")
    assert output("findfs", "LABEL=of-tenant", env={**os.environ, "BLKID_CONF": str(default)}) == disk.path
    assert run("findfs", "LABEL=of-tenant", check=False, env={**os.environ, "BLKID_CONF": str(by_links)}).returncode == 1


def test_the_disk_of_a_tenant_has_no_name_that_others_see(installed, parted):
    """An earlier ublkd has made the links and announced the name: they go, and do not come with the next disk either."""
    device, disk = parted
    words = ("by-name/data", "x2fdata", "UBLKD_NAME", device["uid"], "of-part")
    assert len(_shown_to_all(*words)) > 6
    installed.stop()
    hand_over(installed.state, "data", 1000, device["spec"]["target"]["path"])
    installed.start()
    installed.api.wait_for("data", lambda now: now["status"]["node"], "with a node")
    private = f"/dev/ublk/private/{device['uid']}"  # in a directory that no user can list
    for again in (False, True):
        if again:
            installed.api.ask("POST", "/devices/data/stop?wait&timeout=60s", 200)
            installed.api.ask("POST", "/devices/data/start?wait=ready&timeout=60s", 200)
            wait_until(lambda: os.path.exists(f"{disk.path}p1"), "the partition")
        wait_until(lambda: _shown_to_all(*words) == [private], lambda: f"{_shown_to_all(*words)} but {private}")
        run("udevadm", "trigger", "--action=change", "--settle", disk.sys, f"{disk.sys}/ublkb{disk.number}p1")
        assert _shown_to_all(*words) == [private]
    assert installed.api.get("data")["status"]["links"] == []
    for path in (disk.path, f"{disk.path}p1"):
        node = os.stat(path)
        assert (node.st_uid, node.st_gid, stat.S_IMODE(node.st_mode)) == (77, 78, 0o600)


def test_programs_that_list_disks_know_the_partitions(parted, directory):
    """lsblk, findmnt and blkid."""
    device, disk = parted
    part, where, by_name = f"{disk.path}p1", directory / "mount", "/dev/ublk/by-name/data-part1"
    where.mkdir()
    run("mount", by_name, where)
    try:
        columns = "NAME,SERIAL,FSTYPE,PARTTYPE,MOUNTPOINTS"
        (tree,) = json.loads(output("lsblk", "--json", "--output", columns, disk.path))["blockdevices"]
        assert (tree["name"], tree["serial"]) == (f"ublkb{disk.number}", device["uid"])
        one, two = sorted(tree["children"], key=lambda child: child["name"])
        assert (one["name"], one["fstype"], one["mountpoints"]) == (f"ublkb{disk.number}p1", "ext4", [str(where)])
        assert (one["parttype"], two["parttype"]) == (
            "0fc63daf-8483-4772-8e79-3d69d8477de4", "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"
        )
        assert two["fstype"] is None
        found = output("findmnt", "--noheadings", "--raw", "--output", "SOURCE,FSTYPE,LABEL", where)
        assert found.split() == [part, "ext4", "of-part"]
        assert output("findmnt", "--noheadings", "--output", "TARGET", "--source", by_name) == str(where)
    finally:
        run("umount", where)
    lines = output("blkid", "--probe", "--output", "export", by_name).splitlines()
    assert {"TYPE=ext4", "LABEL=of-part", "PART_ENTRY_NUMBER=1", "PART_ENTRY_NAME=one"} <= set(lines)


@pytest.mark.parametrize("times", [5, pytest.param(1000, marks=pytest.mark.storm)])
def test_each_new_disk_is_opened_by_its_name_at_once(api, times):
    """An earlier disk of that name has just been removed, and udev may remove the link after ublkd has made it."""
    owner = {"uid": 77, "gid": 78, "mode": "0600"}
    for _ in range(times):
        device = api.create(null_spec("data", owner=owner))
        disk = Disk(device["status"]["id"])
        node = os.open("/dev/ublk/by-name/data", os.O_RDONLY)
        opened = os.fstat(node)
        os.close(node)
        assert opened.st_rdev == os.stat(disk.path).st_rdev
        assert (opened.st_uid, opened.st_gid, stat.S_IMODE(opened.st_mode)) == (77, 78, 0o600)
        assert _properties(disk)["ID_SERIAL_SHORT"] == device["uid"]
        api.delete("data")


def _all_events(api, name):
    return api.ask("GET", f"/events?device={name}", 200, headers={"Accept": "application/json"})["items"]


def _events(api, name):
    return [event for event in _all_events(api, name) if event["reason"] == "UdevLate"]


def _shown(api, device):
    """What explains a missing or unexpected event: all others of the device, its conditions, and what udev knows."""
    number = os.stat(Disk(device["status"]["id"]).path).st_rdev
    known = pathlib.Path(f"/run/udev/data/b{os.major(number)}:{os.minor(number)}")
    lines = [f'{event["lastTime"]} {event["reason"]}: {event["message"]}' for event in _all_events(api, device["name"])]
    lines += [f'{one["type"]}: {one["reason"]}' for one in device["status"]["conditions"]]
    return "\n".join([*lines, known.read_text() if known.exists() else "udev knows nothing of it"])


@pytest.mark.variant
def test_a_udev_that_does_nothing_delays_one_disk(api):
    """A disk waits for udev once; while udev does nothing, further ones do not."""
    run("udevadm", "control", "--stop-exec-queue")
    try:
        first = api.create(null_spec("first"))
        assert _events(api, "first"), _shown(api, first)
        second = api.create(null_spec("second"))
        assert not _events(api, "second"), _shown(api, second)
    finally:
        run("udevadm", "control", "--start-exec-queue")
    run("udevadm", "settle")
    api.create(null_spec("third"))
    assert not _events(api, "third") and os.path.exists("/dev/ublk/by-name/third")
