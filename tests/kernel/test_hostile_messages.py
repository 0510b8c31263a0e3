# SPDX-License-Identifier: MIT
"""What a worker that was taken over can do to its supervisor with the socket between them: be killed.

The measure is the same guest, slow as it may be, where the worker of the device is killed by SIGKILL instead.
"""

import os
import socket
import statistics
import threading
import time

import pytest

from harness import programs
from harness.api import condition_of, null_spec
from harness.disk import Disk, block
from harness.hostile import Hostile, deed_number
from harness.wait import holds_for, wait_until

_HEALTH_LIMIT = 0.1  # seconds
_NOISE = 0.05  # likewise: what the guest adds by itself
_ROUNDS = 3
_SERVED_LONG = 1.2  # seconds: ublkd replaces the worker at once that has served for one


class _Health:
    """Asks /healthz again and again, and notes how long each answer takes. Its own client costs the guest little."""

    def __init__(self, daemon):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(daemon.runtime / "ublkd.sock"))
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.times = []

    def _ask(self):
        self._socket.sendall(b"GET /healthz HTTP/1.1\r\nHost: ublkd\r\n\r\n")
        return self._socket.recv(65536)

    def _run(self):
        while not self._end.is_set():
            began = time.monotonic()
            answer = self._ask()
            self.times.append(time.monotonic() - began)
            if not answer.startswith(b"HTTP/1.1 200 "):
                self.times.append(float("inf"))
                return
            self._end.wait(0.02)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        self._socket.close()


def _recover(daemon):
    """Kill the worker of the device "other"; return how long its recovery took, in seconds."""
    before = daemon.api.get("other")["status"]["recoveries"]["count"]
    daemon.kill_worker("other")
    device = daemon.api.wait_for(
        "other", lambda seen: seen["status"]["recoveries"]["count"] > before, "recovered", timeout=120
    )
    daemon.api.wait_phase("other", "Live")
    return device["status"]["recoveries"]["lastMs"] / 1000


def _measure(daemon, disturb):
    """Return the times of some recoveries of "other", and those of /healthz meanwhile."""
    recoveries = []
    with _Health(daemon) as health:
        for _ in range(_ROUNDS):
            daemon.api.wait_phase("hostile", "Live")
            holds_for(lambda: daemon.api.phase("other") == "Live", _SERVED_LONG, "the disk is served")
            disturb()
            recoveries.append(_recover(daemon))
    return recoveries, health.times


def _summary(what, recoveries, health):
    return (
        f"{what}: recoveries {', '.join(f'{1000 * took:.0f}' for took in recoveries)} ms, /healthz median "
        f"{1000 * statistics.median(health):.1f} ms, worst {1000 * max(health):.1f} ms of {len(health)}"
    )


def _reasons(daemon, name):
    return [event["reason"] for event in daemon.events(name)]


@pytest.mark.long
@pytest.mark.parametrize("deed", ["ready", "news", "largest", "grown"])
def test_a_flood_of_messages_holds_up_no_other_device(deed, lair, make_daemon):
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    disk = Disk(daemon.api.create(null_spec("hostile"))["status"]["id"])
    daemon.api.create(null_spec("other"))
    flooders = []

    def begin_flood():
        pid = daemon.worker_pid("hostile")
        if pid not in flooders:  # else the last flood goes on
            flooders.append(pid)
            Hostile(lair, pid, disk).do(deed)

    calm, calm_health = _measure(daemon, lambda: daemon.kill_worker("hostile"))
    flooded, flooded_health = _measure(daemon, begin_flood)
    print(_summary("killed", calm, calm_health))
    print(_summary(deed, flooded, flooded_health))
    assert statistics.median(flooded) <= 2 * statistics.median(calm) + _NOISE
    assert statistics.median(flooded_health) <= max(_HEALTH_LIMIT, 2 * statistics.median(calm_health))
    assert max(flooded_health) <= max(_HEALTH_LIMIT, 3 * max(calm_health))

    for pid in flooders:
        wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), "the flooding worker is dead")
    wanted = _ROUNDS + len(flooders)
    daemon.api.wait_for("hostile", lambda seen: seen["status"]["recoveries"]["count"] >= wanted, "recovered each time")
    assert "WorkerBrokeProtocol" in _reasons(daemon, "hostile")
    assert "WorkerBrokeProtocol" not in _reasons(daemon, "other")
    assert daemon.api.get("hostile")["status"]["worker"]["pid"] not in flooders
    disk.write(0, block("w"))


def test_a_device_whose_workers_break_the_protocol_backs_off(lair, make_daemon, monkeypatch):
    """They send READY before GO, from their first moment on."""
    monkeypatch.setenv("UBLKD_HOSTILE_DEED", deed_number("ready"))
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    daemon.api.create(null_spec("hostile"), wait=None)
    device = daemon.api.wait_for(
        "hostile", lambda seen: condition_of(seen)["reason"] == "WorkerBrokeProtocol", "killed for what it sent"
    )
    assert device["status"]["phase"] != "Live"
    wait_until(lambda: len(list(lair.iterdir())) >= 4, "some workers were tried")
    began, before = time.monotonic(), len(list(lair.iterdir()))
    holds_for(lambda: daemon.api.phase("hostile") != "Live", 3, "the disk is not served")
    tried = len(list(lair.iterdir())) - before
    print(f"{tried} workers in {time.monotonic() - began:.1f} s")
    assert tried <= 6  # the fourth waits for 800 ms


def test_a_worker_that_closed_its_socket_is_replaced_by_the_next_supervisor(lair, make_daemon):
    """Before, its disk could be neither recovered nor removed."""
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    disk = Disk(daemon.api.create(null_spec("hostile"))["status"]["id"])
    daemon.api.create(null_spec("honest"))
    hostile, honest = daemon.worker_pid("hostile"), daemon.worker_pid("honest")
    worker = Hostile(lair, hostile, disk)
    worker.do("close")
    wait_until(worker.has_done, "the socket is closed")
    disk.write(0, block("a"))
    daemon.kill()
    daemon.start()
    began = time.monotonic()
    daemon.api.wait_other_worker("hostile", hostile)
    print(f"served by another worker {time.monotonic() - began:.1f} s after ublkd was ready")
    assert not os.path.exists(f"/proc/{hostile}")
    reasons = _reasons(daemon, "hostile")
    assert "WorkerBrokeProtocol" in reasons and "Recovered" in reasons
    assert daemon.worker_pid("honest") == honest and "WorkerBrokeProtocol" not in _reasons(daemon, "honest")
    disk.write(0, block("b"))
    daemon.api.delete("hostile")


def test_a_worker_whose_socket_was_removed_on_the_host_serves_on(make_daemon):
    """It has not done that itself, and its users must not notice."""
    daemon = make_daemon().start()
    disk = Disk(daemon.api.create(null_spec("disk"))["status"]["id"])
    pid = daemon.worker_pid("disk")
    daemon.kill()
    (name,) = (daemon.runtime / "workers").glob("*.sock")
    name.unlink()
    daemon.start()
    holds_for(lambda: os.path.exists(f"/proc/{pid}"), 3, "the worker lives")
    disk.write(0, block("a"))
    assert "WorkerBrokeProtocol" not in _reasons(daemon, "disk")
