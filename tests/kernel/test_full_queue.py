# SPDX-License-Identifier: MIT
"""A worker dies with every tag of its queue in flight, so it has no command waiting that the kernel could cancel.
Linux 6.12 learned of such a death only from the timeout of a request, by default after 30 s."""

import time

import pytest

from harness.api import loop_spec
from harness.disk import Disk, block

_DEPTH = 4
_APART = 64 << 10  # neighbours would be merged into one write
_PATIENCE = 20  # seconds; below 30, far above what an emulated CPU needs


@pytest.mark.long
def test_a_death_with_all_tags_in_flight_is_noticed(api, daemon, store):
    device = api.create(loop_spec("data", store.path, queues=1, queueDepth=_DEPTH))
    disk = Disk(device["status"]["id"])
    with store.holding():
        writes = [disk.write_later(i * _APART, block("w")) for i in range(_DEPTH)]
        store.wait_arrived(_DEPTH)
        pid = daemon.kill_worker("data")
    begin = time.monotonic()
    api.wait_other_worker("data", pid)
    assert time.monotonic() - begin < _PATIENCE
    assert [write.result() for write in writes] == [None] * _DEPTH
    api.delete("data")
