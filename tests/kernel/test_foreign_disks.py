# SPDX-License-Identifier: MIT
"""ublkd reports disks of the kernel that belong to no device here, and does not touch them."""

import pytest

from harness import programs, ublk
from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.shell import run
from harness.wait import wait_until


def _host(daemon):
    host = daemon.api.ask("GET", "/host", 200)
    return host["foreignDisks"], host["problems"]


def _wait_host(daemon, fits, what):
    """Wait until that fits foreign disks and problems, and return both. Of a helper that is late, the host shows what
    was known before."""
    seen = []

    def check():
        seen[:] = _host(daemon)
        return fits(*seen)

    wait_until(check, lambda: f"{what}: {seen}")
    return seen


def _is_managed(disks, _problems):
    return len(disks) == 1 and disks[0]["managed"]


def _is_unmanaged(disks, problems):
    return len(disks) == 1 and not disks[0]["managed"] and len(problems) == 1


def _is_clean(disks, problems):
    return disks == [] and problems == []


def _orphan_events(daemon):
    items = daemon.api.ask("GET", "/events", 200, headers={"Accept": "application/json"})["items"]
    return [event for event in items if event["reason"] == "DiskOfNoDevice"]


@pytest.mark.long
def test_after_the_database_was_lost(make_daemon, file_of):
    path = file_of()
    first = make_daemon()
    first.start()
    created = first.api.create(loop_spec("data", path))
    number, uid = created["status"]["id"], created["uid"]
    pid = first.worker_pid("data")
    Disk(number).write(0, block("a"))
    first.stop()
    second = make_daemon(state=first.directory / "other", runtime=first.runtime).start()
    # Its worker may notice late that its ublkd has exited: ublkd examines it until then.
    (disk,), (problem,) = _wait_host(second, _is_unmanaged, "a disk without a supervisor")
    wait_until(lambda: _orphan_events(second), "an event of the disk that belongs to no device")
    (event,) = _orphan_events(second)
    assert event["device"]["name"] == f"/dev/ublkb{number}" and event["type"] == "Warning"
    assert event["message"] in second.log()
    assert disk["id"] == number and disk["device"] == f"/dev/ublkb{number}" and disk["state"] == "live"
    assert disk["madeBy"] == "ublkd" and not disk["managed"]
    assert disk["process"] == {"pid": pid, "command": "ublkd-worker data"}
    assert problem == {"title": "DiskOfNoDevice", "detail": disk["detail"]}
    output = run(programs.ublkctl(), "--socket", second.runtime / "ublkd.sock", "host", check=False)
    assert output.returncode == 1 and disk["detail"] in output.stdout, output.stdout
    # What it serves is not served a second time, and it serves on.
    refused = second.api.create(loop_spec("again", path), status=422)
    assert "'ublkctl adopt data'" in refused["detail"], refused
    named = second.api.create(loop_spec("data", path), status=422)
    assert f"'ublkctl adopt --name NAME {uid}'" in named["detail"], named
    second.api.delete("data")
    second.api.delete("again")
    assert Disk(number).read(0, 4096) == block("a")
    second.stop()
    first.start()
    assert first.worker_pid("data") == pid
    _wait_host(first, _is_clean, "no foreign disk")


@pytest.mark.long
def test_disks_that_are_not_problems(make_daemon, strangers):
    """Another ublkd's disk, as long as that runs, and another server's."""
    one, other = make_daemon().start(), make_daemon().start()
    number = one.api.create(null_spec("data"))["status"]["id"]
    (disk,), problems = _wait_host(other, _is_managed, "another ublkd's disk")
    assert disk["id"] == number and disk["madeBy"] == "ublkd" and problems == []
    _wait_host(one, _is_clean, "no foreign disk")
    assert not _orphan_events(other)
    one.kill()  # unmanaged, as soon as its worker has noticed
    (disk,), (problem,) = _wait_host(other, _is_unmanaged, "a disk without a supervisor")
    assert problem["detail"] == disk["detail"]
    one.start()
    assert _wait_host(other, _is_managed, "another ublkd's disk")[1] == []
    one.api.delete("data")
    stranger = strangers(3)
    (disk,), problems = _wait_host(
        other, lambda disks, _: [disk["id"] for disk in disks] == [3], "the stranger's disk alone"
    )
    assert disk["madeBy"] == "other" and disk["state"] == "live" and problems == []
    assert disk["process"]["pid"] == ublk.info(3)["pid"]
    stranger.close()
    _wait_host(other, _is_clean, "no foreign disk")
