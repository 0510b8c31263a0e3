# SPDX-License-Identifier: MIT
"""Actions with the real driver: a scrub of good and of bad disks, its end by itself, by a client, and with its worker."""

import json
import subprocess

import pytest

from harness import programs
from harness.api import loop_spec
from harness.disk import Disk, block
from harness.kernel_disks import bad_disk
from harness.tenants import Place, User
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_SIZE = 64 * _MIB
_BAD = 32 * _MIB  # from here on 64 KiB fail
_SLOW = {"rate": _MIB}  # a minute: longer than any step of a test
_ALICE, _BOB = 2001, 2002


@pytest.fixture
def bad(directory):
    """A drive with bad blocks in its middle; name it before `daemon`, which must release it first."""
    with bad_disk("bad", directory / "drive.img", _SIZE, (_BAD, _BAD + 65536)) as path:
        yield path


def _start(daemon, name="data", status=202, **arguments):
    return daemon.api.ask("POST", f"/devices/{name}/actions/scrub", status, json=arguments)


def _show(daemon, action, name="data"):
    return daemon.api.ask("GET", f"/devices/{name}/actions/{action['id']}", 200)


def _wait(daemon, action, *states, name="data"):
    found = {}

    def there():
        found.update(_show(daemon, action, name))
        return found["state"] in states

    wait_until(there, f"the action to be {' or '.join(states)}", 60)
    return found


def _under_way(daemon, **arguments):
    """A scrub that has begun to read."""
    action = _start(daemon, **arguments)
    wait_until(lambda: _show(daemon, action)["progress"]["done"] > 0, "the action to read", 60)
    return action


class _Quiet:
    """A process that reads nothing between two looks."""

    def __init__(self, pid):
        self.path, self.before = f"/proc/{pid}/io", None

    def is_quiet(self):
        with open(self.path, encoding="ascii") as file:
            now = [line for line in file if line.startswith(("rchar", "read_bytes"))]
        before, self.before = self.before, now
        return now == before


def _events(daemon, name="data"):
    return [event["reason"] for event in daemon.events(name) if event["reason"].startswith("Action")]


def test_a_good_disk(daemon, file_of):
    disk = Disk(daemon.api.create(loop_spec("data", file_of(size=_SIZE), queues=2))["status"]["id"])
    disk.write(0, block("a"))
    done = _wait(daemon, _start(daemon, rate="1GiB"), "Succeeded", "Failed")
    assert done["state"] == "Succeeded" and done["progress"] == {"done": _SIZE, "total": _SIZE}
    assert done["result"] == {"bytesRead": _SIZE, "unreadable": {"count": 0, "bytes": 0, "ranges": []}}
    assert _events(daemon) == ["ActionStarted", "ActionSucceeded"]
    assert disk.read(0, 4096) == block("a")
    assert daemon.api.get("data")["status"]["ioErrors"] == []


def test_unreadable_ranges(bad, daemon):
    daemon.api.create(loop_spec("data", bad, queues=2))
    done = _wait(daemon, _start(daemon, rate="1GiB"), "Succeeded", "Failed")
    assert done["state"] == "Succeeded"
    assert done["result"]["unreadable"] == {"count": 1, "bytes": 65536, "ranges": [{"offset": _BAD, "length": 65536}]}
    assert done["result"]["bytesRead"] == _SIZE - 65536
    result = subprocess.run([programs.ublkctl(), "--socket", daemon.runtime / "ublkd.sock", "action", "data", "scrub", "rate=1GiB"],
                            stdout=subprocess.PIPE, check=False)
    assert result.returncode == 1 and json.loads(result.stdout)["unreadable"]["bytes"] == 65536


def test_unreadable_ranges_below_a_linear_target(bad, daemon):
    """They are reported where they are on the disk, which begins in the middle of the drive."""
    offset = 16 * _MIB
    target = {"type": "linear", "offset": offset, "child": {"type": "loop", "path": str(bad)}}
    daemon.api.create({"name": "data", "queues": 2, "target": target})
    done = _wait(daemon, _start(daemon, rate="1GiB"), "Succeeded", "Failed")
    assert done["state"] == "Succeeded" and done["progress"]["total"] == _SIZE - offset
    ranges = [{"offset": _BAD - offset, "length": 65536}]
    assert done["result"]["unreadable"] == {"count": 1, "bytes": 65536, "ranges": ranges}


