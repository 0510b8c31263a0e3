"""What journald makes of ublkd's records: its fields, and that both programs' records of a device are found by them."""

import json
import os
import pathlib
import subprocess

import pytest

from harness.api import null_spec
from harness.shell import output
from harness.wait import wait_until

_JOURNALD = "/lib/systemd/systemd-journald"
_SOCKET = pathlib.Path("/run/systemd/journal/socket")
# What systemd does for a service: systemd-cat of Debian 12 does not say that stderr is the journal.
_AS_A_SERVICE = ("systemd-cat", "sh", "-c", 'JOURNAL_STREAM=$(stat -Lc %d:%i /proc/self/fd/2) exec "$@"', "sh")
_CONFIGURATION = pathlib.Path("/run/systemd/journald.conf.d/test.conf")


@pytest.fixture(name="journal")
def real_journal():
    """A journald of this test, in a guest that has none; records go to /run."""
    assert not _SOCKET.exists(), "there is a journald already"
    _CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
    _CONFIGURATION.write_text("[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nRateLimitIntervalSec=0\n")
    with subprocess.Popen([_JOURNALD]) as process:
        wait_until(_SOCKET.exists, "journald's socket")

        def records(*fields):
            return [json.loads(line) for line in output("journalctl", "-o", "json", *fields).splitlines()]

        yield records
        process.terminate()
    _CONFIGURATION.unlink()
    _SOCKET.unlink(missing_ok=True)


def _with(records, **fields):
    return [record for record in records if all(record.get(name) == value for name, value in fields.items())]


def test_records_of_a_device_are_found_by_their_fields(make_daemon, journal):
    daemon = make_daemon(prefix=_AS_A_SERVICE).start()
    for name in ("data", "other"):
        daemon.api.create(null_spec(name))
    killed = daemon.kill_worker("data")
    daemon.api.wait_for("data", lambda d: d["status"]["recoveries"]["count"] == 1, "recovered")

    def told():
        return _with(journal("DEVICE=data"), REASON="Recovered")

    wait_until(told, lambda: f"the recovery among {[record['MESSAGE'] for record in journal()]}")
    records = journal("DEVICE=data")
    assert all(record["DEVICE"] == "data" and record["MESSAGE"].startswith("data: ") for record in records)
    (died,) = _with(records, REASON="WorkerDied", WORKER=str(killed))
    assert died["_PID"] == str(daemon.pid) and died["PRIORITY"] == "4" and "SIGKILL" in died["MESSAGE"]
    assert died["SYSLOG_IDENTIFIER"] == "ublkd" and died["_TRANSPORT"] == "journal"
    (recovered,) = told()
    assert recovered["WORKER"] == str(daemon.worker_pid("data")) and recovered["PRIORITY"] == "6"
    assert {record["DEVICE"] for record in journal(f"WORKER={killed}")} == {"data"}
    assert _with(journal("DEVICE=other"), REASON="WorkerDied") == []
    assert not os.path.getsize(daemon.log_file), "nothing is said twice"
