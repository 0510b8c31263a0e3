# SPDX-License-Identifier: MIT
"""Floods of requests by users who may read, and over TCP without the token, while a disk is recovered beside many others.

The measure is the same guest, slow as it may be, where two ordinary processes spin instead.
"""

import contextlib
import json
import runpy
import socket
import statistics
import subprocess
import sys

import pytest

from harness import programs
from harness.api import null_spec
from harness.bystander import are_held_up, is_held_up, measure
from harness.wait import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timed]

_PROGRAM = programs.source("tests/api/flood.py")
_MODULE = runpy.run_path(str(_PROGRAM))
_FLOODS = [("unix", *flood) for flood in _MODULE["FLOODS"] if flood[0] not in _MODULE["STREAMS"]]
_STREAM_FLOODS = [("unix", *flood) for flood in _MODULE["FLOODS"] if flood[0] in _MODULE["STREAMS"]]
_TCP_FLOODS = [("tcp", *flood) for flood in _MODULE["TCP_FLOODS"]]
_FIRST_UID = 300000
_PROCESSES = 2  # so that it is ublkd that sets the pace
_DISKS = 100  # the lists and metrics that a flood asks for are as long
_EVENTS = 1000  # that streams read
_LIMIT = 600  # seconds


class _Machine:
    """A ublkd that all users may read from, with many disks, and with "other", whose recovery is measured."""

    def __init__(self, make_daemon, directory, disks):
        directory.chmod(0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.daemon = make_daemon()
        self.daemon.more_options = (
            "--readers=everyone", f"--listen={self._socket}", f"--listen=tcp://127.0.0.1:{self._port}", "--log-level=info",
        )
        self.daemon.start()
        self._file = directory / "many.json"
        self._apply([null_spec(f"d{i}", queues=1, queueDepth=8, labels={"set": "many", f"n{i}": "v"}) for i in range(disks)])
        wait_until(lambda: self._live() == disks, lambda: f"{disks} Live devices, not {self._live()}", _LIMIT)
        self.daemon.api.create(null_spec("other"))

    def make_events(self):
        """Events with many labels, of devices without disks. A stream of a user reads a few of them in a turn."""
        labels = {f"k{number}": "v" * 200 for number in range(40)}
        for number in range(_EVENTS // 2):  # one when it is created, one when it is removed
            self.daemon.api.create(null_spec(f"old{number}", enabled=False, labels=labels), wait=None)
            self.daemon.api.delete(f"old{number}")

    @property
    def _socket(self):
        return self.daemon.runtime / "ublkd.sock"

    def _apply(self, specs, *more):
        self._file.write_text(json.dumps(specs), encoding="utf-8")
        command = [programs.ublkctl(), "--socket", self._socket, "apply", "-f", self._file, *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=_LIMIT)

    def _live(self):
        devices = self.daemon.api.ask("GET", "/devices?limit=500", 200)["items"]
        return sum(device["status"]["phase"] == "Live" for device in devices)

    @contextlib.contextmanager
    def flood(self, way, kind, users, connections):
        """Yield a list that has the numbers of answers and of closed connections afterwards."""
        address = str(self._socket) if way == "unix" else f"tcp:{self._port}"
        counts = [0, 0]
        with contextlib.ExitStack() as stack:
            children = []
            for number in range(_PROCESSES):
                sizes = [str(size) for size in (_FIRST_UID + number * users, users, connections)]
                children.append(stack.enter_context(subprocess.Popen(
                    [sys.executable, _PROGRAM, kind, address, *sizes], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                )))
                stack.callback(children[-1].kill)
            for child in children:
                assert child.stdout.readline() == "going\n"
            yield counts
            for child in children:
                found = [int(count) for count in child.communicate(timeout=_LIMIT)[0].split()]
                assert child.returncode == 0
                counts[:] = map(sum, zip(counts, found))
            assert _MODULE["has_flooded"](kind, *counts), counts

    def clean_up(self):
        """Together that takes less time than one after the other."""
        self._apply([], "--prune", "-l", "set=many")
        wait_until(lambda: self._live() == 1, "nothing left but the one disk", _LIMIT)


@contextlib.contextmanager
def _busy_processes():
    with contextlib.ExitStack() as stack:
        for _ in range(_PROCESSES):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


def _show(what, recoveries, health, counts=("", "")):
    figures = [1000 * of(times) for times in (recoveries, health) for of in (statistics.median, max)]
    print(f"| {what} | {' | '.join(f'{figure:.1f}' for figure in figures)} | {' | '.join(str(count) for count in counts)} |", flush=True)


def _calm(machine):
    with _busy_processes():
        calm = measure(machine.daemon)
    _show("two busy processes", *calm)
    return calm


def _holds_up(machine, flood, calm):
    """Whether a flood holds others up, in most of some comparisons. calm: of this machine, or of the last comparison."""
    way, kind, users, connections = flood

    def compare(number):
        if number > 0:
            calm[:] = _calm(machine)
        with machine.flood(*flood) as counts:
            flooded = measure(machine.daemon)
        _show(f"{kind} ({way}), 2 x {users} users with {connections} connections", *flooded, counts)
        return is_held_up(*calm, *flooded)

    return are_held_up(compare)


def _check(machine, floods):
    """Print a table, in ms."""
    print("\n| flood | recovery, median | worst | /healthz, median | worst | answers | closed |\n|---|---|---|---|---|---|---|")
    calm = list(_calm(machine))
    held_up = [flood for flood in floods if _holds_up(machine, flood, calm)]
    assert not held_up
    machine.clean_up()


def test_a_flood_of_requests_holds_up_no_recovery(make_daemon, directory):
    _check(_Machine(make_daemon, directory, disks=12), _FLOODS[1:2])


@pytest.mark.storm
@pytest.mark.timeout(2400)  # seconds of the host: a hundred disks are made and removed, and 200 s of the guest measured
@pytest.mark.parametrize("floods", [_FLOODS, _STREAM_FLOODS, _TCP_FLOODS], ids=["unix", "streams", "tcp"])
def test_no_flood_of_requests_holds_up_a_recovery_beside_many_disks(floods, make_daemon, directory):
    machine = _Machine(make_daemon, directory, _DISKS)
    if floods == _STREAM_FLOODS:
        machine.make_events()
    _check(machine, floods)
