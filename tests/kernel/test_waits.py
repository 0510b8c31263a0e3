# SPDX-License-Identifier: MIT
"""A worker that dies while its requests wait, in every way that there is, leaves nothing behind that the next one meets."""

import os
import select
import struct
import threading

import pytest

from harness import programs
from harness.api import null_spec
from harness.disk import Disk
from harness.processes import threads_of
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_BLOCK = 4096
_FIRST, _WAITS = 8192, 11  # of tests/kernel/waiting


def _answer(disk, block):
    return struct.unpack_from("=I", disk.read(block * _BLOCK, _BLOCK))[0]


def _read_all(disk):
    """Begin a read of each block that waits; return the threads, and what they will have read."""
    answers = {}

    def read(number):
        try:
            answers[number] = _answer(disk, _FIRST + number)
        except OSError as error:
            answers[number] = error

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(_WAITS)]
    for thread in threads:
        thread.start()
    return threads, answers


def _threads(pid):
    """The threads of a worker by name, without those of the kernel."""
    return {name: task for task, name in threads_of(pid).items() if not name.startswith("iou-")}


def _opened(task):
    return {str(link.readlink()) for link in (task / "fd").iterdir()}


def _field(task, name):
    lines = (task / "status").read_text(encoding="ascii").splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def test_the_thread_of_work_has_the_walls_and_the_fence(make_daemon):
    daemon = make_daemon(worker=programs.worker_waiting()).start()
    number = daemon.api.create(null_spec("walls", size="64MiB", dataPath="copy", queues=1, readOnly=True))["status"]["id"]
    threads = _threads(daemon.worker_pid("walls"))
    assert sorted(threads) == ["queue-0", "ublkd-worker", "work"]
    for task in threads.values():
        assert int(_field(task, "CapEff"), 16) == int(_field(task, "CapPrm"), 16) == 0
        assert (_field(task, "NoNewPrivs"), _field(task, "Seccomp")) == ("1", "2")
    # Its table is its own: the main thread has closed the node, and still has the socket of the supervisor.
    assert f"/dev/ublkc{number}" in _opened(threads["work"])
    assert f"/dev/ublkc{number}" not in _opened(threads["ublkd-worker"])


def test_a_worker_dies_while_its_requests_wait(make_daemon):
    daemon = make_daemon(worker=programs.worker_waiting()).start()
    spec = null_spec("waiting", size="64MiB", dataPath="copy", queues=1, queueDepth=32, readOnly=True)
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    pid = daemon.worker_pid("waiting")
    threads, answers = _read_all(disk)
    wait_until(lambda: _answer(disk, 0) == _WAITS, "all reads wait")
    assert not answers
    daemon.kill_worker("waiting")
    daemon.api.wait_other_worker("waiting", pid)
    for thread in threads:
        thread.join(60)
    assert answers == {number: number + 1 for number in range(_WAITS)}
    assert _answer(disk, 0) == 0
    # The next one does all of it again, and stops by itself: its background is asked to.
    threads, answers = _read_all(disk)
    for thread in threads:
        thread.join(60)
    assert answers == {number: number + 1 for number in range(_WAITS)}
    daemon.api.delete("waiting")
    assert "waiting" not in daemon.api.names()


def test_a_worker_stops_its_background(make_daemon):
    daemon = make_daemon(worker=programs.worker_waiting()).start()
    spec = null_spec("idle", size="64MiB", dataPath="copy", queues=1, readOnly=True)
    daemon.api.create(spec)
    pid = daemon.worker_pid("idle")
    pidfd = os.pidfd_open(pid)
    daemon.api.delete("idle")
    wait_until(lambda: _ended(pidfd), "the worker ends, whose background waits for an hour")
    os.close(pidfd)


def _ended(pidfd):
    return bool(select.select([pidfd], [], [], 0)[0])
