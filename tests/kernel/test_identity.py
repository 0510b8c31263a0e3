# SPDX-License-Identifier: MIT
"""A disk's bytes come from the very store that it was made on, or from none: whatever its path leads to by now."""

import os
import pathlib
import signal
import subprocess

import pytest

from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.kernel_disks import detach_loop, loop_disk
from harness.marks import variants
from harness.shell import output, run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20


def _backing(api, name="data"):
    return api.get(name)["status"]["backing"]


def _wait_changed(api, name="data"):
    """Wait until the device has refused a store; return it."""
    return api.wait_for(
        name,
        lambda device: device["status"]["phase"] == "Failed" and condition_of(device)["reason"] == "BackingChanged",
        "Failed with BackingChanged",
    )


def _other_file(path, letter="z", size_mib=64):
    """Put another file at the path, as a restore does: made beside it and renamed over it."""
    fresh = path.with_suffix(".fresh")
    with open(fresh, "wb") as file:
        file.write(block(letter) * 16)
        file.truncate(size_mib * _MIB)
    fresh.rename(path)
    return path


def _lose_everything(daemon, name="data"):
    """No process has a descriptor of the store any more: worker and ublkd die, and the disk stays."""
    pid = daemon.worker_pid(name)
    daemon.kill()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}/fd").exists(), "the worker gone")


def test_a_restart_keeps_a_file_that_was_replaced(daemon, ext4, file_of):
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    identity = _backing(api)["identity"]
    inode = path.stat().st_ino
    _other_file(path)
    assert path.stat().st_ino != inode
    api.restart("data")
    assert disk.read(0, 4096) == block("a")
    disk.write(4096, block("b"))
    assert path.read_bytes()[4096:8192] == block("z"), "the other file was written to"
    assert _backing(api)["identity"] == identity and _backing(api)["kept"]
    api.delete("data")


@pytest.mark.parametrize("how", ["replaced", "deleted", *variants("renamed", "deleted and made again")])
def test_a_crash_keeps_the_file(daemon, ext4, file_of, how):
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    if how == "replaced":
        _other_file(path)
    elif how == "renamed":
        path.rename(path.with_suffix(".elsewhere"))
    else:
        path.unlink()
    if how == "deleted and made again":
        _other_file(path, size_mib=80)
    pid = daemon.kill_worker("data")
    api.wait_other_worker("data", pid)
    assert disk.read(0, 4096) == block("a") and disk.size() == 64 * _MIB
    disk.write(4096, block("b"))
    assert disk.read(4096, 4096) == block("b")
    api.delete("data")


@pytest.mark.long
@pytest.mark.parametrize(
    "recovery,how", [("none", "deleted"), ("given up", "replaced"), *variants(("none", "replaced"), ("given up", "deleted"))]
)
def test_a_disk_that_is_recreated_keeps_the_file(daemon, ext4, file_of, recovery, how):
    """ublkd itself makes the next disk, of the same spec: no client has accepted another store for it."""
    api, path = daemon.api, file_of(where=ext4)
    words = {"onCrash": "none"} if recovery == "none" else {"trigger": "manual", "giveUpAfter": "1s"}
    spec = loop_spec("data", path, recovery=words)
    disk = Disk(api.create(spec)["status"]["id"])
    disk.write(0, block("a"))
    if how == "replaced":
        _other_file(path)
    else:
        path.unlink()
    pid = daemon.kill_worker("data")
    if recovery == "given up":
        assert api.wait_phase("data", "Failed")["status"]["backing"]["kept"]
        wait_until(lambda: not disk.exists(), "the disk gone")
        if how == "deleted":
            api.delete("data", status=409, drop_last_copy=False)
        api.ask("POST", "/devices/data/recover", (200, 202))
    api.wait_other_worker("data", pid)  # until ublkd sees the death, it is Live as before
    assert disk.read(0, 4096) == block("a")
    disk.write(4096, block("b"))
    if how == "replaced":
        assert path.read_bytes()[4096:8192] == block("z"), "the other file was written to"
    assert _backing(api)["kept"]
    api.delete("data")


