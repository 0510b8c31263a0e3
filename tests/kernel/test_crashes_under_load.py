# SPDX-License-Identifier: MIT
"""The main promise: whichever process is killed, no I/O fails and every block reads back as it was written."""

import contextlib
import os
import random
import signal
import time

import pytest

from harness import ublk
from harness.api import loop_spec, null_spec
from harness.disk import Disk, block
from harness.fio import Fio
from harness.halt import halt
from harness.processes import workers
from harness.wait import holds_for, wait_until

_WORKER_KILLS = 20  # with each fourth one the supervisor is killed as well: 5 times
_KILLS_IN_RECOVERY = 10
_SERVED = 1.2  # seconds; workers that die faster than this in a row are taken for broken, and back off


def _kill_both(daemon, disk):
    """The worker dies without a supervisor; the next supervisor finds a disk without a worker."""
    daemon.kill()
    os.kill(ublk.info(disk.number)["pid"], signal.SIGKILL)
    wait_until(lambda: ublk.info(disk.number)["state"] == ublk.QUIESCED, "the kernel without a server")
    daemon.start()


def _kill_supervisor(daemon, disk):
    """I/O continues without the supervisor, and the same worker serves afterwards."""
    pid = daemon.worker_pid("data")
    daemon.kill()
    disk.wait_progress(20)
    daemon.start()
    assert daemon.worker_pid("data") == pid


@pytest.mark.long
@pytest.mark.storm
@pytest.mark.parametrize("queues", [1, 2])
def test_fio_over_many_kills_of_worker_and_supervisor(ext4, file_of, daemon, directory, queues):
    api = daemon.api
    path = file_of(where=ext4)
    device = api.create(loop_spec("data", path, queues=queues, recovery={"onCrash": "reissue"}))
    disk = Disk(device["status"]["id"])
    fio = Fio(directory, disk, jobs=queues)
    try:
        fio.wait_running()
        for kill in range(_WORKER_KILLS):
            if kill % 8 == 3:
                _kill_both(daemon, disk)
                api.wait_phase("data", "Live")
            else:
                if kill % 8 == 7:
                    _kill_supervisor(daemon, disk)
                api.wait_other_worker("data", daemon.kill_worker("data"))
            live = time.monotonic()
            disk.wait_progress(20)
            holds_for(lambda: fio.running, _SERVED - (time.monotonic() - live), f"fio, after kill {kill + 1}")
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert api.get("data")["status"]["phase"] == "Live"
    api.delete("data")


@pytest.mark.long
@pytest.mark.storm
def test_fio_over_workers_that_are_killed_while_they_recover(ext4, file_of, daemon, directory):
    """At any moment of a recovery; also in the window in which the successor fetches."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    api = daemon.api
    device = api.create(loop_spec("data", file_of(where=ext4), queues=2))
    disk = Disk(device["status"]["id"])
    fio = Fio(directory, disk)
    try:
        fio.wait_running()
        for _ in range(_KILLS_IN_RECOVERY):
            pid = daemon.kill_worker("data")
            time.sleep(chance.uniform(0, 0.3))  # the moment is what is varied
            for worker in workers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            api.ask("POST", "/devices/data/recover", (200, 202))  # not to wait for the back-off
            api.wait_other_worker("data", pid)
            disk.wait_progress(20)
        fio.finish().assert_clean()
    finally:
        fio.kill()
    api.delete("data")


@pytest.mark.long
def test_a_worker_that_hangs_disturbs_no_other_device(api, daemon):
    """Stopped, not dead: its own I/O waits, and other disks work. Killed, it is replaced."""
    stuck = Disk(api.create(null_spec("stuck"))["status"]["id"])
    pid = daemon.worker_pid("stuck")
    halt(pid)
    write = stuck.write_later(0, block("w"))
    other = Disk(api.create(null_spec("other"))["status"]["id"])
    other.write(0, block("w"))
    api.wait_other_worker("other", daemon.kill_worker("other"))
    api.delete("other")
    assert not write.done and api.phase("stuck") == "Live"
    os.kill(pid, signal.SIGKILL)
    assert write.result() is None
    api.wait_other_worker("stuck", pid)
