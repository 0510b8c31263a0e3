# SPDX-License-Identifier: MIT
"""Workers that die before they serve, and the spare for the deaths that come later."""

import os
import pathlib
import shutil
import signal
import time

from harness import programs
from harness.api import condition_of, null_spec
from harness.disk import Disk, block
from harness.processes import spares, workers
from harness.wait import wait_until

import pytest

pytestmark = pytest.mark.long  # and one kernel runs each test

_DEATHS = 10


@pytest.fixture(name="doomed")
def doomed_worker(directory):
    """A worker that kills itself for the device "doomed", until a file is there; it leaves a line each time.
    No spare of it lives either, which would not know whom it is for."""

    class Doomed:
        """Where its files are."""

        path = directory / "worker"
        spared = directory / "spared"
        log = directory / "deaths"

        def deaths(self):
            """The times at which it was started in vain."""
            return [float(line) for line in self.log.read_text().split()] if self.log.exists() else []

    Doomed.path.write_text(
        f"""#!/bin/sh
if [ "$1" = doomed ] && [ ! -e {Doomed.spared} ]; then
    cut -d' ' -f1 /proc/uptime >>{Doomed.log}
    kill -KILL $$
fi
case "$1" in "(spare)"*) kill -KILL $$ ;; esac
exec {programs.worker()} "$@"
"""
    )
    Doomed.path.chmod(0o755)
    return Doomed()


@pytest.mark.storm
def test_ten_deaths_in_a_row_back_off_and_disturb_no_other_disk(doomed, make_daemon):
    daemon = make_daemon(worker=doomed.path).start()
    api = daemon.api
    healthy = api.create(null_spec("healthy"))
    api.create(null_spec("doomed"), wait=None)
    wait_until(lambda: len(doomed.deaths()) >= _DEATHS, lambda: f"{_DEATHS} deaths, not {len(doomed.deaths())}", 120)
    # The phase is Backoff while a try is under way, too: its worker may be dead and not yet reaped.
    device = api.wait_for("doomed", lambda seen: seen["status"]["nextTryAt"], "waiting for its next try")
    assert device["status"]["phase"] == "Backoff" and "SIGKILL" in condition_of(device)["message"]
    assert device["status"]["worker"] is None and device["status"]["device"] is None
    times = doomed.deaths()
    gaps = [later - earlier for earlier, later in zip(times, times[1:])]
    assert gaps[-1] > 4 and gaps[-1] > 4 * gaps[2], f"it backs off: {gaps}"
    after = api.get("healthy")
    assert after["status"]["worker"] == healthy["status"]["worker"]
    Disk(after["status"]["id"]).write(0, block("h"))
    doomed.spared.touch()
    start = time.monotonic()
    api.ask("POST", "/devices/doomed/recover", (200, 202))
    api.wait_phase("doomed", "Live")
    assert time.monotonic() - start < gaps[-1], "recover skips the back-off"


def test_a_worker_that_dies_during_recovery_is_tried_again(doomed, make_daemon):
    """I/O that waits is answered in the end, by the first worker that lives."""
    doomed.spared.touch()
    daemon = make_daemon(worker=doomed.path).start()
    disk = Disk(daemon.api.create(null_spec("doomed"))["status"]["id"])
    doomed.spared.unlink()
    pid = daemon.kill_worker("doomed")
    wait_until(lambda: len(doomed.deaths()) >= 3, "three vain starts")
    write = disk.write_later(0, block("w"))
    doomed.spared.touch()
    daemon.api.wait_other_worker("doomed", pid)
    assert write.result() is None


def _wait_spare(other_than=None):
    wait_until(lambda: len(spares()) == 1 and spares() != [other_than], lambda: f"a spare worker, not {spares()}")
    return spares()[0]


def test_a_worker_program_that_is_removed(make_daemon, directory):
    """One that is missing from the start is refused then; this one is removed beside ublkd, as an upgrade may do."""
    program = pathlib.Path(shutil.copy(programs.worker(), directory / "ublkd-worker"))
    daemon = make_daemon(worker=program).start()
    program.unlink()
    daemon.api.create(null_spec("data"), wait=None)
    device = daemon.api.wait_phase("data", "Backoff")
    assert str(program) in condition_of(device)["message"]


def test_a_spare_takes_over_and_is_replaced(daemon):
    disk = Disk(daemon.api.create(null_spec("data"))["status"]["id"])
    spare = _wait_spare()
    before = daemon.kill_worker("data")
    after = daemon.api.wait_other_worker("data", before)
    assert after["status"]["worker"]["pid"] == spare
    disk.write(0, block("s"))
    _wait_spare(other_than=spare)
    assert workers() == [spare]


def test_the_death_of_a_spare_affects_no_device(daemon):
    daemon.api.create(null_spec("data"))
    spare = _wait_spare()
    os.kill(spare, signal.SIGKILL)
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    _wait_spare(other_than=spare)


def test_a_spare_leaves_with_its_supervisor(daemon):
    daemon.api.create(null_spec("data"))
    pid, spare = daemon.worker_pid("data"), _wait_spare()
    daemon.kill()
    wait_until(lambda: spares() == [], lambda: f"no spare worker, not {spares()}")
    daemon.start()
    assert daemon.worker_pid("data") == pid
    _wait_spare(other_than=spare)
    daemon.api.delete("data")
    wait_until(lambda: spares() == [], lambda: f"no spare without a device, not {spares()}")


def _network(pid):
    return os.readlink(f"/proc/{pid}/ns/net")


def _descriptors(pid):
    """What the descriptors of a process are, as far as it has not closed them meanwhile."""
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:
            pass
    return found


@pytest.mark.both
def test_the_network_of_a_worker_is_kept_over_its_death_and_then_let_go(make_daemon):
    """The kernel takes a network namespace apart for milliseconds: not in the middle of a recovery, and not never."""
    daemon = make_daemon().start()
    daemon.api.create(null_spec("n"))
    dead = _network(daemon.worker_pid("n"))
    assert dead != _network(daemon.pid), "it has a network of its own"
    assert dead in _descriptors(daemon.pid)
    daemon.kill_worker("n")
    wait_until(lambda: dead not in _descriptors(daemon.pid), "the network of the dead worker is let go")
    assert _network(daemon.worker_pid("n")) in _descriptors(daemon.pid)
    adopted = _network(daemon.worker_pid("n"))
    daemon.kill()
    daemon.start()
    daemon.worker_pid("n")
    wait_until(lambda: adopted in _descriptors(daemon.pid), "ublkd keeps the network of a worker that it has adopted")
