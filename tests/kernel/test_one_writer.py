# SPDX-License-Identifier: MIT
"""One store has one writer, whatever lies between it and the names that lead to it: loop devices, partitions, dm,
overlays, disks of our own. Within one ublkd, and against what the kernel has attached or mounted."""

import contextlib
import os

import pytest

from harness.api import condition_of, loop_spec
from harness.disk import Disk, block
from harness.kernel_disks import detach_loop, dm_linear, held_partition, loop_disk, null_blk, partition_without_table
from harness.shell import output, run
from harness.silent_fs import silent_fs

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20


def _node(device):
    return f"/dev/ublkb{device['status']['id']}"


def _refused(api, spec, reason="BackingInUse"):
    """Check that the device fails for this reason. Remove it, and return the message."""
    problem = api.create(spec, status=422)
    ready = condition_of(api.get(spec["name"]))
    assert ready["reason"] == reason, ready
    api.delete(spec["name"])
    return problem["detail"]


def _served(api, *specs):
    """Check that all are served at the same time, and remove them."""
    for spec in specs:
        api.create(spec)
    for spec in reversed(specs):
        api.delete(spec["name"])


def _collide(api, one, other):
    """Whichever is served first, the other one is refused, in words that name the first."""
    for first, second in ((one, other), (other, one)):
        api.create(first)
        assert f"\"{first['name']}\"" in _refused(api, second)
        assert api.phase(first["name"]) == "Live"
        api.delete(first["name"])


def _warnings(api, name, reason):
    """The events of that reason."""
    events = api.ask("GET", f"/events?device={name}", 200, headers={"Accept": "application/json"})["items"]
    return [event for event in events if event["reason"] == reason and event["type"] == "Warning"]


@contextlib.contextmanager
def _mounted(device, where):
    where.mkdir(exist_ok=True)
    run("mount", device, where)
    try:
        yield
    finally:
        run("umount", where)


# ---- a file and the loop devices on it ----


def test_a_file_and_a_loop_device_on_it(api, file_of):
    """The loop device appears while the file is served: else the file would be refused for that already."""
    path = file_of()
    api.create(loop_spec("file", path))
    with loop_disk(path) as loop:
        assert '"file"' in _refused(api, loop_spec("loop", loop))
        assert '"file"' in _refused(api, loop_spec("reader", loop, readOnly=True))
        api.delete("file")
        api.create(loop_spec("loop", loop))
        assert '"loop"' in _refused(api, loop_spec("file", path))
        assert '"loop"' in _refused(api, loop_spec("reader", path, readOnly=True))
        api.delete("loop")


@pytest.mark.variant
def test_parts_of_a_file_and_of_loop_devices(api, file_of):
    """The offset of the loop device counts."""
    path = file_of()
    with loop_disk(path, "--offset", 32 * _MIB, "--sizelimit", 16 * _MIB) as loop:
        _served(
            api,
            loop_spec("low", path, size="32MiB"),
            loop_spec("middle", loop),
            loop_spec("high", path, {"offset": 48 * _MIB}),
        )
        assert f"/dev/{os.path.basename(loop)}" in _refused(api, loop_spec("all", path))
        assert _refused(api, loop_spec("edge", path, {"offset": 48 * _MIB - 4096}))
    nested = file_of("nested.img")
    with loop_disk(nested, "--offset", 16 * _MIB) as lower, loop_disk(lower, "--offset", 16 * _MIB) as upper:
        _served(api, loop_spec("upper", upper), loop_spec("low", lower, size="16MiB"))
        api.create(loop_spec("upper", upper))
        for path in (lower, nested):
            assert '"upper"' in _refused(api, loop_spec("lower", path, {"offset": 31 * _MIB}))
        api.delete("upper")


def test_an_attached_loop_device_keeps_its_file(api, file_of, directory):
    path = file_of()
    run("mkfs.ext4", "-q", path)
    with loop_disk(path) as loop:
        assert loop in _refused(api, loop_spec("data", path))
        assert loop in _refused(api, loop_spec("data", path, readOnly=True))
        with _mounted(loop, directory / "mnt"):
            message = _refused(api, loop_spec("data", path))
            assert loop in message and str(directory / "mnt") in message
        api.create(loop_spec("data", path), status=422)
    api.ask("POST", "/devices/data/recover", (200, 202))
    api.wait_phase("data", "Live")
    api.delete("data")


def test_readers_share_a_file(api, file_of):
    path = file_of()
    with loop_disk(path, "--read-only") as loop:
        assert loop in _refused(api, loop_spec("writer", path))
        _served(api, loop_spec("file", path, readOnly=True), loop_spec("loop", loop, readOnly=True))


