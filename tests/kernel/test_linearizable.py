# SPDX-License-Identifier: MIT
"""What many clients read is what one disk could have answered, whatever is killed or changed: judged by a program that
knows nothing of ublkd (tests/linearizability)."""

import os
import random

import pytest

from harness import ublk
from harness.api import loop_spec
from harness.disk import Disk
from harness.history import BLOCK, Clients, judge
from harness.wait import wait_until

pytestmark = [pytest.mark.long, pytest.mark.storm]

_CLIENTS, _BLOCKS = 6, 8
_TURNS = 16  # of what happens meanwhile
_OPERATIONS = 60  # between two turns, at least
_SIZE = 64 << 20


class _Trouble:
    """What happens to the disk while clients use it."""

    def __init__(self, daemon, path):
        self._daemon, self._api, self._path = daemon, daemon.api, path
        self._size = _SIZE

    def kill_worker(self):
        """Its successor takes the queues over."""
        self._api.wait_other_worker("data", self._daemon.kill_worker("data"))

    def kill_manager(self):
        """The worker serves on, and the next manager adopts it."""
        self._daemon.kill()
        self._daemon.start()

    def kill_both(self):
        """The worker first: nothing replaces it before the next manager does."""
        pid = self._daemon.worker_pid("data")
        self._daemon.kill()
        os.kill(pid, 9)
        self._daemon.start()
        self._api.wait_phase("data", "Live")

    def restart(self):
        """Another worker, on request."""
        self._api.restart("data")

    def limit(self):
        """Requests wait, and then no longer."""
        self._patch({"limits": {"read": {"iops": 200}, "write": {"iops": 100}}})
        self._patch({"limits": None})

    def grow(self):
        """By a MiB."""
        self._size += 1 << 20
        os.truncate(self._path, self._size)
        self._patch({"size": self._size})

    def _patch(self, change):
        self._api.ask("PATCH", "/devices/data?wait", 200, json=change)


_EACH = [_Trouble.kill_worker, _Trouble.kill_manager, _Trouble.kill_both, _Trouble.restart, _Trouble.limit, _Trouble.grow]


def _await_answers(clients, count):
    wanted = clients.count() + count
    wait_until(lambda: clients.count() >= wanted, f"{count} more answers")


@pytest.mark.parametrize("queues", [1, 4])
def test_histories_are_linearizable(ext4, file_of, daemon, queues):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    troubles = [each for each in _EACH if each is not _Trouble.grow or ublk.features()["UPDATE_SIZE"]]
    path = file_of(where=ext4, size=_SIZE)
    disk = Disk(daemon.api.create(loop_spec("data", path, queues=queues))["status"]["id"])
    trouble = _Trouble(daemon, path)
    with Clients(disk.path, _CLIENTS, _BLOCKS, seed) as clients:
        for happen in chance.sample(troubles, len(troubles)) + chance.choices(troubles, k=_TURNS - len(troubles)):
            _await_answers(clients, _OPERATIONS)
            print(happen.__name__, flush=True)
            happen(trouble)
        _await_answers(clients, _OPERATIONS)
        history = clients.stop()
    assert clients.failed() == 0
    assert judge(history) == 0
    daemon.api.delete("data")


def test_a_stale_read_after_a_recovery_is_found(ext4, file_of, daemon):
    """The fault is planted below the disk, while it has no worker: blocks have their old content again."""
    path = file_of(where=ext4, size=_SIZE)
    spec = loop_spec("data", path, {"directIo": "off"}, recovery={"trigger": "manual"})
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    with Clients(disk.path, _CLIENTS, _BLOCKS, 1) as clients:
        _await_answers(clients, _OPERATIONS)
        with open(path, "rb") as file:
            old = file.read(_BLOCKS * BLOCK)
        _await_answers(clients, 10 * _OPERATIONS)  # which write each block again
        daemon.kill_worker("data")
        daemon.api.wait_phase("data", "Quiesced")
        with open(path, "r+b") as file:
            file.write(old)
        daemon.api.ask("POST", "/devices/data/recover?wait", 200)
        _await_answers(clients, _OPERATIONS)
        history = clients.stop()
    assert judge(history) == 1
    daemon.api.delete("data")
