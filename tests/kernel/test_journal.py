# SPDX-License-Identifier: MIT
"""What journald makes of ublkd's records: its fields, and that both programs' records of a device are found by them."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from harness.api import condition_of, loop_spec, null_spec
from harness.shell import output, run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_JOURNALD = "/lib/systemd/systemd-journald"
_SOCKET = pathlib.Path("/run/systemd/journal/socket")
# What systemd does for a service: systemd-cat of Debian 12 does not say that stderr is the journal.
_AS_A_SERVICE = ("systemd-cat", "sh", "-c", 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"', "sh")
_HELD = ("InUse", "StillHeld")
_CONFIGURATION = pathlib.Path("/run/systemd/journald.conf.d/test.conf")


@pytest.fixture(name="journal")
def real_journal():
    """A journald of this test, in a guest that has none; records go to /run."""
    assert not _SOCKET.exists(), "there is a journald already"
    _CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
    _CONFIGURATION.write_text("[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nRateLimitIntervalSec=0\n")
    with subprocess.Popen([_JOURNALD]) as process:

        def records(*fields):
            lines = output("journalctl", "-q", "-o", "json", *fields).splitlines()
            return [json.loads(line) for line in lines]

        def writes():
            done = run("systemd-cat", "echo", "a line", check=False)
            found = run("journalctl", "-q", "-o", "cat", "MESSAGE=a line", check=False)
            return done.returncode == 0 and "a line" in found.stdout

        wait_until(writes, "a line in the journal")
        yield records
        process.terminate()
    _CONFIGURATION.unlink()
    _SOCKET.unlink(missing_ok=True)
    shutil.rmtree("/run/log/journal")


def _with(records, **fields):
    return [record for record in records if all(record.get(name) == value for name, value in fields.items())]


def test_records_of_a_device_are_found_by_their_fields(make_daemon, journal):
    daemon = make_daemon(prefix=_AS_A_SERVICE).start()
    for name in ("data", "other"):
        daemon.api.create(null_spec(name))
    killed = daemon.kill_worker("data")
    daemon.api.wait_for("data", lambda d: d["status"]["recoveries"]["count"] == 1, "recovered")

    def recoveries():
        return _with(journal("DEVICE=data"), REASON="Recovered")

    wait_until(recoveries, lambda: f"the recovery among {[record['MESSAGE'] for record in journal()]}")
    records = journal("DEVICE=data")
    assert all(record["DEVICE"] == "data" and record["MESSAGE"].startswith("data: ") for record in records)
    (died,) = _with(records, REASON="WorkerDied", WORKER=str(killed))
    assert died["_PID"] == str(daemon.pid) and died["PRIORITY"] == "4" and "SIGKILL" in died["MESSAGE"]
    assert died["SYSLOG_IDENTIFIER"] == "ublkd" and died["_TRANSPORT"] == "journal"
    (recovered,) = recoveries()
    assert recovered["WORKER"] == str(daemon.worker_pid("data")) and recovered["PRIORITY"] == "6"
    assert {record["DEVICE"] for record in journal(f"WORKER={killed}")} == {"data"}
    assert _with(journal("DEVICE=other"), REASON="WorkerDied") == []
    assert not os.path.getsize(daemon.log_file), "nothing is logged twice"


def _decisions(records):
    """What an administrator sees, without the lines of who asked for what."""
    return [record for record in records if int(record["PRIORITY"]) < 7 and "CLIENT_RIGHT" not in record]


def _lines(records):
    """One reason for each line. Udev may hold a disk for a moment during its removal, or not."""
    reasons = [record.get("REASON", record["MESSAGE"]) for record in _decisions(records)]
    return [reason for reason in reasons if reason not in _HELD]


def _check_lines(daemon, records, workers):
    """Every line of a device has its fields, is logged by ublkd alone, and is the sentence of an event."""
    logged = _decisions(records)
    events = {(event["reason"], event["message"]) for event in daemon.api.ask(
        "GET", "/events?device=data&limit=1000", 200, headers={"Accept": "application/json"})["items"]}
    for record in logged:
        name, _, sentence = record["MESSAGE"].partition(": ")
        assert name == record["DEVICE"] == "data" and record["_PID"] == str(daemon.pid)
        assert record.get("WORKER") is None or int(record["WORKER"]) in workers
    # of what happened more than once the event has the last sentence
    lasts = {record["REASON"]: record["MESSAGE"].partition(": ")[2] for record in logged}
    assert set(lasts.items()) <= events
    messages = [record["MESSAGE"] for record in logged if record["REASON"] not in ("Live", "SpecChanged", *_HELD)]
    assert len(messages) == len(set(messages)), "nothing is logged twice"


def _check_requests(records):
    """Who asked for each change, as fields; the answer to a request that waits comes after the line of its end."""
    asked = [record for record in records if "CLIENT_RIGHT" in record]
    assert [record["REQUEST"].partition("?")[0] for record in asked] == [
        "POST /devices", "POST /devices/data/restart", *["PUT /devices/data"] * 3, "DELETE /devices/data"]
    assert [record["STATUS"] for record in asked] == ["201", "200", "200", "200", "200", "204"]
    of_the_client = {"CLIENT_UID": "0", "CLIENT_PID": str(os.getpid()), "CLIENT_HOME": "host", "CLIENT_RIGHT": "root"}
    assert _with(asked, **of_the_client) == asked


def test_one_line_for_each_decision(make_daemon, journal, file_of):
    """Created, killed, recovered, restarted, grown, disabled, enabled and removed: what was decided, and its end."""
    daemon = make_daemon(prefix=_AS_A_SERVICE).start()
    api, spec = daemon.api, loop_spec("data", file_of(size=64 << 20), size="32MiB")
    workers = set()

    def live():
        workers.add(daemon.worker_pid("data"))

    def until_logged(*reasons):
        wait_until(lambda: _lines(journal("DEVICE=data"))[-len(reasons):] == list(reasons),
                   lambda: f"{reasons} at the end of {_lines(journal('DEVICE=data'))}")

    api.create(spec)
    live()
    until_logged("Created", "Live")
    killed = daemon.kill_worker("data")
    api.wait_other_worker("data", killed)
    live()
    until_logged("WorkerDied", "Recovered")
    api.restart("data")
    live()
    until_logged("RestartRequested", "WorkerRetired", "Live")
    api.put({**spec, "size": "64MiB"})
    live()
    until_logged("SpecChanged", "Live")
    api.put({**spec, "size": "64MiB", "enabled": False})
    until_logged("SpecChanged", "Disabled")
    api.put({**spec, "size": "64MiB"})
    live()
    until_logged("SpecChanged", "Live")
    api.delete("data")
    until_logged("DeleteRequested", "Removed")

    records = journal("DEVICE=data")
    assert _lines(records) == [
        "Created", "Live", "WorkerDied", "Recovered", "RestartRequested", "WorkerRetired", "Live", "SpecChanged", "Live",
        "SpecChanged", "Disabled", "SpecChanged", "Live", "DeleteRequested", "Removed",
    ]
    _check_lines(daemon, records, workers)
    _check_requests(records)
    of_worker = {record["REASON"] for record in records if "WORKER" in record and int(record["PRIORITY"]) < 7}
    assert {"Live", "WorkerDied", "Recovered", "WorkerRetired"} <= of_worker


@pytest.mark.variant
def test_a_try_that_fails_like_the_last_one_is_not_logged_again(make_daemon, journal, directory):
    daemon = make_daemon(prefix=_AS_A_SERVICE).start()
    path = directory / "not-yet"
    daemon.api.create(loop_spec("data", path), wait=None)
    daemon.api.wait_for("data", lambda device: device["status"]["attempts"] >= 4, "tried four times")
    why = condition_of(daemon.api.get("data"))["reason"]
    draft = directory / "draft"
    with open(draft, "wb") as file:
        file.truncate(1 << 20)
    draft.rename(path)  # with its size from the first moment
    daemon.api.wait_phase("data", "Live")
    wait_until(lambda: _lines(journal("DEVICE=data"))[-1:] == ["Live"], "the end in the journal")
    records = journal("DEVICE=data")
    assert _lines(records) == ["Created", why, "Live"]
    (record,) = _with(records, REASON=why)
    assert str(path) in record["MESSAGE"] and "back-off" in record["MESSAGE"] and record["PRIORITY"] == "4"
