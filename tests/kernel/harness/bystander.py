# SPDX-License-Identifier: MIT
"""What others notice of a hostile worker: the recoveries of the device "other", and the answers to /healthz."""

import socket
import statistics
import threading
import time

from harness.wait import holds_for

COMPARISONS = 5
ROUNDS = 5
_HEALTH_LIMIT = 0.1  # seconds
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


def _nothing():
    pass


def measure(daemon, prepare=_nothing, disturb=_nothing):
    """Return the times of some recoveries of "other", and those of /healthz meanwhile. Before each recovery `prepare` is
    called, the disk is served for a while, and `disturb` is called."""
    recoveries = []
    with _Health(daemon) as health:
        for _ in range(ROUNDS):
            prepare()
            holds_for(lambda: daemon.api.phase("other") == "Live", _SERVED_LONG, "the disk is served")
            disturb()
            recoveries.append(_recover(daemon))
    return recoveries, health.times


def is_held_up(calm, calm_health, disturbed, disturbed_health):
    """Whether others were held up in this comparison: by the median, or by the worst."""
    return (
        statistics.median(disturbed) > 2 * statistics.median(calm)
        or max(disturbed) > 2 * max(calm)
        or statistics.median(disturbed_health) > max(_HEALTH_LIMIT, 2 * statistics.median(calm_health))
        or max(disturbed_health) > max(_HEALTH_LIMIT, 2 * max(calm_health))
    )


def are_held_up(compare):
    """Whether others are held up in more than half of COMPARISONS. `compare` makes one, and returns whether they were. Other
    work of the machine can slow down one; so the first one decides only if they were not."""
    verdicts = []
    while verdicts.count(False) <= verdicts.count(True) <= COMPARISONS // 2:
        verdicts.append(bool(compare(len(verdicts))))
    return verdicts.count(True) > verdicts.count(False)


def summary(what, recoveries, health):
    return (
        f"{what}: recoveries {', '.join(f'{1000 * took:.0f}' for took in recoveries)} ms, /healthz median "
        f"{1000 * statistics.median(health):.1f} ms, worst {1000 * max(health):.1f} ms of {len(health)}"
    )