def test_a_disk_that_exists_recovers_beside_a_loop_device(daemon, file_of):
    """Its I/O waits, so ublkd reports the other writer, and does not refuse the disk."""
    api, path = daemon.api, file_of()
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    with loop_disk(path) as loop:
        for _ in range(2):
            pid = daemon.kill_worker("data")
            api.wait_other_worker("data", pid)
        (warning,) = _warnings(api, "data", "BackingInUse")
        assert loop in warning["message"] and warning.get("count", 1) == 1
    assert disk.read(0, 4096) == block("a")
    api.delete("data")


@pytest.mark.variant
@pytest.mark.long
def test_a_loop_device_whose_file_system_does_not_answer(daemon, file_of, directory):
    """It is of no concern for a disk of another file: that one is made, and recovers."""
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    disk.write(0, block("a"))
    with silent_fs(directory / "silent") as silent, loop_disk(silent.path), silent.silent():
        for _ in range(2):
            api.wait_other_worker("data", daemon.kill_worker("data"))
            assert disk.read(0, 4096) == block("a")
        (warning,) = _warnings(api, "data", "BackingShareUnknown")
        assert "does not answer" in warning["message"]
        api.create(loop_spec("other", file_of("other.img")))
        api.delete("other")
    api.delete("data")


def test_a_file_of_fuse_is_reported_once(daemon, directory):
    """Who else writes to it is known to its server alone."""
    api = daemon.api
    with silent_fs(directory / "fuse") as fuse:
        disk = Disk(api.create(loop_spec("data", fuse.path))["status"]["id"])
        disk.write(0, block("a"))
        for _ in range(2):
            api.wait_other_worker("data", daemon.kill_worker("data"))
        assert disk.read(0, 4096) == block("a")
        (warning,) = _warnings(api, "data", "BackingShareUnknown")
        assert "lies on a file system whose server" in warning["message"] and warning.get("count", 1) == 1
        api.delete("data")


# ---- one file by two names, and parts of it ----


@pytest.mark.long
@pytest.mark.variant
@pytest.mark.parametrize("where", [pytest.param("tmpfs", marks=pytest.mark.storm), "ext4"])
def test_a_hard_link_is_the_same_file(api, file_of, directory, request, where):
    place = directory if where == "tmpfs" else request.getfixturevalue("ext4")
    path = file_of(where=place)
    link = path.with_suffix(".link")
    os.link(path, link)
    _collide(api, loop_spec("one", path), loop_spec("other", link))
    _collide(api, loop_spec("one", path), loop_spec("reader", link, readOnly=True))
    _served(api, loop_spec("low", path, size="32MiB"), loop_spec("high", link, {"offset": 32 * _MIB}))


@pytest.mark.variant
@pytest.mark.long
def test_a_bind_mount_shows_the_same_file(api, file_of, directory):
    """Of the file, and of the directory that it lies in."""
    path, other, where = file_of(), directory / "other.img", directory / "where"
    other.touch()
    where.mkdir()
    run("mount", "--bind", path, other)
    run("mount", "--bind", directory, where)
    try:
        for name in (other, where / path.name):
            assert str(name) != str(path)
            _collide(api, loop_spec("one", path), loop_spec("other", name))
    finally:
        run("umount", where)
        run("umount", other)


# MiB: offset and size. The way to the store differs between the kinds, the comparison of ranges does not.
_OVERLAPS = {"file": ((0, 9), (16, 1)), "block device": ((0, 9),)}


@pytest.mark.long
@pytest.mark.variant  # of test_two_devices_share_a_file_in_two_ranges
@pytest.mark.parametrize("kind", _OVERLAPS)
def test_ranges_that_overlap(api, file_of, kind):
    """One shared block is enough; disks side by side are served, and one cannot grow into the next."""
    path = file_of()
    with loop_disk(path) if kind == "block device" else contextlib.nullcontext(path) as store:
        low = loop_spec("low", store, {"offset": 8 * _MIB}, size="16MiB")
        for offset, size in _OVERLAPS[kind]:
            other = loop_spec("other", store, {"offset": offset * _MIB}, size=f"{size}MiB")
            _collide(api, low, other)
        _collide(api, low, loop_spec("edge", store, {"offset": 24 * _MIB - 4096}, size="1MiB"))
        _served(api, low, loop_spec("first", store, size="8MiB"), loop_spec("high", store, {"offset": 24 * _MIB}))
        api.create(low)
        api.create(loop_spec("high", store, {"offset": 24 * _MIB}))
        disk = Disk(api.get("low")["status"]["id"])
        answer = api.put({**low, "size": "17MiB"}, wait=None, status=(200, 202, 409, 422))
        if "spec" in answer:  # a kernel that cannot grow a disk gets another one, or none
            api.wait_for("low", lambda device: '"high"' in condition_of(device)["message"], "that cannot grow")
        else:
            assert '"high"' in answer["detail"]
        assert not disk.exists() or disk.size() == 16 * _MIB
        assert api.phase("high") == "Live"
        api.put(low)
        assert disk.size() == 16 * _MIB
        api.delete("high")
        api.delete("low")


