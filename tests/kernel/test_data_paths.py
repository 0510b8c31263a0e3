# SPDX-License-Identifier: MIT
"""Every data path: no byte is lost, whichever process is killed, whatever the sizes."""

import time

import pytest

from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.fio import Fio
from harness.processes import threads_of
from harness.shell import run
from harness.wait import holds_for
from harness.ways import HAS, Way, main_ways, of_this_kernel, ways

_KILLS = 2
_KILLS_IN_MEMORY = 10
_SERVED = 1.2  # seconds; workers that die faster than this in a row are taken for broken, and back off

# After errors of reads and writes: EIO, and EREMOTEIO of a disk that fails I/O.
_GOES_ON = ["--continue_on_error=io", "--ignore_error=5:121,5:121"]


_MODES = ["reissue", "queue", "none"] + (["fail"] if HAS["USER_RECOVERY_FAIL_IO"] else [])
_KEEPING = [mode for mode in _MODES if mode != "none"]  # the disk over a crash
_PART = 1 << 20  # of the store, for each of them


def _load(way, api, file_of, directory, modes, where=None):
    """{mode: fio on a disk of that mode}: mixed sizes, none of them aligned to more than a block, on direct I/O.

    What is read back is read early: by the last kill a job may have written 50 blocks.
    """
    load = {}
    for mode in modes:
        spec = loop_spec(mode, file_of(name=mode, where=where), queues=2, recovery={"onCrash": mode})
        more = ["--bsrange=512-256k", "--bs_unaligned=0", "--size=24M", "--verify_backlog=16"]
        more += [] if mode == "reissue" else _GOES_ON
        load[mode] = Fio(directory, way.create(api, spec), name=mode, jobs=2, size="24M", more=more)
    return load


def _fio_over_kills(way, daemon, load, kills=_KILLS):
    """The workers die under it: each write that was answered without an error reads as it was written."""
    try:
        for fio in load.values():
            fio.wait_running()
        for kill in range(kills):
            pids = {mode: daemon.kill_worker(mode) for mode in load}
            for mode, pid in pids.items():
                way.check(daemon.api.wait_other_worker(mode, pid))
            live = time.monotonic()
            for fio in load.values():
                fio.wait_running()
            if kills > _KILLS:
                served = _SERVED - (time.monotonic() - live)
                holds_for(lambda: all(fio.running for fio in load.values()), served, f"fio, after kill {kill + 1}")
        for mode, fio in load.items():
            fio.finish().assert_clean(errors=mode != "reissue")
    finally:
        for fio in load.values():
            fio.kill()
    for mode in load:
        daemon.api.delete(mode)


@pytest.mark.long
@pytest.mark.storm
@ways
def test_fio_over_kills(way, ext4, file_of, make_daemon, directory):
    """In every mode that keeps the disk, all at the same time."""
    daemon = way.start(make_daemon)
    _fio_over_kills(way, daemon, _load(way, daemon.api, file_of, directory, _KEEPING, where=ext4))


@pytest.mark.long
@pytest.mark.both
@of_this_kernel(Way("copy", batch=HAS["BATCH_IO"]))
def test_fio_over_kills_in_memory(way, file_of, make_daemon, directory):
    """Short requests are moved at once there, longer ones by the ring: both kinds are under way at a death.

    With batches no ring holds /dev/ublkcN there: the end of the process is the
    fence against late writes.
    """
    daemon = way.start(make_daemon)
    _fio_over_kills(way, daemon, _load(way, daemon.api, file_of, directory, ["reissue"]), _KILLS_IN_MEMORY)


@pytest.mark.long
@ways
def test_sizes_across_every_limit(way, ext4, file_of, make_daemon, directory):
    """From one block to several of the largest requests, from memory that is not aligned to pages."""
    daemon = way.start(make_daemon)
    disk = way.create(daemon.api, loop_spec("data", file_of(where=ext4), maxIoSize="256KiB"))
    run(
        "fio", "--name=sizes", f"--filename={disk.path}", "--size=12M", "--rw=randwrite", "--direct=1",
        "--bssplit=512/20:3k/20:4k/10:68k/20:256k/10:260k/10:1536k/10", "--bs_unaligned=0",
        "--ioengine=libaio", "--iodepth=8", "--iomem_align=512", "--verify=crc32c", "--verify_fatal=1",
        "--verify_backlog=32", "--serialize_overlap=1", "--randrepeat=0", cwd=directory,
    )
    counted = daemon.api.ask("GET", "/devices/data/stats", 200)["total"]["unregistered"]
    assert counted > 100 if way.worker else counted == 0, f"{counted} requests not registered by the driver"
    daemon.api.delete("data")


