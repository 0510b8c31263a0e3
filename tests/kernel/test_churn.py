# SPDX-License-Identifier: MIT
"""Many disks that are made, written, restarted, killed and removed side by side, in random order, for
UBLKD_CHURN_SECONDS (600 is what it takes to trust a kernel).

Some kernels lose the wake-up of a thread of io-wq, so that a control command runs only when the next one comes, or
5 s later. The control helper of ublkd gives up a command after 10 s, and this test prints the slowest of all.
"""

import contextlib
import errno
import os
import random
import re
import signal
import threading
import time
import traceback

import pytest

from harness import ublk
from harness.api import Api, loop_spec, null_spec
from harness.disk import Disk, block
from harness.wait import wait_until

_SECONDS = int(os.environ.get("UBLKD_CHURN_SECONDS", "40"))
_THREADS, _OF_A_THREAD = 8, 8
_LIMIT = "120s"  # for a request; all 64 disks share two emulated CPUs
_TURNS = re.compile(r'^ublkd_reconcile_turn_seconds_bucket\{le="([^"]+)"\} (\d+)', re.MULTILINE)


class _Client(threading.Thread):
    """Has disks of its own, and does one thing after another to them."""

    def __init__(self, daemon, number, seed, file_of):
        super().__init__(daemon=True)
        self._api = Api(daemon.runtime / "ublkd.sock")
        self._chance = random.Random(f"{seed} {number}")
        self._specs = [self._spec(f"disk-{number}-{i}", i, file_of) for i in range(_OF_A_THREAD)]
        self._end = time.monotonic() + _SECONDS
        self._there = set()
        self.slowest = {}  # seconds by kind, with the disk
        self.count = 0
        self.error = None

    @staticmethod
    def _spec(name, i, file_of):
        more = {"queues": 1, "queueDepth": 8}
        return null_spec(name, **more) if i % 2 else loop_spec(name, file_of(f"{name}.img", 1 << 20), **more)

    def _create(self, spec):
        self._api.create(spec, timeout=_LIMIT)
        self._there.add(spec["name"])

    def _remove(self, spec):
        self._api.ask("DELETE", f"/devices/{spec['name']}?wait&timeout={_LIMIT}", 204)
        self._there.remove(spec["name"])

    def _restart(self, spec):
        self._api.restart(spec["name"], timeout=_LIMIT)

    def _kill(self, spec):
        """And wait for the next worker: a request waits for it."""
        pid = self._api.wait_worker(spec["name"])["status"]["worker"]["pid"]
        with contextlib.suppress(ProcessLookupError):  # the status may lag behind the death of an earlier one
            os.kill(pid, signal.SIGKILL)
        Disk(self._api.get(spec["name"])["status"]["id"]).read(0, 4096)

    def _write(self, spec):
        disk = Disk(self._api.get(spec["name"])["status"]["id"])
        letter = self._chance.choice("abcdef")
        disk.write(4096, block(letter))
        if spec["target"]["type"] == "loop":
            assert disk.read(4096, 4096) == block(letter)

    def _step(self):
        spec = self._chance.choice(self._specs)
        act = self._chance.choice((self._remove, self._restart, self._kill, self._write, self._write))
        if spec["name"] not in self._there:
            act = self._create
        began = time.monotonic()
        act(spec)
        took, kind = time.monotonic() - began, act.__name__.strip("_")
        self.slowest[kind] = max(self.slowest.get(kind, (0, "")), (took, spec["name"]))
        self.count += 1

    def run(self):
        try:
            while time.monotonic() < self._end:
                self._step()
            for spec in self._specs:
                if spec["name"] in self._there:
                    self._remove(spec)
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error
            traceback.print_exc()


def _turns(api):
    """How many turns took up to so many seconds; a turn waits for a control command."""
    return {float(bound): int(count) for bound, count in _TURNS.findall(api.request("GET", "/metrics").text)}


@pytest.mark.long
@pytest.mark.storm
@pytest.mark.timeout(_SECONDS + 400)
def test_disks_come_and_go_side_by_side(daemon, file_of):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    clients = [_Client(daemon, number, seed, file_of) for number in range(_THREADS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(_SECONDS + 300)
    assert [client.error for client in clients] == [None] * _THREADS
    assert not any(client.is_alive() for client in clients)
    turns = _turns(daemon.api)
    for kind in sorted({kind for client in clients for kind in client.slowest}):
        took, name = max(client.slowest.get(kind, (0, "")) for client in clients)
        print(f"slowest {kind}: {took:.2f} s ({name})")
    print(f"{sum(client.count for client in clients)} steps; turns up to so many seconds: {turns}", flush=True)
    assert os.strerror(errno.ETIMEDOUT) not in daemon.log()  # of a control command that was given up
    wait_until(lambda: daemon.api.names() == [] and ublk.numbers() == [], "every disk gone")
