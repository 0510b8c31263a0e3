# SPDX-License-Identifier: MIT
"""No write of a dead worker may reach the backing store after its successor has begun.

The store is slow for writes that arrive while the test makes it so. A worker is
killed with such writes on their way; they are replayed by its successor, the
application gets their answers, and writes newer data. When the old
worker's writes land at last, the newer data must still be there.

The flag is taken away before the recovery: replayed writes that were as slow
as the first ones would land behind them, and hide what is to be seen.
"""

import os
import pathlib
import signal

import pytest

from harness import programs, ublk
from harness.api import loop_spec, null_spec
from harness.disk import BLKDISCARD, BLKZEROOUT, Disk, block
from harness.kernel_disks import null_blk
from harness.wait import holds_for, wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_BLOCKS = 5
_SIZE = 4096
_APART = 64 << 10  # neighbours would be merged into one write
_PART = 1 << 20  # of the store, for each path
_LATE = 8  # seconds; what is to overtake them must come sooner
_FUA = slice(1, _BLOCKS, 2)
_PLAIN = slice(2, _BLOCKS, 2)


def _write(disk, letter, blocks, flags=0):
    return [disk.write_later(i * _APART, block(letter), os.O_DIRECT | flags) for i in range(_BLOCKS)[blocks]]


def _start_older(disk):
    return _write(disk, "o", _FUA, os.O_DSYNC) + _write(disk, "o", _PLAIN)


def _assert_done(requests):
    assert [request.result() for request in requests] == [None] * len(requests)


def _reasons(daemon, name):
    return [event["reason"] for event in daemon.events(name)]


def _survivors(daemon, store, paths, late, zeroing=None):
    """Go through it, with a disk for each path; return which blocks each is found to have in the end: n is newer.

    With one more disk that is discarded or zeroed. Its worker's fallocate() runs on a thread of the kernel, which
    the worker's death waits for, and that would be a fence to other requests. The kernel does one at a time.
    """
    api = daemon.api
    disks = {}
    for part, name in enumerate([*paths, "zeroed"] if zeroing else paths):
        where = {"target": {"offset": part * _PART}, "size": _PART}
        path = name if name in paths else "copy"
        spec = loop_spec(name, store.path, **where, queues=1, dataPath=path, recovery={"onCrash": "reissue"})
        disks[name] = Disk(api.create(spec)["status"]["id"])
    for disk in disks.values():
        disk.wait_timeout_set()
    store.slow(late)
    older = [write for path in paths for write in _start_older(disks[path])]
    if zeroing:
        older.append(disks["zeroed"].zero_later(zeroing, 0, _SIZE))
    store.wait_arrived(len(older))
    pids = {name: daemon.kill_worker(name) for name in disks}
    store.fast()
    _assert_done(older)
    for name, pid in pids.items():
        api.wait_other_worker(name, pid)
        assert "WorkerBrokeProtocol" not in _reasons(daemon, name)
    _assert_done([write for disk in disks.values() for write in _write(disk, "n", slice(_BLOCKS))])
    store.land()
    store.wait_landed()
    survivors = {}
    letters = {block("o"): "o", block("n"): "n", bytes(_SIZE): "0"}
    for name, disk in disks.items():
        survivors[name] = "".join(letters[disk.read(i * _APART, _SIZE)] for i in range(_BLOCKS))
        api.delete(name)
    return survivors


_HAS = ublk.features()
_PATHS = ["copy", "user-copy"] + (["zero-copy"] if _HAS["AUTO_BUF_REG"] else [])


_batch = pytest.mark.parametrize("batch", [False, *([pytest.param(True, marks=pytest.mark.both)] if _HAS["BATCH_IO"] else [])])


def _daemon(make_daemon, batch):
    return make_daemon(more_options=[] if batch else ["--ignore-feature=BATCH_IO"]).start()


def _has_a_table(task):
    """A thread of io-wq has that of the thread whose requests it takes, and stays when it has had one."""
    try:
        return not (task / "comm").read_text(encoding="ascii").startswith("iou-")
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return False


