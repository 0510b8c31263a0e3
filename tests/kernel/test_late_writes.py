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


_PART = 1 << 20  # of the store, for each path


def _write_all(disk, letter):
    return [disk.write_later(i * _APART, block(letter)) for i in range(_BLOCKS)]


def _assert_written(writes):
    assert [write.result() for write in writes] == [None] * len(writes)


def _survivors(daemon, store, paths):
    """Go through it, with a disk for each path; return how many newer blocks each is found to have in the end."""
    api = daemon.api
    disks = {}
    for part, path in enumerate(paths):
        where = {"target": {"offset": part * _PART}, "size": _PART}
        spec = loop_spec(path, store.path, **where, queues=1, dataPath=path, recovery={"onCrash": "reissue"})
        disks[path] = Disk(api.create(spec)["status"]["id"])
    store.slow()
    older = [write for disk in disks.values() for write in _write_all(disk, "o")]
    store.wait_arrived(len(older))
    pids = {path: daemon.kill_worker(path) for path in paths}
    store.fast()
    _assert_written(older)
    for path, pid in pids.items():
        api.wait_other_worker(path, pid)
    _assert_written([write for disk in disks.values() for write in _write_all(disk, "n")])
    store.wait_landed()
    survivors = {}
    for path, disk in disks.items():
        found = [disk.read(i * _APART, _SIZE) for i in range(_BLOCKS)]
        assert all(data in (block("o"), block("n")) for data in found)
        survivors[path] = sum(data == block("n") for data in found)
        api.delete(path)
    return survivors


_HAS = ublk.features()
_PATHS = ["copy", "user-copy"] + (["zero-copy"] if _HAS["AUTO_BUF_REG"] else [])


@pytest.mark.long
@pytest.mark.parametrize("batch", [False, True] if _HAS["BATCH_IO"] else [False])
def test_a_late_write_does_not_overwrite_newer_data(batch, store, make_daemon):
    daemon = make_daemon(more_options=[] if batch else ["--ignore-feature=BATCH_IO"]).start()
    assert _survivors(daemon, store, _PATHS) == {path: _BLOCKS for path in _PATHS}


@pytest.mark.long
def test_without_the_fence_newer_data_is_lost(store, make_daemon):
    """Proves that the test above can fail: the same steps, with the fence taken out.

    By copy: with zero copy the pages of the late write belong to the request,
    and the driver waits for them by itself.
    """
    daemon = make_daemon(worker=programs.worker_without_fence()).start()
    assert _survivors(daemon, store, ["copy"])["copy"] < _BLOCKS