# ---- dm ----


def test_dm_and_what_it_lies_on(api, file_of):
    """A mapper claims its disks, so the kernel refuses a second writer; a reader it lets through."""
    path = file_of()
    with loop_disk(path) as loop, dm_linear("low", loop, 0, 8 * _MIB) as low:
        assert _refused(api, loop_spec("disk", loop), "BackingFileBusy")
        _collide(api, loop_spec("low", low), loop_spec("reader", loop, readOnly=True))
        assert loop in _refused(api, loop_spec("file", path))


@pytest.mark.variant
def test_a_file_and_dm_far_above_it(api, file_of):
    path = file_of()
    api.create(loop_spec("file", path))
    with loop_disk(path) as loop, dm_linear("low", loop, 0, 8 * _MIB) as low:
        with dm_linear("top", low, 0, 4 * _MIB) as top:
            assert '"file"' in _refused(api, loop_spec("top", top))
            api.delete("file")
            _collide(api, loop_spec("top", top), loop_spec("reader", low, readOnly=True))


@pytest.mark.variant
def test_volumes_of_one_group_share_their_disks(api, file_of):
    """As every machine with LVM does."""
    with loop_disk(file_of("1.img")) as one, loop_disk(file_of("2.img")) as other:
        striped = f"0 32768 striped 2 128 {one} 65536 {other} 65536"
        with dm_linear("low", one, 0, 8 * _MIB) as low, dm_linear("high", one, 8 * _MIB, 8 * _MIB) as high:
            run("dmsetup", "create", "striped", "--table", striped)
            try:
                _served(
                    api, loop_spec("low", low), loop_spec("high", high), loop_spec("striped", "/dev/mapper/striped")
                )
                _served(api, loop_spec("one", low, size="4MiB"), loop_spec("two", low, {"offset": "4MiB"}))
            finally:
                run("dmsetup", "remove", "--retry", "striped")


# ---- disks of our own ----


@pytest.mark.variant
def test_a_disk_of_ours_below_dm_and_directly(api, file_of):
    base = _node(api.create(loop_spec("base", file_of())))
    with dm_linear("over", base, 0, 8 * _MIB) as over:
        _collide(api, loop_spec("over", over), loop_spec("reader", base, readOnly=True))
        assert _refused(api, loop_spec("direct", base), "BackingFileBusy")
    api.delete("base")


def test_a_disk_of_ours_on_a_disk_of_ours(api, file_of):
    """Is right, and one is enough."""
    path = file_of()
    base = _node(api.create(loop_spec("base", path)))
    above = Disk(api.create(loop_spec("above", base))["status"]["id"])
    above.write(4096, block("x"))
    assert '"above"' in _refused(api, loop_spec("again", base))
    assert '"base"' in _refused(api, loop_spec("file", path))
    in_use = api.ask("DELETE", "/devices/base", 409)["detail"]
    assert f"the device above (/dev/ublkb{above.number}, served by process " in in_use, in_use
    above.flush()
    api.delete("above")
    api.delete("base")
    with open(path, "rb") as file:
        file.seek(4096)
        assert file.read(4096) == block("x")


# ---- overlays ----


@contextlib.contextmanager
def _overlay(directory, relative=False):
    """An overlay; give its directory."""
    for name in ("lower", "upper", "work", "merged"):
        (directory / name).mkdir(exist_ok=True)
    top = "" if relative else f"{directory}/"
    options = f"lowerdir={top}lower,upperdir={top}upper,workdir={top}work"
    run("mount", "-t", "overlay", "-o", options, "overlay", directory / "merged", cwd=directory)
    try:
        yield directory / "merged"
    finally:
        run("umount", directory / "merged")


@pytest.fixture(name="layers")
def _layers(directory):
    layers = directory / "lay ers"  # the kernel writes a space as \\040
    layers.mkdir()
    return layers