def test_cancellation_and_one_at_a_time(daemon, file_of):
    disk = Disk(daemon.api.create(loop_spec("data", file_of(size=_SIZE)))["status"]["id"])
    action = _under_way(daemon, **_SLOW)
    _start(daemon, status=409, **_SLOW)
    disk.write(0, block("a"))
    assert disk.read(0, 4096) == block("a")
    daemon.api.ask("DELETE", f"/devices/data/actions/{action['id']}", 202)
    done = _wait(daemon, action, "Cancelled", "Failed")
    assert done["state"] == "Cancelled" and done["cancelRequested"] and 0 < done["progress"]["done"] < _SIZE
    assert daemon.api.ask("DELETE", f"/devices/data/actions/{action['id']}", 200)["state"] == "Cancelled"
    assert _wait(daemon, _start(daemon, rate="1GiB"), "Succeeded", "Failed")["state"] == "Succeeded"


def test_the_worker_dies(daemon, file_of):
    daemon.api.create(loop_spec("data", file_of(size=_SIZE)))
    action = _under_way(daemon, **_SLOW)
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    done = _wait(daemon, action, "Failed", "Cancelled", "Succeeded")
    assert (done["state"], done["reason"]) == ("Failed", "ActionInterrupted") and not done["cancelRequested"]
    assert _wait(daemon, _start(daemon, rate="1GiB"), "Succeeded", "Failed")["state"] == "Succeeded"


def test_a_restart_and_a_stop_do_not_wait_for_it(daemon, file_of):
    daemon.api.create(loop_spec("data", file_of(size=_SIZE)))
    for end in (lambda: daemon.api.restart("data"), lambda: daemon.ctl("stop", "data")):
        action = _under_way(daemon, **_SLOW)
        end()
        done = _wait(daemon, action, "Failed", "Cancelled", "Succeeded")
        assert (done["state"], done["reason"]) == ("Failed", "ActionInterrupted")
    _start(daemon, status=409)


def test_ublkd_is_killed(daemon, file_of):
    """The action goes on, is followed by the next ublkd, and its end is found also where no ublkd saw it."""
    daemon.api.create(loop_spec("data", file_of(size=_SIZE)))
    action = _under_way(daemon, **_SLOW)
    daemon.kill()
    daemon.start()
    before = _show(daemon, action)
    assert before["state"] == "Running"
    wait_until(lambda: _show(daemon, action)["progress"]["done"] > before["progress"]["done"], "it to go on", 60)
    daemon.api.ask("DELETE", f"/devices/data/actions/{action['id']}", 202)
    _wait(daemon, action, "Cancelled")
    action = _start(daemon, rate="16MiB")  # four seconds
    wait_until(lambda: _show(daemon, action)["progress"]["done"] > 0, "the action to read", 60)
    worker = daemon.worker_pid("data")
    daemon.kill()
    wait_until(_Quiet(worker).is_quiet, "the scrub to end", 60)
    daemon.start()
    assert _wait(daemon, action, "Succeeded", "Failed")["state"] == "Succeeded"
    assert daemon.worker_pid("data") == worker


def test_limits_hold_for_it(daemon, file_of):
    """Lifting the limit lets it go on at once."""
    spec = loop_spec("data", file_of(size=_SIZE), limits={"read": {"bytesPerSec": _MIB}})
    daemon.api.create(spec)
    action = _under_way(daemon, rate="1GiB")
    assert _show(daemon, action)["state"] == "Running"
    daemon.api.put({**spec, "limits": {}})
    assert _wait(daemon, action, "Succeeded", "Failed")["state"] == "Succeeded"


def test_tenants_have_their_own(ext4, make_daemon, directory):
    pool = ext4 / "pool"
    pool.mkdir(mode=0o700)
    place = Place(make_daemon, directory, {
        "pools": {"fast": {"directory": str(pool)}},
        "rules": [{"name": "test", "who": {"users": [_ALICE, _BOB]}, "targets": ["loop"], "pools": ["fast"], "devices": 4,
                   "size": "1GiB", "queues": 4, "queueDepth": 128, "maxIoSize": "1MiB"}]})
    alice, bob = (User(place.daemon, uid) for uid in (_ALICE, _BOB))
    name = alice.create({"name": f"u{_ALICE}-data", "target": {"type": "loop", "pool": "fast"}, "size": _SIZE})["name"]
    status, action = alice.ask("POST", f"/devices/{name}/actions/scrub", {"rate": "1GiB"})
    assert status == 202
    assert _wait(place.daemon, action, "Succeeded", "Failed", name=name)["state"] == "Succeeded"
    assert alice.ask("GET", f"/devices/{name}/actions/{action['id']}")[1]["result"]["bytesRead"] == _SIZE
    for method, path in (("GET", ""), ("POST", "/scrub"), ("GET", f"/{action['id']}"), ("DELETE", f"/{action['id']}")):
        assert bob.ask(method, f"/devices/{name}/actions{path}")[0] == 404