@pytest.mark.long
@ways
def test_discard_larger_than_a_backing_call(way, ext4, file_of, make_daemon):
    """Of almost the whole disk at once: all of it reads as zeroes, and what lies around it is untouched."""
    daemon = way.start(make_daemon)
    size = 3 << 30
    path = file_of(where=ext4, size=size)
    disk = way.create(daemon.api, loop_spec("data", path))
    places = [0, (1 << 30) - 4096, 1 << 30, (2 << 30) + 8192, size - 4096]
    for place in places:
        disk.write(place, block("w"))
    run("blkdiscard", "--offset", "4096", "--length", str(size - 8192), disk.path)
    assert [disk.read(place, 4096)[:1] for place in places] == [b"w", b"\0", b"\0", b"\0", b"w"]
    disk.write(places[2], block("w"))
    run("blkdiscard", "--zeroout", "--offset", str((1 << 30) - (32 << 20)), "--length", str(64 << 20), disk.path)
    assert [disk.read(place, 4096)[:1] for place in places] == [b"w", b"\0", b"\0", b"\0", b"w"]
    daemon.api.delete("data")


def _assert_kept(disk, on_crash):
    """Check the disk after the crash: a write in flight may be lost if the writer got an error."""
    disk.write(128 << 10, block("c"))
    assert disk.read(0, 4096) == block("a") and disk.read(128 << 10, 4096) == block("c"), on_crash
    found = disk.read(64 << 10, 4096)
    assert found == block("b") or (on_crash != "reissue" and found == bytes(4096)), on_crash


@pytest.mark.long
@main_ways
def test_a_crash_in_every_mode(way, make_daemon, store):
    """What readers and writers see whose requests are in the workers' hands when these die.

    A disk for each mode, each in its part of one store, and all at the same time.
    """
    daemon = way.start(make_daemon)
    api = daemon.api
    disks = {}
    for part, mode in enumerate(_MODES):
        where = {"target": {"offset": part * _PART}, "size": _PART}
        disks[mode] = way.create(api, loop_spec(mode, store.path, **where, queues=1, recovery={"onCrash": mode}))
        disks[mode].write(0, block("a"))
    with store.holding():
        writes = {mode: disk.write_later(64 << 10, block("b")) for mode, disk in disks.items()}
        store.wait_arrived(len(writes))
        pids = {mode: daemon.kill_worker(mode) for mode in disks}
    results = {mode: write.result() for mode, write in writes.items()}
    assert results == {mode: None if mode == "reissue" else "EIO" for mode in _MODES}
    devices = {mode: api.wait_other_worker(mode, pid) for mode, pid in pids.items()}
    store.wait_landed()
    for mode, device in devices.items():
        way.check(device)
        _assert_kept(Disk(device["status"]["id"]), mode)
        api.delete(mode)


@pytest.mark.long
def test_user_copy_needs_no_other_thread(daemon):
    """/dev/ublkcN is open with O_NONBLOCK: else io_uring gives every copy to a thread of its own."""
    device = daemon.api.create(null_spec("data", queues=1, dataPath="user-copy"))
    disk = Disk(device["status"]["id"])
    disk.write(0, block("w", 256 << 10))
    assert len(disk.read(0, 256 << 10)) == 256 << 10
    names = list(threads_of(daemon.worker_pid("data")).values())
    assert "queue-0" in names and not any(name.startswith("iou-wrk") for name in names), names
    daemon.api.delete("data")


@pytest.mark.long
def test_auto_takes_the_fastest_and_reports_why(daemon, ext4, file_of):
    """Zero copy for direct I/O where the kernel registers the pages, one copy for the page cache."""
    api = daemon.api
    features = set(api.ask("GET", "/host", 200)["ublk"]["features"])
    direct = api.create(loop_spec("direct", file_of(where=ext4), target={"directIo": "on"}))["status"]
    cached = api.create(loop_spec("cached", file_of(where=ext4, name="cached"), target={"directIo": "off"}))["status"]
    # A tmpfs takes O_DIRECT, and copies all the same.
    memory = api.create(loop_spec("memory", file_of(), target={"directIo": "on"}))["status"]
    assert direct["dataPath"] == ("zero-copy" if "AUTO_BUF_REG" in features else "copy")
    assert cached["dataPath"] == memory["dataPath"] == "copy"
    for status in (direct, cached, memory):
        assert status["batch"] == ("BATCH_IO" in features) and "auto" in status["dataPathReason"]
    for name in ("direct", "cached", "memory"):
        api.delete(name)


def test_targets_report_their_paths(api):
    """GET /targets, and what becomes of a disk that asks for another one."""
    paths = {target["name"]: target["dataPaths"] for target in api.ask("GET", "/targets", 200)["items"]}
    assert paths["loop"] == ["copy", "user-copy", "zero-copy"] and paths["null"] == ["copy", "user-copy"]
    problem = api.create(null_spec("data", dataPath="zero-copy"), status=422)
    assert "dataPath" in problem["detail"] and '"zero-copy"' in problem["detail"]


def test_a_path_that_the_kernel_lacks(make_daemon, file_of):
    """It is refused with a sentence, and `auto` does without."""
    daemon = make_daemon(more_options=["--ignore-feature=SUPPORT_ZERO_COPY", "--ignore-feature=BATCH_IO"]).start()
    problem = daemon.api.create(loop_spec("data", file_of(), dataPath="zero-copy"), status=422)
    assert "dataPath" in problem["detail"]
    status = daemon.api.put(loop_spec("data", file_of()))["status"]
    assert status["dataPath"] == "copy" and status["batch"] is False
    daemon.api.delete("data")
