"""Disks of the kernel that belong to no device here are told as what they are, and left alone."""

from harness import programs, ublk
from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.shell import run
from harness.wait import wait_until


def _host(daemon):
    host = daemon.api.ask("GET", "/host", 200)
    return host["foreignDisks"], host["problems"]


def _told(daemon):
    items = daemon.api.ask("GET", "/events", 200, headers={"Accept": "application/json"})["items"]
    return [event for event in items if event["reason"] == "DiskOfNoDevice"]


def test_after_the_database_was_lost(make_daemon, file_of):
    path = file_of()
    first = make_daemon()
    first.start()
    number = first.api.create(loop_spec("data", path))["status"]["id"]
    pid = first.worker_pid("data")
    Disk(number).write(0, block("a"))
    first.stop()
    second = make_daemon(state=first.directory / "other", runtime=first.runtime).start()
    wait_until(lambda: _told(second), "an event of the disk that belongs to no device")
    (event,) = _told(second)
    assert event["device"]["name"] == f"/dev/ublkb{number}" and event["type"] == "Warning"
    assert event["message"] in second.log()
    (disk,), (problem,) = _host(second)
    assert disk["id"] == number and disk["device"] == f"/dev/ublkb{number}" and disk["state"] == "live"
    assert disk["madeBy"] == "ublkd" and not disk["managed"]
    assert disk["process"] == {"pid": pid, "command": "ublkd-worker data"}
    assert problem == {"title": "DiskOfNoDevice", "detail": disk["detail"]}
    said = run(programs.ublkctl(), "--socket", second.runtime / "ublkd.sock", "host", check=False)
    assert said.returncode == 1 and disk["detail"] in said.stdout, said.stdout
    # What it serves is not served a second time, and it serves on.
    refused = second.api.create(loop_spec("again", path), status=422)
    assert f"is in use by process {pid} (ublkd-worker data)" in refused["detail"]
    second.api.delete("again")
    assert Disk(number).read(0, 4096) == block("a")
    second.stop()
    first.start()
    assert first.worker_pid("data") == pid
    assert _host(first) == ([], [])


def test_what_is_no_problem(make_daemon, strangers):
    """Another ublkd's disk, as long as that runs, and another server's."""
    one, other = make_daemon().start(), make_daemon().start()
    number = one.api.create(null_spec("data"))["status"]["id"]
    (disk,), problems = _host(other)
    assert disk["id"] == number and disk["managed"] and disk["madeBy"] == "ublkd" and problems == []
    assert _host(one) == ([], []) and not _told(other)
    one.kill()  # now nobody looks after it, as soon as its worker has heard of that
    wait_until(lambda: not _host(other)[0][0]["managed"], "a disk that nobody looks after")
    (disk,), (problem,) = _host(other)
    assert problem["detail"] == disk["detail"]
    one.start()
    assert _host(other)[0][0]["managed"] and _host(other)[1] == []
    one.api.delete("data")
    stranger = strangers(3)
    (disk,), problems = _host(other)
    assert disk["id"] == 3 and disk["madeBy"] == "other" and disk["state"] == "live" and problems == []
    assert disk["process"]["pid"] == ublk.info(3)["pid"]
    stranger.close()
    assert _host(other) == ([], [])
