# SPDX-License-Identifier: MIT
"""A backing file that is cut off under its disk: the disk fails, and never returns zeroes or old data for it."""

import errno
import os
import random
import signal
import threading

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec
from harness.disk import BLKDISCARD, BLKZEROOUT, Background, Disk, block, read, write
from harness.kernel_disks import dm_linear, loop_disk
from harness.marks import variants
from harness.processes import workers
from harness.shell import run
from harness.wait import wait_until
from harness.ways import Way, of_this_kernel, ways

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_SIZE = 8 * _MIB
_BLOCK = 4096
_WRITERS = 4
_EVERY_WAY_IN_MEMORY = of_this_kernel(Way("copy"), Way("copy", batch=True), Way("user-copy"))


class _Client(threading.Thread):
    """Writes blocks of its own over and over, and reads back what was acknowledged."""

    def __init__(self, disk, index):
        super().__init__(daemon=True)
        self._path = disk.path
        self._random = random.Random(index)
        self._blocks = list(range(index, _SIZE // _BLOCK, _WRITERS))
        self._ended = threading.Event()
        self.index = index
        self.acknowledged = {}  # block: what it holds
        self.failed = set()  # blocks with a write that failed: they hold either of two
        self.rounds = 0
        self.wrong = None

    def stop(self):
        """End it."""
        self._ended.set()
        self.join(60)

    def run(self):
        while not self._ended.is_set() and not self.wrong:
            self._write(self._random.choice(self._blocks))
            self._read(self._random.choice(self._blocks))
            self.rounds += 1

    def _write(self, number):
        data = block(chr(ord("a") + self._random.randrange(26)))
        try:
            write(self._path, number * _BLOCK, data)
        except OSError as error:
            assert error.errno == errno.EIO, error
            self.failed.add(number)
        else:
            self.acknowledged[number] = data

    def _read(self, number):
        if number not in self.acknowledged or number in self.failed:
            return
        try:
            data = read(self._path, number * _BLOCK, _BLOCK)
        except OSError as error:
            assert error.errno == errno.EIO, error
            return
        if data != self.acknowledged[number]:
            self.wrong = f"block {number} reads {data[:1]}, and {self.acknowledged[number][:1]} was acknowledged"


def _cut_under_load(disk, path, end):
    clients = [_Client(disk, index) for index in range(_WRITERS)]
    for client in clients:
        client.start()
    try:
        wait_until(lambda: all(client.rounds >= 50 for client in clients), "I/O of all clients")
        os.truncate(path, end)
        wait_until(
            lambda: all(client.failed or client.wrong for client in clients), "an error for each client"
        )
    finally:
        for client in clients:
            client.stop()
    assert [client.wrong for client in clients] == [None] * _WRITERS
    return clients


def _kept(clients):
    """Some of the blocks whose last write was acknowledged."""
    return [number for client in clients for number in sorted(client.acknowledged.keys() - client.failed)[-5:]]


def _assert_all_fail(disk, blocks):
    for number in blocks:
        try:
            data = disk.read(number * _BLOCK, _BLOCK)
        except OSError as error:
            assert error.errno == errno.EIO, error
        else:
            assert False, f"block {number} reads {data[:1]}"
    for result in (disk.write_later(0, block("z")).result(), disk.write_later(_SIZE - _BLOCK, block("z")).result()):
        assert result == "EIO"


@ways
@pytest.mark.storm
def test_cut_off_under_load(way, ext4, file_of, make_daemon):
    """Writes in flight extend the file again: the gap must not read as zeroes."""
    daemon = way.start(make_daemon)
    for end in (_SIZE // 2, 3 * _BLOCK + 100):
        path = file_of(where=ext4, size=_SIZE, name=f"{end}.img")
        disk = way.create(daemon.api, loop_spec("data", path, queues=2))
        clients = _cut_under_load(disk, path, end)
        _assert_all_fail(disk, _kept(clients))
        daemon.api.delete("data", force=True)


@_EVERY_WAY_IN_MEMORY
def test_cut_off_under_load_in_memory(way, file_of, make_daemon):
    """Short requests are moved by system calls there."""
    daemon = way.start(make_daemon)
    path = file_of(size=_SIZE)
    disk = way.create(daemon.api, loop_spec("data", path, queues=2))
    clients = _cut_under_load(disk, path, _SIZE // 2)
    _assert_all_fail(disk, _kept(clients))
    daemon.api.delete("data", force=True)


@ways
def test_a_write_behind_the_end_does_not_hide_it(way, ext4, file_of, make_daemon):
    """No read has met the end of the file yet."""
    daemon = way.start(make_daemon)
    path = file_of(where=ext4, size=_SIZE)
    disk = way.create(daemon.api, loop_spec("data", path, queues=1))
    disk.write(5 * _MIB, block("a"))
    os.truncate(path, 4 * _MIB)
    assert disk.write_later(6 * _MIB, block("b")).result() == "EIO"
    assert disk.read_later(5 * _MIB, _BLOCK).result() == "EIO"
    daemon.api.delete("data", force=True)


_FIRST = {
    "write": lambda disk: disk.write_later(6 * _MIB, block("b")),
    "durable write": lambda disk: disk.write_later(6 * _MIB, block("b"), os.O_DIRECT | os.O_DSYNC),
    "flush": lambda disk: Background(disk.flush),
    "discard": lambda disk: disk.zero_later(BLKDISCARD, 6 * _MIB, _MIB),
    "zeroes": lambda disk: disk.zero_later(BLKZEROOUT, 6 * _MIB, _MIB),
}


@pytest.mark.parametrize("more", [{}, pytest.param({"directIo": "off"}, marks=pytest.mark.variant), pytest.param({"offset": "1MiB"}, marks=pytest.mark.variant)],
                         ids=["direct", "cached", "offset"])
def test_the_first_request_after_it_fails(more, ext4, file_of, daemon):
    """The first request fails, of each kind, and all requests after it: none may succeed, or extend the file."""
    offset = _MIB if "offset" in more else 0
    for name, first in _FIRST.items():
        path = file_of(where=ext4, size=offset + _SIZE)
        disk = Disk(daemon.api.create(loop_spec("data", path, more))["status"]["id"])
        disk.write(5 * _MIB, block("a"))
        os.truncate(path, offset + 4 * _MIB)
        assert first(disk).result() == "EIO", name
        assert [each(disk).result() for each in _FIRST.values()] == ["EIO"] * len(_FIRST), name
        assert disk.read_later(5 * _MIB, _BLOCK).result() == "EIO", name
        daemon.api.delete("data", force=True)


@pytest.mark.parametrize(
    "first,on_full", [("read", "error"), ("write", "wait"), *variants(("read", "wait"), ("write", "error"))]
)
def test_a_volume_that_is_made_smaller(file_of, daemon, first, on_full):
    """As lvreduce does it. A write behind its end finds no room, and must not wait for any."""
    with loop_disk(file_of(size=_SIZE)) as below, dm_linear("cut", below, 0, _SIZE) as path:
        disk = Disk(daemon.api.create(loop_spec("data", path, onFull=on_full))["status"]["id"])
        disk.write(5 * _MIB, block("a"))
        run("dmsetup", "reload", "cut", "--table", f"0 {4 * _MIB // 512} linear {below} 0")
        run("dmsetup", "resume", "cut")
        if first == "write":
            assert disk.write_later(6 * _MIB, block("b")).result() == "EIO"
        assert disk.read_later(5 * _MIB, _BLOCK).result() == "EIO"
        assert disk.write_later(0, block("b")).result() == "EIO"
        device = daemon.api.wait_for(
            "data", lambda device: condition_of(device, "BackingWhole"), "with a condition BackingWhole"
        )
        assert condition_of(device, "BackingWhole")["reason"] == "BackingTruncated"
        assert condition_of(device, "Space") is None
        daemon.api.delete("data", force=True)


def test_it_stays_cut_off_for_the_next_worker(daemon, ext4, file_of):
    """A file that was given its size back has zeroes where the data was."""
    path = file_of(where=ext4, size=_SIZE)
    device = daemon.api.create(loop_spec("data", path))
    disk = Disk(device["status"]["id"])
    disk.write(5 * _MIB, block("a"))
    os.truncate(path, 4 * _MIB)
    assert disk.read_later(5 * _MIB, _BLOCK).result() == "EIO"
    os.truncate(path, _SIZE)
    pid = daemon.kill_worker("data")
    daemon.api.wait_other_worker("data", pid)
    assert disk.read_later(5 * _MIB, _BLOCK).result() == "EIO"
    assert disk.write_later(0, block("b")).result() == "EIO"
    daemon.api.delete("data", force=True)


def _wait_reason(daemon, reason):
    return daemon.api.wait_for("data", lambda device: condition_of(device)["reason"] == reason, f"waits with {reason}")


def _assert_cut_off(daemon, disk):
    """All I/O fails, as the status says, until the loss is accepted."""
    for offset in (0, 5 * _MIB):
        assert disk.read_later(offset, _BLOCK).result() == "EIO"
        assert disk.write_later(offset, block("b")).result() == "EIO"
    device = daemon.api.wait_for("data", lambda device: condition_of(device, "BackingWhole"), "reports the cut")
    whole = condition_of(device, "BackingWhole")
    assert whole["status"] == "False" and whole["reason"] == "BackingTruncated", whole
    assert device["status"]["writeErrors"] in whole["message"]
    assert daemon.metric("ublkd_device_backing_truncated", "data") == 1


def _assert_one_event(daemon):
    assert [event["reason"] for event in daemon.events("data")].count("BackingTruncated") == 1


def _accept(daemon, disk):
    token = daemon.api.get("data")["status"]["writeErrors"]
    daemon.ctl("restart", f"--accept-write-errors={token}", "data")
    assert condition_of(daemon.api.get("data"), "BackingWhole") is None
    disk.write(5 * _MIB, block("c"))
    assert disk.read(5 * _MIB, _BLOCK) == block("c")


@pytest.fixture(name="lone")
def fixture_lone(daemon, ext4, file_of):
    """A disk that is recovered when it is asked for, with data."""

    class Lone:
        """Its disk and its file."""

        def __init__(self, offset=0, **more):
            self.path = file_of(where=ext4, size=_SIZE + offset)
            target = {"offset": f"{offset}"} if offset else None
            device = daemon.api.create(loop_spec("data", self.path, target, recovery={"trigger": "manual"}, **more))
            self.disk = Disk(device["status"]["id"])
            self.disk.write(5 * _MIB, block("a"))

        def lose_worker(self):
            """Kill the worker, and wait until the disk has no worker."""
            daemon.kill_worker("data")
            daemon.api.wait_phase("data", "Quiesced")

    yield Lone
    if "data" in daemon.api.names():
        daemon.api.delete("data", force=True)


def _recover(daemon):
    daemon.api.ask("POST", "/devices/data/recover", (200, 202))


@pytest.mark.parametrize(
    "end, offset, reason",
    [*variants((0, 0, "BackingFileEmpty")), (4 * _MIB, 0, "BackingTooSmall"), (_MIB // 2, _MIB, "OffsetBeyondEnd")],
)
def test_cut_off_while_it_has_no_worker(daemon, lone, end, offset, reason):
    """The worker that finds it refuses; the worker that follows must not serve zeroes."""
    it = lone(offset)
    it.lose_worker()
    os.truncate(it.path, end)
    _recover(daemon)
    _wait_reason(daemon, reason)
    os.truncate(it.path, _SIZE + offset)
    _recover(daemon)
    daemon.api.wait_phase("data", "Live")
    _assert_cut_off(daemon, it.disk)
    _assert_one_event(daemon)
    _accept(daemon, it.disk)


def test_cut_off_between_two_ublkd(daemon, lone):
    """The next ublkd finds the fault, also if the ublkd that refused has died, or if none was running."""
    it = lone()
    daemon.kill()
    os.kill(next(iter(workers())), signal.SIGKILL)
    os.truncate(it.path, 4 * _MIB)
    daemon.start()
    daemon.api.wait_phase("data", "Quiesced")
    _recover(daemon)
    _wait_reason(daemon, "BackingTooSmall")
    daemon.kill()
    os.truncate(it.path, _SIZE)
    daemon.start()
    _recover(daemon)
    daemon.api.wait_phase("data", "Live")
    _assert_cut_off(daemon, it.disk)
    _accept(daemon, it.disk)


def test_an_accepted_loss_is_found_again_while_the_file_is_short(daemon, lone):
    """A consent covers only the losses that were found before."""
    it = lone()
    it.lose_worker()
    os.truncate(it.path, 4 * _MIB)
    _recover(daemon)
    _wait_reason(daemon, "BackingTooSmall")
    token = daemon.api.get("data")["status"]["writeErrors"]
    daemon.api.ask("POST", f"/devices/data/restart?accept-write-errors={token}", (200, 202))
    daemon.api.wait_for("data", lambda device: device["status"]["writeErrors"] not in (None, token), "a loss of its own")
    os.truncate(it.path, _SIZE)
    _recover(daemon)
    daemon.api.wait_phase("data", "Live")
    assert it.disk.read_later(5 * _MIB, _BLOCK).result() == "EIO"


@pytest.mark.parametrize("end, reason", [(0, "BackingFileEmpty"), *variants((4 * _MIB, "BackingTooSmall"))])
def test_cut_off_and_found_by_a_restart(daemon, lone, end, reason):
    """The restart is refused, and the worker that serves on must not serve zeroes later."""
    it = lone()
    pid = daemon.worker_pid("data")
    os.truncate(it.path, end)
    problem = daemon.api.restart("data", status=422)
    assert problem["reason"] == "CannotRestart", (problem, reason)
    os.truncate(it.path, _SIZE)
    _assert_cut_off(daemon, it.disk)
    _assert_one_event(daemon)
    assert daemon.worker_pid("data") == pid
    _accept(daemon, it.disk)


@pytest.mark.both
def test_cut_off_and_found_by_a_growth(daemon, lone):
    """The growth is refused; the file is then made as large as the refusal asked for."""
    if not ublk.features()["UPDATE_SIZE"]:
        assert os.uname().release.startswith("6.12"), "no disk grows while it is served, on a kernel that can do it"
        return
    it = lone()
    spec = daemon.api.get("data")["spec"]
    os.truncate(it.path, 4 * _MIB)
    daemon.api.ask("PUT", "/devices/data?wait=ready&timeout=60s", 422, json={**spec, "size": "16MiB"})
    os.truncate(it.path, 2 * _SIZE)
    _assert_cut_off(daemon, it.disk)


@pytest.mark.parametrize(
    "more",
    [pytest.param({}, id="any-size"), pytest.param({"size": f"{_SIZE}"}, id="size", marks=pytest.mark.variant)],
)
def test_cut_off_and_found_by_a_change(daemon, lone, more):
    """The change needs a new disk, and is refused. Neither the old disk nor a smaller one may serve zeroes later."""
    it = lone(**more)
    spec = daemon.api.get("data")["spec"]
    os.truncate(it.path, 4 * _MIB)
    problem = daemon.api.put({**spec, "queueDepth": 64}, status=422)
    assert "4MiB" in problem["detail"] and it.disk.path in problem["detail"], problem
    daemon.api.wait_for("data", lambda device: condition_of(device, "BackingWhole"), "with a condition BackingWhole")
    os.truncate(it.path, _SIZE)
    _assert_cut_off(daemon, it.disk)
    _assert_one_event(daemon)
    _accept(daemon, it.disk)


@pytest.mark.variant
def test_a_file_too_short_for_a_new_disk_has_lost_nothing(daemon, ext4, file_of):
    """A file that is too short for a new disk, or for a growth, has lost nothing."""
    path = file_of(where=ext4, size=4 * _MIB)
    spec = loop_spec("data", path, size=f"{_SIZE}")
    daemon.api.create(spec, status=422)
    _wait_reason(daemon, "BackingTooSmall")
    os.truncate(path, _SIZE)
    _recover(daemon)
    disk = Disk(daemon.api.wait_phase("data", "Live")["status"]["id"])
    disk.write(5 * _MIB, block("a"))
    if ublk.features()["UPDATE_SIZE"]:
        daemon.api.put({**spec, "size": f"{2 * _SIZE}"}, status=422)
        pid = daemon.worker_pid("data")
        daemon.api.ask("POST", "/devices/data/restart", (200, 202))
        daemon.api.wait_other_worker("data", pid)
        assert condition_of(daemon.api.get("data"), "BackingWhole") is None
        daemon.api.put(spec)
    daemon.api.restart("data")
    assert condition_of(daemon.api.get("data"), "BackingWhole") is None
    assert disk.read(5 * _MIB, _BLOCK) == block("a")
    daemon.api.put({**spec, "enabled": False})
    os.truncate(path, 4 * _MIB)
    daemon.api.put(spec, status=422)
    os.truncate(path, _SIZE)
    _recover(daemon)
    disk = Disk(daemon.api.wait_phase("data", "Live")["status"]["id"])
    assert condition_of(daemon.api.get("data"), "BackingWhole") is None
    assert disk.read(0, _BLOCK) == bytes(_BLOCK)
    daemon.api.delete("data")

def test_what_the_loop_driver_of_the_kernel_does(ext4, file_of):
    """The loop driver extends the file, and returns zeroes for acknowledged data, unlike ublkd in the tests above."""
    path = file_of(where=ext4, size=_SIZE)
    with loop_disk(path, "--direct-io=on") as disk:
        write(disk, 5 * _MIB, block("a"))
        os.truncate(path, 4 * _MIB)
        write(disk, 6 * _MIB, block("b"))
        assert read(disk, 5 * _MIB, _BLOCK) == bytes(_BLOCK)