@pytest.mark.long
def test_a_disk_that_is_recreated_waits_for_its_file(daemon, ext4, file_of):
    """No process has a descriptor left: the disk is made on the file that it was on, or not at all."""
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path, recovery={"onCrash": "none"}))["status"]["id"])
    disk.write(0, block("a"))
    kept = path.with_suffix(".kept")
    _lose_everything(daemon)
    path.rename(kept)
    daemon.start()
    device = api.wait_for("data", lambda d: condition_of(d)["reason"] == "BackingFileMissing", "without its file")
    assert "create" not in condition_of(device)["message"]
    _other_file(path)
    _wait_changed(api)
    path.unlink()
    kept.rename(path)
    api.wait_phase("data", "Live")
    assert disk.read(0, 4096) == block("a")
    api.delete("data")


@pytest.mark.parametrize("how", ["replaced", "deleted"])
def test_the_last_copy_is_not_dropped(daemon, ext4, file_of, how):
    """The file has no name any more: what takes the disk away is refused, until the data may go."""
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    if how == "replaced":
        _other_file(path)
    else:
        path.unlink()
    merge = {"Content-Type": "application/merge-patch+json"}
    for change in {"queueDepth": 64}, {"enabled": False}, {"target": {"path": str(file_of("new.img", where=ext4))}}:
        problem = api.ask("PATCH", "/devices/data", 409, json=change, headers=merge)
        assert problem["type"].endswith(":last-copy") and "only this disk has its data" in problem["detail"]
    api.delete("data", force=True, status=409, drop_last_copy=False)
    assert api.phase("data") == "Live" and disk.read(0, 4096) == block("a")
    api.delete("data")


def test_a_new_disk_is_not_made_on_another_store(daemon, ext4, file_of):
    """The path leads to another file, and the one that is served has another name."""
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    kept = path.with_suffix(".kept")
    path.rename(kept)
    _other_file(path)
    api.wait_for("data", lambda device: (condition_of(device, "PathLeadsToStore") or {}).get("status") == "False", "whose path leads elsewhere")
    merge = {"Content-Type": "application/merge-patch+json"}
    problem = api.ask("PATCH", "/devices/data", 409, json={"queueDepth": 64}, headers=merge)
    assert problem["type"].endswith(":path-elsewhere") and str(path) in problem["detail"]
    assert disk.read(0, 4096) == block("a")
    api.ask("PATCH", "/devices/data?wait=ready&timeout=60s", 200, headers=merge,
            json={"queueDepth": 64, "target": {"path": str(kept)}})
    assert disk.read(0, 4096) == block("a")
    api.delete("data")


