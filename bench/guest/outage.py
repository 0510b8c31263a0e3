# SPDX-License-Identifier: MIT
"""Kills the servers of many disks at the same time, and waits until each disk answers again."""

import mmap
import os
import signal
import time

_BLOCK = 4096


class Outage:
    """The disks, open since before the kill: an open() would wait for the recovery, too. Use it in a `with` statement."""

    def __init__(self, paths):
        self._paths = paths
        self._files = []
        self._buffer = mmap.mmap(-1, _BLOCK)  # aligned, as direct I/O wants it

    def __enter__(self):
        self._files = [os.open(path, os.O_RDONLY | os.O_DIRECT) for path in self._paths]
        return self

    def __exit__(self, *_):
        for file in self._files:
            os.close(file)

    def _read(self):
        """Read the first block of each disk, one disk after the other: a read waits as long as its disk has no server."""
        for file in self._files:
            os.preadv(file, [self._buffer], 0)

    def measure(self, pids):
        """Return the seconds from the first kill to the last one, and to the answer of the last disk; and for the same reads
        without a kill."""
        began = time.monotonic()
        self._read()
        calm = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        self._read()
        ended = time.monotonic()
        return {"killed_s": round(killed - calm, 3), "recover_s": round(ended - calm, 3), "read_s": round(calm - began, 3)}
