"""No write of a dead worker may reach the backing store after its successor has begun.

The store is slow for writes that arrive while it is told so. A worker is
killed with such writes on their way; they are replayed by its successor, the
application is told that they are done, and writes newer data. When the old
worker's writes land at last, the newer data must still be there.

The flag is taken away before the recovery: replayed writes that were as slow
as the first ones would land behind them, and hide what is to be seen.
"""

import pytest

from harness import programs, ublk
from harness.api import loop_spec
from harness.disk import Disk, block

_BLOCKS = 8
_SIZE = 4096
_APART = 64 << 10  # neighbours would be merged into one write


def _write_all(disk, letter):
    return [disk.write_later(i * _APART, block(letter)) for i in range(_BLOCKS)]


def _survivors(daemon, store, path):
    """Go through it; return how many of the newer blocks are found in the end."""
    api = daemon.api
    device = api.create(loop_spec("data", store.path, queues=1, dataPath=path, recovery={"onCrash": "reissue"}))
    disk = Disk(device["status"]["id"])
    store.slow()
    older = _write_all(disk, "o")
    store.wait_arrived(_BLOCKS)
    pid = daemon.kill_worker("data")
    store.fast()
    assert [write.result() for write in older] == [None] * _BLOCKS
    api.wait_other_worker("data", pid)
    newer = _write_all(disk, "n")
    assert [write.result() for write in newer] == [None] * _BLOCKS
    store.wait_landed()
    found = [disk.read(i * _APART, _SIZE) for i in range(_BLOCKS)]
    api.delete("data")
    assert all(data in (block("o"), block("n")) for data in found)
    return sum(data == block("n") for data in found)


_HAS = ublk.features()
_PATHS = ["copy", "user-copy"] + (["zero-copy"] if _HAS["AUTO_BUF_REG"] else [])


@pytest.mark.long
@pytest.mark.parametrize("batch", [False, True] if _HAS["BATCH_IO"] else [False])
@pytest.mark.parametrize("path", _PATHS)
def test_a_late_write_does_not_overwrite_newer_data(path, batch, store, make_daemon):
    daemon = make_daemon(more_options=[] if batch else ["--ignore-feature=BATCH_IO"]).start()
    assert _survivors(daemon, store, path) == _BLOCKS


@pytest.mark.long
def test_without_the_fence_newer_data_is_lost(store, make_daemon):
    """Proves that the test above can fail: the same steps, with the fence taken out.

    By copy: with zero copy the pages of the late write belong to the request,
    and the driver waits for them by itself.
    """
    daemon = make_daemon(worker=programs.worker_without_fence()).start()
    assert _survivors(daemon, store, "copy") < _BLOCKS
