# SPDX-License-Identifier: MIT
"""GET /events over the life of a device: made, killed, recovered, removed; with a supervisor that dies in between."""

import contextlib
import http.client
import json

import pytest

from harness.api import null_spec
from harness.event_database import wait_written
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test


class Watcher:
    """A client that watches; events come with the `id` of the stream."""

    def __init__(self, api, headers=None, query=""):
        self._answer = api.stream("/events" + query, {"Accept": "text/event-stream", **(headers or {})})
        self.status = self._answer.status
        self.last = None

    def _fields(self):
        for line in self._answer:
            name, _, value = line.decode().rstrip("\r\n").partition(": ")
            yield name, value

    def until(self, reason):
        """Read until an event of that reason; return all up to it."""
        events = []
        for name, value in self._fields():
            if name == "id":
                self.last = int(value)
            if name == "data":
                events.append(json.loads(value))
                assert events[-1]["revision"] == self.last
                if events[-1]["reason"] == reason:
                    return events
        raise AssertionError(f"the stream ended before {reason}, after {events}")

    def drain(self):
        """Read until the connection breaks."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            for name, value in self._fields():
                if name == "id":
                    self.last = int(value)


def _reasons(events):
    return [event["reason"] for event in events]


def test_the_life_of_a_device(daemon):
    api = daemon.api
    watcher = Watcher(api, query="?device=data")
    other = Watcher(api)
    uid = api.create(null_spec("data"))["uid"]
    events = watcher.until("Live")
    assert _reasons(events)[0] == "Created" and "Starting" in _reasons(events)
    assert all(event["type"] == "Normal" for event in events)

    pid = daemon.kill_worker("data")
    events = watcher.until("Recovered")
    assert "WorkerDied" in _reasons(events)
    (death,) = [event for event in events if event["reason"] == "WorkerDied"]
    assert death["type"] == "Warning" and str(pid) in death["message"]
    api.wait_other_worker("data", pid)
    assert f"{api.get('data')['status']['recoveries']['lastMs']:.1f} ms" in events[-1]["message"]
    resume_at = watcher.last

    daemon.stop()
    watcher.drain()
    other.drain()
    daemon.start()
    watcher = Watcher(api, {"Last-Event-ID": str(resume_at)}, "?device=data")
    assert watcher.status == 200
    watcher.until("Live")  # as the new supervisor found it
    api.delete("data")
    events = watcher.until("Removed")
    assert _reasons(events)[-2:] == ["DeleteRequested", "Removed"] or "DeleteRequested" in _reasons(events)
    assert {event["device"]["uid"] for event in events} == {uid}

    # Nothing is lost across the restart: a client that did not notice it gets the later events, too.
    late = Watcher(api, {"Last-Event-ID": str(other.last)})
    assert "DeleteRequested" in _reasons(late.until("Removed"))
    items = api.ask("GET", "/events?device=data", 200, headers={"Accept": "application/json"})["items"]
    assert _reasons(items)[0] == "Removed" and _reasons(items)[-1] == "Created"
    revisions = [item["revision"] for item in items]
    assert revisions == sorted(revisions, reverse=True)


def test_a_supervisor_that_is_killed(daemon):
    """The next ublkd has the events of requests; the revisions increase."""
    api = daemon.api
    before = api.ask("GET", "/devices", 200)["revision"]
    api.create(null_spec("data"))
    daemon.kill()
    daemon.start()
    watcher = Watcher(api, {"Last-Event-ID": str(before)})
    events = watcher.until("Live")
    assert _reasons(events)[0] == "Created" and events[0]["revision"] > before
    api.delete("data")
    watcher.until("Removed")


def test_repeated_deaths_are_remembered_by_the_next_supervisor(daemon):
    """How often a worker died, and which died last, is known after a crash of ublkd as it was before."""
    api = daemon.api
    api.create(null_spec("data"))

    def death():
        items = api.ask("GET", "/events?device=data", 200, headers={"Accept": "application/json"})["items"]
        deaths = [item for item in items if item["reason"] == "WorkerDied"]
        return deaths[0] if deaths else {"message": ""}

    for _ in range(4):
        pid = daemon.kill_worker("data")
        api.wait_other_worker("data", pid)
    wait_until(lambda: str(pid) in death()["message"], f"an event of the death of {pid}")
    last = death()
    assert last["count"] >= 4, last
    wait_written(daemon, "WorkerDied", last["count"])
    daemon.kill()
    daemon.start()
    assert death() == last


def test_metrics_and_stats_of_a_disk_in_use(daemon):
    api = daemon.api
    number = api.create(null_spec("data", queues=1))["status"]["id"]
    with open(f"/dev/ublkb{number}", "rb", buffering=0) as disk:
        disk.read(65536)

    def has_counted():
        return api.ask("GET", "/devices/data/stats", 200)["total"]["ops"]["read"]["bytes"] >= 65536

    wait_until(has_counted, "65536 bytes read")
    text = api.request("GET", "/metrics").text
    assert 'ublkd_device_phase{device="data",phase="Live"} 1\n' in text
    (line,) = [line for line in text.splitlines() if line.startswith('ublkd_device_io_bytes_total{device="data",op="read"}')]
    assert float(line.split()[-1]) >= 65536
    assert 'ublkd_reconcile_steps_total{step="start the disk",result="done"} ' in text
    daemon.kill_worker("data")
    api.wait_for("data", lambda device: device["status"]["recoveries"]["count"] == 1, "recovered")
    assert 'ublkd_device_recoveries_total{device="data"} 1\n' in api.request("GET", "/metrics").text
    api.delete("data")
