"""The main promise: whoever is killed, no I/O fails and every block reads back as it was written."""

import os
import signal

import pytest

from harness import ublk
from harness.api import loop_spec
from harness.disk import Disk
from harness.fio import Fio
from harness.wait import wait_until

_WORKER_KILLS = 20
_SUPERVISOR_KILLS = 5


def _kill_both(daemon, disk):
    """The worker dies while there is no supervisor; the next one finds a disk without a worker."""
    daemon.kill()
    os.kill(ublk.info(disk.number)["pid"], signal.SIGKILL)
    wait_until(lambda: ublk.info(disk.number)["state"] == ublk.QUIESCED, "the kernel without a server")
    daemon.start()


def _kill_supervisor(daemon, disk):
    """I/O goes on without it, with the same worker after it."""
    pid = daemon.worker_pid("data")
    daemon.kill()
    disk.wait_progress(20)
    daemon.start()
    assert daemon.worker_pid("data") == pid


@pytest.mark.long
@pytest.mark.parametrize("queues", [1, 2])
def test_fio_over_many_kills(ext4, file_of, daemon, directory, queues):
    api = daemon.api
    path = file_of(where=ext4)
    device = api.create(loop_spec("data", path, queues=queues, recovery={"onCrash": "reissue"}))
    disk = Disk(device["status"]["id"])
    fio = Fio(directory, disk, jobs=queues)
    try:
        fio.wait_running()
        for kill in range(_WORKER_KILLS):
            if kill % 4 == 3:
                (_kill_both if kill % 8 == 3 else _kill_supervisor)(daemon, disk)
            if kill % 4 == 3 and kill % 8 == 3:
                api.wait_phase("data", "Live")
            else:
                api.wait_other_worker("data", daemon.kill_worker("data"))
            disk.wait_progress(20)
            assert fio.running, f"fio gave up after kill {kill + 1}: {fio.finish()}"
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert api.get("data")["status"]["phase"] == "Live"
    api.delete("data")
