# SPDX-License-Identifier: MIT
"""Many devices, and many generations of them.

UBLKD_SCALE_DEVICES=256 and UBLKD_CHURN_ROUNDS=2000 (tests/kernel/run passes them on) make it as much as it takes to
trust a kernel; what every run does is a part of it.
"""

import json
import os
import signal
import threading

import pytest

from harness import programs, ublk
from harness.api import null_spec
from harness.disk import Disk, block
from harness.processes import workers
from harness.shell import output
from harness.wait import wait_until

_MANY = int(os.environ.get("UBLKD_SCALE_DEVICES", "48"))
_ROUNDS = int(os.environ.get("UBLKD_CHURN_ROUNDS", "30"))
_LIMIT = 300  # seconds for all of them, with two emulated CPUs
_ROUND_LIMIT = 60
_SETTLED = 1000  # rounds: the log of events and the database's cache are full by then, and memory stays flat
_GROWTH_KIB = 400  # what an allocator may take after that: in 1,000 rounds a leak of 400 bytes a round shows


def _ublkctl(daemon, *arguments):
    return output(programs.ublkctl(), "--socket", daemon.runtime / "ublkd.sock", *arguments, timeout=_LIMIT)


def _specs():
    return [null_spec(f"disk-{i}", queues=1, queueDepth=8, labels={"set": "many"}) for i in range(_MANY)]


def _live(api):
    """The status of each device that is Live, by name."""
    items, after = [], ""
    while after is not None:
        page = api.ask("GET", f"/devices?limit=500{after}", 200)
        items += page["items"]
        after = f"&continue={page['continue']}" if page.get("continue") else None
    return {item["name"]: item["status"] for item in items if item["status"]["phase"] == "Live"}


@pytest.mark.long
@pytest.mark.storm
def test_many_devices_are_applied_recovered_at_once_and_removed(daemon, directory):
    api = daemon.api
    file = directory / "many.json"
    file.write_text(json.dumps(_specs()))
    _ublkctl(daemon, "apply", "-f", file)
    wait_until(lambda: len(_live(api)) == _MANY, lambda: f"{_MANY} Live devices, not {len(_live(api))}", _LIMIT)
    before = _live(api)
    assert len(_ublkctl(daemon, "list", "-o", "name").split()) == _MANY
    assert len(ublk.disks()) == _MANY
    for pid in workers():
        os.kill(pid, signal.SIGKILL)

    def recovered():
        now = _live(api)
        return len(now) == _MANY and all(now[name]["worker"]["pid"] != before[name]["worker"]["pid"] for name in now)

    wait_until(recovered, "every device Live with another worker", _LIMIT)
    after = _live(api)
    assert {name: status["id"] for name, status in after.items()} == {n: s["id"] for n, s in before.items()}
    Disk(after[f"disk-{_MANY - 1}"]["id"]).write(0, block("w"))
    file.write_text("[]")
    _ublkctl(daemon, "apply", "-f", file, "--prune", "-l", "set=many")
    wait_until(lambda: api.names() == [] and ublk.numbers() == [], "every device gone", _LIMIT)


def _resident(pid):
    """KiB."""
    for line in open(f"/proc/{pid}/status", encoding="ascii"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    raise AssertionError("no RssAnon")


def _round(api, number):
    """Two devices are made, used, and removed; one of them loses its worker, or is disabled, on its way."""
    names = [f"churn-{i}" for i in range(2)]
    for name in names:
        api.create(null_spec(name, queues=1, queueDepth=8), timeout=f"{_ROUND_LIMIT}s")
    if number % 2:
        status = api.get(names[0])["status"]
        os.kill(status["worker"]["pid"], signal.SIGKILL)
        Disk(status["id"]).write(0, block("w"))
    else:
        api.put(null_spec(names[0], queues=1, queueDepth=8, enabled=False))
    removals = [threading.Thread(target=api.ask, args=("DELETE", f"/devices/{name}", 202)) for name in names]
    for removal in removals:
        removal.start()
    for removal in removals:
        removal.join()
    wait_until(lambda: api.names() == [] and ublk.numbers() == [], f"round {number} over", _ROUND_LIMIT)


@pytest.mark.long
@pytest.mark.storm
def test_churn_leaves_nothing_and_does_not_grow(daemon):
    """With a watchdog on each round: there are reports of kernels that wedge under churn.

    What memory does is asserted only when there are rounds enough to distinguish growth from caches that fill;
    tests/api/daemon_memory_test.py does it in every run, without a driver.
    """
    settled = None
    for number in range(_ROUNDS):
        if number == _SETTLED:
            settled = _resident(daemon.pid)
        _round(daemon.api, number)
        if number % 100 == 99:
            print(f"{number + 1} rounds, {_resident(daemon.pid)} KiB", flush=True)
    if settled is not None:
        assert _resident(daemon.pid) - settled <= _GROWTH_KIB
