# SPDX-License-Identifier: MIT
"""limits and busyPollUs: they hold, they change under the disk, and nothing waits for them that must not."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

from harness.api import loop_spec, null_spec
from harness.disk import Background, Disk, block
from harness.fio import Fio
from harness.processes import threads_of
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_LOAD = 32  # requests that _load() keeps in flight
_SLOW = 5120  # bytes in a second
_QUICK = 60  # seconds; what is limited below would take minutes


@contextlib.contextmanager
def _load(disk, *options):
    """Direct I/O from two CPUs, so from both queues, until the end."""
    command = [
        "fio", "--name=load", f"--filename={disk.path}", "--ioengine=libaio", "--direct=1", "--iodepth=16",
        "--numjobs=2", "--cpus_allowed=0,1", "--cpus_allowed_policy=split", "--time_based", "--runtime=3600",
        "--thread", *options,
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        disk.wait_progress(20)
        yield process
    finally:
        process.kill()
        process.wait()


def _most(rate, burst, seconds):
    """What a limit lets through in a time, with a burst and what was in flight before."""
    return rate * seconds + burst + _LOAD


def _assert_at_most(disk, rate, burst, count):
    """Only the upper bound is exact: a guest that the emulator lets wait serves less, and never more."""
    begin, before = time.monotonic(), disk.completed()
    wait_until(lambda: disk.completed() >= before + count, f"{count} requests", 120)
    done, seconds = disk.completed() - before, time.monotonic() - begin
    most = _most(rate, burst, seconds)
    assert done <= most, f"{done} requests in {seconds:.2f} s, where {rate} a second let at most {most:.0f} through"


def _wait_faster_than(disk, rate, burst):
    """Wait until more was served than a limit that is no longer there would have let through."""
    begin, before = time.monotonic(), disk.completed()

    def faster():
        done = disk.completed() - before
        return done > _most(rate, burst, time.monotonic() - begin)

    wait_until(faster, f"more than {rate} requests a second", 60)


def test_requests_per_second_over_all_queues(api):
    limits = {"read": {"iops": 300, "iopsBurst": 30}}
    device = api.create(null_spec("data", queues=2, limits=limits))
    disk = Disk(device["status"]["id"])

    def requests():
        queues = api.ask("GET", "/devices/data/stats", 200)["queues"]
        return [queue["ops"]["read"]["requests"] for queue in queues]

    def are_even():
        both = requests()
        return len(both) == 2 and min(both) > max(both) / 2

    with _load(disk, "--rw=randread", "--bs=4k"):
        _assert_at_most(disk, 300, 30, 600)
        # A CPU that stands still for a second asks for nothing: then one device may take all for a while.
        wait_until(are_even, lambda: f"about as many requests from each queue: {requests()}")
    api.delete("data")


def test_bytes_per_second(api):
    limits = {"write": {"bytesPerSec": "1MiB", "bytesPerSecBurst": "256KiB"}, "read": {"iops": 1}}
    device = api.create(null_spec("data", queues=2, limits=limits))
    disk = Disk(device["status"]["id"])
    with _load(disk, "--rw=randwrite", "--bs=16k"):
        _assert_at_most(disk, 64, 16, 160)
    api.delete("data")


def _start_writes(disk):
    """The second one is kept back for some 200 seconds, if the limit is in force."""
    disk.write(0, block("a", _SLOW * 200))
    return disk.write_later(0, block("b"))


def _assert_reads_go_on(disk):
    begin = time.monotonic()
    for i in range(8):
        disk.read(i * 4096, 4096)
    assert time.monotonic() - begin < _QUICK


def _wait_open(path):
    """Return as soon as the disk is there, without a pause that ublkd could go on in."""
    end = time.monotonic() + _QUICK
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
            return
    raise TimeoutError(path)


@pytest.mark.both
def test_reads_do_not_wait_for_writes_that_the_limit_keeps_back(api, daemon):
    """Nor where an opener comes at once. Linux 6.12 lets no request begin while ublkd sets the timeout of the disk, which
    takes until all requests before have ended: so no limit is in force then."""
    spec = null_spec("data", id=5, queues=1, limits={"write": {"bytesPerSec": _SLOW}})
    disk = Disk(5)
    created = Background(api.create, spec)
    _wait_open(disk.path)
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        late = _start_writes(disk)
        wait_until(lambda: late.done or disk.inflight() > 0, "the second write")
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    wait_until(lambda: created.done, "the answer")
    _assert_reads_go_on(disk)
    if late.done:  # it came before the limit was in force
        late = _start_writes(disk)
        disk.wait_inflight()
        _assert_reads_go_on(disk)
    assert not late.done
    api.put(spec | {"limits": {}})
    assert late.result(_QUICK) is None
    api.delete("data")


@pytest.mark.long
def test_limits_change_under_load(api, daemon):
    spec = null_spec("data", queues=2, limits={"read": {"iops": 20}})
    device = api.create(spec)
    disk, pid = Disk(device["status"]["id"]), device["status"]["worker"]["pid"]
    with _load(disk, "--rw=randread", "--bs=4k"):
        _assert_at_most(disk, 20, 2, 40)
        api.put(spec | {"limits": {"read": {"iops": 200}}})
        _wait_faster_than(disk, 20, 2)
        _assert_at_most(disk, 200, 20, 300)
        daemon.kill()
        daemon.start()
        api.put(spec | {"limits": {"read": {"iops": 40, "iopsBurst": 10}}})  # an adopted worker gets it, too
        disk.wait_progress(_LOAD)
        _assert_at_most(disk, 40, 10, 80)
        api.put(spec | {"limits": {}})
        _wait_faster_than(disk, 40, 10)
    assert api.get("data")["status"]["worker"]["pid"] == pid
    api.delete("data")


def test_a_limit_of_hours_ends_when_it_is_lifted(api):
    """The second write would wait for 17 minutes."""
    spec = null_spec("data", queues=1, limits={"write": {"bytesPerSec": 1024}})
    device = api.create(spec)
    disk = Disk(device["status"]["id"])
    disk.wait_timeout_set()
    disk.write(0, block("a", 1 << 20))
    late = disk.write_later(0, block("b"))
    disk.wait_inflight()
    api.put(spec | {"limits": {}})
    assert late.result(_QUICK) is None
    api.delete("data")


def test_a_flush_does_not_wait_for_the_limit(api, file_of):
    device = api.create(loop_spec("data", file_of(), queues=1, limits={"write": {"bytesPerSec": 1024, "iops": 1}}))
    disk = Disk(device["status"]["id"])
    disk.wait_timeout_set()
    disk.write(0, block("a", 1 << 20))
    late = disk.write_later(0, block("b"))
    disk.wait_inflight()
    before = api.ask("GET", "/devices/data/stats", 200)["total"]["ops"]["flush"]["requests"]
    descriptor = os.open(disk.path, os.O_RDWR)
    os.fsync(descriptor)
    os.close(descriptor)
    assert api.ask("GET", "/devices/data/stats", 200)["total"]["ops"]["flush"]["requests"] > before
    assert not late.done
    api.delete("data", force=True)


@contextlib.contextmanager
def _readers(disk, count):
    """Processes that read until an error or the end. (A thread of fio 3.33 may spin for ever when its disk is gone.)"""
    command = ["dd", f"if={disk.path}", "of=/dev/null", "bs=4k", "iflag=direct", "status=none"]
    with contextlib.ExitStack() as stack:
        for i in range(count):
            pinned = ["taskset", "--cpu-list", str(i % 2), *command]
            reader = stack.enter_context(subprocess.Popen(pinned, stderr=subprocess.DEVNULL))
            stack.callback(reader.kill)
        yield


@pytest.mark.variant
def test_a_disk_that_is_stopped_while_it_is_throttled(api):
    device = api.create(null_spec("data", queues=2, limits={"read": {"iops": 1, "iopsBurst": 50}}))
    disk = Disk(device["status"]["id"])
    disk.wait_timeout_set()
    with _readers(disk, 16):
        disk.wait_inflight(16)
        begin = time.monotonic()
        api.delete("data", force=True)
        assert time.monotonic() - begin < _QUICK


def test_a_worker_that_is_killed_while_it_throttles(api, daemon, directory, file_of):
    spec = loop_spec("data", file_of(), queues=2, limits={"read": {"iops": 100}, "write": {"iops": 100}})
    disk = Disk(api.create(spec)["status"]["id"])
    fio = Fio(directory, disk)
    fio.wait_running(200)
    for _ in range(2):
        disk.wait_inflight(8)
        pid = daemon.kill_worker("data")
        api.wait_other_worker("data", pid)
        disk.wait_progress(50)
    api.put(spec | {"limits": {}})
    fio.wait_running(200)
    fio.finish().assert_clean()
    api.delete("data")


def _queue_threads(pid):
    return [task for task, name in threads_of(pid).items() if name.startswith("queue-")]


def _sleeps(pid):
    """How often the queues have gone to sleep."""
    fields = [(task / "status").read_text().split("\nvoluntary_ctxt_switches:")[1] for task in _queue_threads(pid)]
    return sum(int(field.split()[0]) for field in fields)


def _sleeps_for_reads(disk, pid, count=200):
    descriptor = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
    os.close(descriptor)
    before = _sleeps(pid)
    subprocess.run(
        ["dd", f"if={disk.path}", "of=/dev/null", "bs=4k", f"count={count}", "iflag=direct", "status=none"], check=True
    )
    return _sleeps(pid) - before


@pytest.mark.parametrize(
    "restart", [pytest.param(False, id="live"), pytest.param(True, id="again", marks=pytest.mark.variant)]
)
def test_busy_polling_instead_of_sleeping(api, restart):
    spec = null_spec("data", queues=1)
    device = api.create(spec)
    disk, pid = Disk(device["status"]["id"]), device["status"]["worker"]["pid"]
    counts = []

    def sleeps():
        counts.append(_sleeps_for_reads(disk, pid))
        return counts[-1] > 150

    # On a busy machine a reader may be back before a queue that was made to wait gets to sleep.
    wait_until(sleeps, lambda: f"a queue that sleeps after most of 200 reads: {counts}")
    sleeping = counts[-1]
    api.put(spec | {"busyPollUs": 10000})
    if restart:
        pid = api.restart("data")["status"]["worker"]["pid"]
    disk.read(0, 4096)  # the queue reads the limit when it wakes
    # On a busy machine a reader may take longer to come back than a queue polls.
    wait_until(lambda: _sleeps_for_reads(disk, pid) < sleeping / 3, f"fewer than {sleeping} sleeps, as it polls")
    api.delete("data")
