# SPDX-License-Identifier: MIT
"""A disk with openers: ublkd refuses with their names, and the search delays no other request."""

import contextlib
import os
import pathlib
import signal
import subprocess
import threading

import pytest

from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk
from harness.halt import halt
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_CROWD = 150  # processes, so that a search takes long enough to be caught


@pytest.fixture
def crowd():
    """Idle processes."""
    script = f"for i in $(seq {_CROWD}); do sleep 1000 & done; echo; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as shell:
        shell.stdout.readline()
        yield
        os.killpg(shell.pid, signal.SIGKILL)


@pytest.fixture
def mounted(api, file_of, directory):
    """The device "data", with a file system that is mounted read-only; its mount point."""
    disk = Disk(api.create(loop_spec("data", file_of(size=64 << 20), queues=1))["status"]["id"])
    mount = directory / "mnt"
    mount.mkdir()
    run("mkfs.ext4", "-q", "-F", disk.path)
    run("mount", "-o", "ro", disk.path, mount)
    yield mount
    run("umount", mount, check=False)  # it may be unmounted already


def _searches(daemon):
    """The pids of the processes that search."""
    for pid in pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text(encoding="utf-8").split():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "ublkd-search":
                yield int(pid)


def _stop_a_search(daemon, ask):
    """Repeats `ask` (a request that needs a search, in a thread) until a search is stopped; that thread and the pid."""
    for _ in range(50):
        thread = threading.Thread(target=ask)
        thread.start()
        while thread.is_alive():
            for pid in _searches(daemon):
                with contextlib.suppress(ProcessLookupError):
                    if halt(pid):
                        return thread, pid
        thread.join()
    raise AssertionError("no search was caught")


@pytest.mark.variant
@pytest.mark.timed  # a search has its ten seconds also while it is stopped, and each step has to be done within them
def test_a_search_delays_no_other_request(api, daemon, mounted, crowd):  # pylint: disable=redefined-outer-name,unused-argument
    """One that is stopped is the slowest that there can be. It is given up after 10 s, so each step has its own."""
    answers = []
    steps = {
        "asked": lambda: api.ask("GET", "/healthz", 200),
        "created": lambda: api.create(null_spec("other", queues=1)),
        "recovered": lambda: api.wait_other_worker("other", daemon.kill_worker("other")),
        "removed": lambda: api.delete("other", force=True),
    }
    for what, step in steps.items():
        thread, search = _stop_a_search(daemon, lambda: answers.append(api.request("DELETE", "/devices/data")))
        answers.clear()
        step()
        assert thread.is_alive() and not answers, f"{what}, and it waits for the search"
        os.kill(search, signal.SIGCONT)
        thread.join()
        problem = answers[0].json()
        assert problem["status"] == 409 and str(mounted) in problem["detail"]


def test_many_removals_at_once(api):
    """Each is answered for its own disk."""
    devices = [api.create(null_spec(f"disk-{i}", queues=1, queueDepth=8)) for i in range(8)]
    answers = {}

    def remove(name):
        answers[name] = api.request("DELETE", f"/devices/{name}?wait&timeout=60s").status_code

    with open(Disk(devices[5]["status"]["id"]).path, "rb"):
        threads = [threading.Thread(target=remove, args=(device["name"],)) for device in devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {device["name"]: 204 for device in devices} | {"disk-5": 409}
    assert api.names() == ["disk-5"]


def test_a_held_disk_names_its_openers(api, mounted):  # pylint: disable=redefined-outer-name
    """And no longer once they have closed it."""
    device = api.get("data")
    with open(Disk(device["status"]["id"]).path, "rb"):
        api.ask("DELETE", "/devices/data?force=true", 202)

        def says(*words):
            return lambda seen: (condition_of(seen)["reason"] == "StillHeld"
                                 and all(word in condition_of(seen)["message"] for word in words))

        api.wait_for("data", says(f"process {os.getpid()} (", str(mounted)), "naming both")
        (event,) = [event for event in _events(api) if event["reason"] == "StillHeld"]
        assert str(mounted) in event["message"]
        problem = api.ask("DELETE", "/devices/data?wait&timeout=1s", 504)
        assert f"process {os.getpid()} (" in problem["detail"]
        run("umount", mounted)
        api.wait_for("data", lambda seen: str(mounted) not in condition_of(seen)["message"], "no longer naming the mount")
    wait_until(lambda: api.names() == [], "the removal done")


def _events(api):
    return api.ask("GET", "/events", 200, headers={"Accept": "application/json"})["items"]