def _files_of_rings(pid):
    """For each ring of a process, the names of the files that it holds; Linux 6.12 says no more than the name. Each is in
    the table of the thread that made it."""
    tasks = filter(_has_a_table, pathlib.Path(f"/proc/{pid}/task").iterdir())
    texts = [path.read_text(encoding="utf-8") for task in tasks for path in task.glob("fdinfo/*")]
    lists = [text.partition("UserFiles:")[2].partition("UserBufs:")[0] for text in texts if "UserFiles:" in text]
    return [[line.partition(": ")[2].rpartition("/")[2] for line in text.splitlines()[1:]] for text in lists]


def _wait_held(pid, name, firsts):
    """Wait until the first files of the rings are these: a ring that is busy at the moment does not show it."""
    wait_until(
        lambda: [files[:1] for files in _files_of_rings(pid)] == firsts,
        lambda: f"{name} with {firsts} in its rings, but {_files_of_rings(pid)}",
    )


@pytest.mark.variant  # it shows what the tests of late writes need
@_batch
def test_rings_hold_the_character_device(batch, ext4, file_of, make_daemon):
    """The rings do, unless no I/O outlives the process, and a command is about many requests."""
    daemon = _daemon(make_daemon, batch)
    with null_blk() as backing:
        specs = {
            "null": null_spec("null", dataPath="copy"),
            "memory": loop_spec("memory", file_of("memory"), dataPath="copy"),
            "memory-user-copy": loop_spec("memory-user-copy", file_of("user-copy"), dataPath="user-copy"),
            "disk": loop_spec("disk", backing, dataPath="copy"),
            "direct": loop_spec("direct", file_of("direct", where=ext4), dataPath="copy"),
            "buffered": loop_spec("buffered", file_of("buffered", where=ext4), {"directIo": "off"}, dataPath="copy"),
        }
        if _HAS["AUTO_BUF_REG"]:
            specs["memory-zero-copy"] = loop_spec("memory-zero-copy", file_of("zero-copy"), dataPath="zero-copy")
        for name, spec in specs.items():
            device = daemon.api.create({**spec, "queues": 2})
            assert device["status"]["batch"] == batch
            first = [] if batch and name == "memory" else [f"ublkc{device['status']['id']}"]
            _wait_held(daemon.worker_pid(name), name, [first, first])
            daemon.api.delete(name)


@pytest.mark.long
@_batch
def test_a_late_write_does_not_overwrite_newer_data(batch, store, make_daemon):
    """Plain or with FUA, nor does a late discard or a late write of zeroes."""
    daemon = _daemon(make_daemon, batch)
    survivors = _survivors(daemon, store, _PATHS, _LATE, BLKZEROOUT if batch else BLKDISCARD)
    assert survivors == {name: "n" * _BLOCKS for name in [*_PATHS, "zeroed"]}


def _is_zombie(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


@pytest.mark.long
@pytest.mark.parametrize("starts_again", [False, pytest.param(True, marks=pytest.mark.variant)])
def test_a_worker_that_waits_for_its_store_as_it_exits_broke_nothing(starts_again, store, daemon):
    """Its main thread ends at once, and with it the channel and the socket, long before the thread that waits."""
    disk = Disk(daemon.api.create(loop_spec("data", store.path, queues=1, recovery={"onCrash": "reissue"}))["status"]["id"])
    disk.wait_timeout_set()
    pid = daemon.worker_pid("data")
    with store.holding():
        zeroing = disk.zero_later(BLKZEROOUT, 0, _SIZE)
        store.wait_arrived(1)
        if starts_again:
            daemon.kill()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: _is_zombie(pid), "the end of the main thread")
        if starts_again:
            daemon.start()
        holds_for(lambda: _is_zombie(pid), 6, "its other thread waits")  # longer than the time for one that stays
    daemon.api.wait_other_worker("data", pid)
    _assert_done([zeroing])
    assert "WorkerBrokeProtocol" not in _reasons(daemon, "data")
    daemon.api.delete("data")


@pytest.mark.long
@pytest.mark.variant  # it shows that those beside it can fail
def test_without_the_fence_newer_data_is_lost(store, make_daemon):
    """Proves that the test above can fail: the same steps, with the fence taken out.

    By copy: with zero copy the pages of the late write belong to the request,
    and the driver waits for them by itself. Nothing waits for the late writes
    here, so they are as late as it takes for the newer ones to be done.
    """
    daemon = make_daemon(worker=programs.worker_without_fence()).start()
    found = _survivors(daemon, store, ["copy"], 600)["copy"]
    assert "o" in found[_PLAIN] and "o" in found[_FUA], found