@pytest.mark.variant
def test_an_overlay_and_its_upper_file(api, file_of, layers):
    for name in ("lower", "upper"):
        (layers / name / "deep").mkdir(parents=True)
    file_of("made.img", where=layers / "upper" / "deep")
    file_of("copied.img", where=layers / "lower" / "deep")
    with _overlay(layers) as merged:
        for name in ("made.img", "copied.img"):
            upper = layers / "upper" / "deep" / name
            merged_spec = loop_spec("merged", merged / "deep" / name)
            api.create(merged_spec)  # which copies it up
            assert upper.exists()
            assert '"merged"' in _refused(api, loop_spec("upper", upper))
            api.delete("merged")
            _collide(api, merged_spec, loop_spec("upper", upper))
            assert not _warnings(api, "merged", "BackingShareUnknown")
        with loop_disk(layers / "upper" / "deep" / "made.img") as loop:
            assert loop in _refused(api, loop_spec("merged", merged / "deep" / "made.img"))
        with loop_disk(merged / "deep" / "made.img") as loop:
            assert loop in _refused(api, loop_spec("upper", layers / "upper" / "deep" / "made.img"))


@pytest.mark.variant
def test_a_reader_of_an_overlay_and_the_lower_file(api, file_of, layers):
    (layers / "lower").mkdir()
    lower = file_of("disk.img", where=layers / "lower")
    with _overlay(layers) as merged:
        reader = loop_spec("merged", merged / "disk.img", readOnly=True)
        _collide(api, reader, loop_spec("lower", lower))
        _served(api, reader, loop_spec("lower", lower, readOnly=True))


def test_an_overlay_whose_layers_cannot_be_found_is_reported_once(daemon, file_of, layers):
    api = daemon.api
    with _overlay(layers, relative=True) as merged:
        api.create(loop_spec("data", file_of(where=merged)))
        pid = daemon.kill_worker("data")
        api.wait_other_worker("data", pid)
        (warning,) = _warnings(api, "data", "BackingShareUnknown")
        assert "overlay" in warning["message"] and warning.get("count", 1) == 1
        api.delete("data")


def test_an_ordinary_file_is_known(api, file_of, ext4):
    for path in (file_of(), file_of(where=ext4)):
        api.create(loop_spec("data", path))
        assert not _warnings(api, "data", "BackingShareUnknown")
        api.delete("data")


# ---- what is mounted ----


def test_a_disk_and_its_partition_that_is_mounted(api, file_of, directory):
    path = file_of()
    run("sfdisk", "-q", path, input="start=2048\n")
    with loop_disk(path, "--partscan") as loop, held_partition(loop, 1) as partition:
        run("mkfs.ext4", "-q", partition)
        with _mounted(partition, directory / "mnt"):
            assert _refused(api, loop_spec("disk", loop), "BackingFileBusy")
        # Of two disks of ours the kernel itself refuses the second: the first has claimed the whole device.
        for first, second in (("disk", loop), ("partition", partition)), (("partition", partition), ("disk", loop)):
            api.create(loop_spec(*first))
            assert _refused(api, loop_spec(*second), "BackingFileBusy")
            api.delete(first[0])


def test_a_partition_and_its_disk_that_is_mounted(api, directory):
    with null_blk() as disk:
        run("mkfs.ext4", "-q", disk)
        with _mounted(disk, directory / "mnt"), partition_without_table(disk, 1 << 20, 8 << 20) as partition:
            assert _refused(api, loop_spec("partition", partition), "BackingFileBusy")


@pytest.mark.variant
def test_a_loop_device_on_a_disk_that_is_mounted(api, directory):
    """The loop device claims nothing of its disk."""
    with null_blk() as disk:
        run("mkfs.ext4", "-q", disk)
        with loop_disk(disk) as loop:
            with _mounted(disk, directory / "mnt"):
                assert _refused(api, loop_spec("loop", loop))
            assert loop in _refused(api, loop_spec("disk", disk))
            api.create(loop_spec("loop", loop))
            assert '"loop"' in _refused(api, loop_spec("reader", disk, readOnly=True))
            api.delete("loop")


# ---- what is too deep ----


@pytest.mark.variant
def test_a_stack_that_is_too_deep_is_refused(api, file_of):
    loops = [output("losetup", "--find", "--show", file_of())]

    def pile_up(height):
        while len(loops) < height:
            loops.append(output("losetup", "--find", "--show", loops[-1]))
        return loop_spec("data", loops[-1])

    try:
        _served(api, pile_up(8))
        assert _refused(api, pile_up(20), "BackingStackUnreadable")
    finally:
        for loop in reversed(loops):
            detach_loop(loop)