def test_below_a_directory_that_was_unmounted(daemon, directory, file_of):
    mount = directory / "mount"
    mount.mkdir()
    run("mount", "-t", "tmpfs", "tmpfs", mount)
    api, path = daemon.api, file_of(where=mount)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    run("umount", "--lazy", mount)
    path.write_bytes(block("z") * (64 * _MIB // 4096))  # a stale file, where the mount was
    pid = daemon.kill_worker("data")
    api.wait_other_worker("data", pid)
    assert disk.read(0, 4096) == block("a")
    api.delete("data")


def test_ublkd_dies_and_then_the_worker(daemon, ext4, file_of):
    """The next ublkd has the store from the worker that lives."""
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    _other_file(path)
    daemon.kill()
    daemon.start()
    api.wait_for("data", lambda device: device["status"]["backing"]["kept"], "whose store is kept")
    pid = daemon.kill_worker("data")
    api.wait_other_worker("data", pid)
    assert disk.read(0, 4096) == block("a")
    api.delete("data")


@pytest.mark.variant
def test_no_descriptor_is_left_and_the_file_is_another(daemon, ext4, file_of):
    """Then nothing is read or written until the administrator says so."""
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    right = _backing(api)["identity"]
    kept = path.with_suffix(".kept")
    _lose_everything(daemon)
    path.rename(kept)
    _other_file(path)
    before = path.read_bytes()
    write = disk.write_later(4096, block("b"))
    daemon.start()
    device = _wait_changed(api)
    found = device["status"]["backing"]["found"]
    assert found["identity"] != right and device["status"]["backing"]["identity"] == right
    message = condition_of(device)["message"]
    assert right in message and found["identity"] in message and "create it" not in message
    assert path.read_bytes() == before and kept.read_bytes()[:4096] == block("a")
    # The right file is back: nothing is to be reported.
    path.unlink()
    kept.rename(path)
    api.wait_phase("data", "Live")
    write.result()
    assert disk.read(0, 8192) == block("a") + block("b")
    api.delete("data")


def test_no_descriptor_is_left_and_the_file_has_the_old_inode_number(daemon, ext4, file_of):
    api, path = daemon.api, file_of(where=ext4)
    api.create(loop_spec("data", path))
    number = path.stat().st_ino
    _lose_everything(daemon)
    path.unlink()
    # The kernel frees the inode with the last request of the dead worker; ext4 then uses the lowest number again.
    spares = []

    def same_number():
        run("sync", "-f", ext4)  # not all disks: that of the test may be read for partitions, and waits for its worker
        _other_file(path)
        if path.stat().st_ino == number:
            return True
        spares.append(path.rename(path.with_suffix(f".{len(spares)}")))
        return False

    wait_until(same_number, "a file with the same inode number")
    daemon.start()
    _wait_changed(api)
    api.delete("data", force=True)


def test_consent(daemon, ext4, file_of):
    api, path = daemon.api, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    _lose_everything(daemon)
    _other_file(path)
    daemon.start()
    found = _wait_changed(api)["status"]["backing"]["found"]["identity"]
    api.ask("POST", "/devices/data/recover", (200, 202))  # without consent: it is tried, and refused again
    _wait_changed(api)
    api.ask("POST", "/devices/data/recover?accept-backing=another", 409)
    accept = f"/devices/data/recover?accept-backing={found}&wait=ready&timeout=60s"
    # While the request before is tried, what it finds is not known yet.
    wait_until(lambda: api.request("POST", accept).status_code == 200, "accepted")
    assert disk.read(0, 4096) == block("z")
    backing = _backing(api)
    assert backing["identity"] == found and backing["found"] is None
    reasons = [event["reason"] for event in api.ask("GET", "/events?device=data", 200,
                                                    headers={"Accept": "application/json"})["items"]]
    assert "BackingChanged" in reasons and "BackingAccepted" in reasons
    api.delete("data")


def test_no_consent_while_the_disk_is_mounted(daemon, ext4, file_of, directory):
    """A file system would write what it has cached into the other store."""
    api, path, mount = daemon.api, file_of(where=ext4), directory / "mount"
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    run("mkfs.ext4", "-qF", disk.path)
    mount.mkdir()
    run("mount", disk.path, mount)
    try:
        kept = path.with_suffix(".kept")
        _lose_everything(daemon)
        path.rename(kept)
        _other_file(path)
        before = path.read_bytes()
        daemon.start()
        found = _wait_changed(api)["status"]["backing"]["found"]["identity"]
        problem = api.ask("POST", f"/devices/data/recover?accept-backing={found}", 409)
        assert problem["type"].endswith(":in-use") and str(mount) in problem["detail"]
        assert path.read_bytes() == before
        path.unlink()
        kept.rename(path)
        api.wait_phase("data", "Live")
    finally:
        run("umount", mount)
    api.delete("data")


def test_a_missing_file_is_not_to_be_created(daemon, ext4, file_of):
    api, path = daemon.api, file_of(where=ext4)
    api.create(loop_spec("data", path))
    _lose_everything(daemon)
    path.unlink()
    daemon.start()
    device = api.wait_for("data", lambda d: condition_of(d)["reason"] == "BackingFileMissing", "without its file")
    assert "create" not in condition_of(device)["message"]
    api.delete("data", force=True)


def test_the_start_after_a_spec_was_changed(daemon, ext4, file_of):
    """A new target is a consent of its own; the old store is not asked for any more."""
    api, path, other = daemon.api, file_of(where=ext4), file_of("other.img", where=ext4)
    api.create(loop_spec("data", path))
    first = _backing(api)["identity"]
    api.put(loop_spec("data", other))
    assert _backing(api)["identity"] != first
    api.delete("data")


def test_another_disk_at_the_name(daemon, directory):
    """/dev/sdb after a re-plug: as large, and another disk."""
    api, link = daemon.api, directory / "disk"
    images = [directory / name for name in ("one.img", "two.img")]
    for image, letter in zip(images, "xy"):
        with open(image, "wb") as file:
            file.write(block(letter))
            file.truncate(16 * _MIB)
    with loop_disk(images[0]) as one, loop_disk(images[1]) as two:
        link.symlink_to(one)
        disk = Disk(api.create(loop_spec("data", link))["status"]["id"])
        _lose_everything(daemon)
        link.unlink()
        link.symlink_to(two)
        before = images[1].read_bytes()
        daemon.start()
        found = _wait_changed(api)["status"]["backing"]["found"]
        assert found["basis"] != "none" and images[1].read_bytes() == before
        link.unlink()
        link.symlink_to(one)
        api.wait_phase("data", "Live")
        assert disk.read(0, 4096) == block("x")
        api.delete("data")


def test_a_number_that_was_given_to_another_disk(daemon, directory):
    """The same name and the same major:minor: only diskseq differs."""
    api = daemon.api
    images = [directory / name for name in ("one.img", "two.img")]
    for image, letter in zip(images, "xy"):
        with open(image, "wb") as file:
            file.write(block(letter))
            file.truncate(16 * _MIB)
    path = output("losetup", "--find", "--show", images[0])
    api.create(loop_spec("data", path))
    _lose_everything(daemon)
    detach_loop(path)
    run("losetup", path, images[1])
    daemon.start()
    _wait_changed(api)
    api.delete("data", force=True)
    detach_loop(path)


@pytest.mark.variant
def test_a_loop_device_whose_path_leads_to_another_file_with_its_inode_number(api, directory):
    """Its identity over reboots is that of its file, and not of the file that was mounted over that."""
    mount, images = directory / "mount", [directory / name for name in ("one.img", "two.img")]
    path, loops, inodes, tokens = mount / "disk.img", [], [], []
    mount.mkdir()
    for image in images:
        with open(image, "wb") as file:
            file.truncate(16 * _MIB)
        run("mkfs.ext4", "-qF", image)
        run("mount", "-o", "loop", image, mount)  # the second one over the first one
        with open(path, "wb") as file:
            file.truncate(4 * _MIB)
        inodes.append(path.stat().st_ino)
        loops.append(output("losetup", "--find", "--show", path))
    assert inodes[0] == inodes[1]
    for loop in loops:
        api.create(loop_spec("data", loop))
        tokens.append(_backing(api)["identity"])
        api.delete("data")
        detach_loop(loop)
    run("umount", mount)
    run("umount", mount)
    assert tokens[0] != tokens[1]


def test_a_served_block_device_is_claimed(daemon, directory):
    """The kernel refuses what it refuses on a mounted disk: also between two workers."""
    api, image, mount = daemon.api, directory / "one.img", directory / "mount"
    mount.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 * _MIB)
    run("mkfs.ext4", "-qF", image)
    with loop_disk(image) as path:
        device = api.create(loop_spec("data", path, recovery={"trigger": "manual"}))
        # LVM opens a disk as a mapper does. The file system is a good one: only the claim keeps it from its mount.
        refusals = {
            ("mkfs.ext4", "-qF", path): "in use",
            ("mount", path, mount): "busy",
            ("dmsetup", "create", "theft", "--table", f"0 2048 linear {path} 0"): "busy",
        }

        def refused():
            for command, words in refusals.items():
                answer = run(*command, check=False)
                assert answer.returncode != 0 and words in answer.stdout, answer
            with pytest.raises(OSError):
                os.close(os.open(path, os.O_RDWR | os.O_EXCL))

        refused()
        disk = Disk(device["status"]["id"])
        daemon.kill_worker("data")
        api.wait_phase("data", "Quiesced")
        refused()
        daemon.kill()
        daemon.start()
        api.ask("POST", "/devices/data/recover?wait=ready&timeout=60s", 200)
        refused()
        disk.write(0, block("a"))
        api.delete("data")
        os.close(os.open(path, os.O_RDWR | os.O_EXCL))


def _sets_sector_size(path, size):
    command = ["losetup", "--sector-size", str(size), path]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_a_store_that_can_do_less_than_its_disk_has_promised(daemon, directory):
    """Openers send requests of 512 bytes, which blocks of 4096 cannot do."""
    api, image = daemon.api, directory / "one.img"
    with open(image, "wb") as file:
        file.truncate(16 * _MIB)
    with loop_disk(image) as path:
        disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
        assert disk.queue("logical_block_size") == 512
        disk.write(0, block("a"))
        _lose_everything(daemon)
        # Who claims it hinders, and the ring of a dead worker keeps its claim for a moment.
        wait_until(lambda: _sets_sector_size(path, 4096), "the larger sector size")
        before = image.read_bytes()
        write = disk.write_later(4096, block("b", 512))
        daemon.start()
        device = api.wait_for("data", lambda d: condition_of(d)["reason"] == "BlockSizeTooSmall", "refused")
        assert "The spec asks" not in condition_of(device)["message"]
        assert image.read_bytes() == before and not write.done
        # So does a worker that tries to open the store.
        wait_until(lambda: _sets_sector_size(path, 512), "the old sector size")
        api.wait_phase("data", "Live")
        assert write.result() is None
        assert disk.read(0, 4096) == block("a") and disk.read(4096, 512) == block("b", 512)
        api.delete("data")


@pytest.mark.variant
def test_two_parts_of_a_block_device_are_served_and_claimed(daemon, directory):
    """Both are served; the claim moves from the one to the other."""
    api, image = daemon.api, directory / "one.img"
    with open(image, "wb") as file:
        file.truncate(64 * _MIB)
    with loop_disk(image) as path:
        api.create(loop_spec("low", path, size="8MiB"))
        api.create(loop_spec("high", path, {"offset": "32MiB"}, size="8MiB"))
        api.delete("low")
        with pytest.raises(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_EXCL))
        pid = daemon.kill_worker("high")
        api.wait_other_worker("high", pid)
        api.delete("high")
        os.close(os.open(path, os.O_RDWR | os.O_EXCL))


def test_a_disk_that_loses_its_store_in_a_power_cut_of_the_store(daemon, ext4, directory):
    """The device behind the descriptor was removed, and came back as another one: its lasting identity finds it."""
    api, image = daemon.api, ext4 / "one.img"
    link = directory / "disk"
    with open(image, "wb") as file:
        file.write(block("x"))
        file.truncate(16 * _MIB)
    path = output("losetup", "--find", "--show", image)
    link.symlink_to(path)
    disk = Disk(api.create(loop_spec("data", link))["status"]["id"])
    assert _backing(api)["basis"] == "loop-file"
    _lose_everything(daemon)
    detach_loop(path)
    path = output("losetup", "--find", "--show", image)
    daemon.start()
    api.wait_phase("data", "Live")
    assert disk.read(0, 4096) == block("x")
    api.delete("data")
    detach_loop(path)
