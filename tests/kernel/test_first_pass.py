# SPDX-License-Identifier: MIT
"""The answer to the first request after a start about live disks: with socket activation that request starts ublkd."""

import concurrent.futures
import os
import signal
import socket
import time

import pytest

from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.halt import halt
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_ROUNDS = 3
_HELD_AT_MOST = 30  # seconds: some seconds by the clock of ublkd, on a busy machine


@pytest.fixture
def activated(make_daemon, directory):
    """A daemon that inherits its listening socket, as from systemd: a client that connects waits until it runs."""
    with socket.socket(socket.AF_UNIX) as listener:
        script = f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" 3<&{listener.fileno()}'
        daemon = make_daemon(prefix=("bash", "-c", script, "bash"), pass_fds=(listener.fileno(),))
        daemon.runtime.mkdir(mode=0o755)
        listener.bind(str(daemon.runtime / "ublkd.sock"))
        listener.listen(64)
        yield daemon.start()


def _ask(api, method, path, more=None):
    return api.request(method, path, **(more or {}))


def _first_answers(daemon, requests, held):
    """What they are answered that were there before ublkd was."""
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
        answers = [pool.submit(_ask, daemon.api, *request) for request in requests]
        wait_until(lambda: all(answer.running() or answer.done() for answer in answers), "asked")
        assert not [answer.result() for answer in answers if answer.done()], "answered without ublkd"
        began = time.monotonic()
        daemon.start(ready=False)
        responses = [answer.result() for answer in answers]
        assert time.monotonic() - began < held
    return responses


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.variant), "kill"])
def test_a_live_disk_is_live_from_the_first_answer_on(activated, file_of, end):
    api = activated.api
    names = [f"d{number}" for number in range(6)]
    for name in names:
        api.create(loop_spec(name, file_of(f"{name}.img")))
    disk = Disk(api.get("d0")["status"]["id"])
    disk.write(0, block("w"))
    etag = api.request("GET", "/devices/d0").headers["ETag"]
    patch = {"json": {"labels": {"a": "b"}}, "headers": {"Content-Type": "application/merge-patch+json"}}
    for number in range(_ROUNDS):
        getattr(activated, end)()
        patch["json"]["labels"]["a"] = str(number)
        every, one, metrics, conditional, patched, stats = _first_answers(activated, [
            ("GET", "/devices"), ("GET", "/devices/d0"), ("GET", "/metrics"),
            ("GET", "/devices/d2", {"headers": {"If-None-Match": etag}}), ("PATCH", "/devices/d1", patch),
            ("GET", "/devices/d0/stats"),
        ], _HELD_AT_MOST)
        assert [item["status"]["phase"] for item in every.json()["items"]] == ["Live"] * len(names)
        assert all(item["status"]["device"] for item in every.json()["items"])
        for answer in (one, conditional, patched):
            assert answer.status_code == 200 and answer.json()["status"]["phase"] == "Live", answer.text
        assert stats.status_code == 200
        for name in names:
            assert f'ublkd_device_phase{{device="{name}",phase="Live"}} 1\n' in metrics.text
        assert disk.read(0, 4096) == block("w")
    for name in names:
        api.delete(name)


@pytest.mark.variant
def test_a_worker_that_is_stopped_does_not_hold_the_answer_for_ever(activated):
    """ublkd reports nothing false about its disk, and reports the others as they are."""
    api = activated.api
    for name in ("stuck", "well"):
        api.create(null_spec(name))
    pid = activated.worker_pid("stuck")
    activated.stop()
    halt(pid)
    try:
        (every,) = _first_answers(activated, [("GET", "/devices")], _HELD_AT_MOST)
        phases = {item["name"]: item["status"]["phase"] for item in every.json()["items"]}
        assert phases["well"] == "Live" and phases["stuck"] in ("Live", "Recovering", None), phases
    finally:
        os.kill(pid, signal.SIGCONT)
    api.wait_phase("stuck", "Live")
