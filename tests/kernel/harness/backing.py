# SPDX-License-Identifier: MIT
"""A backing store with a temper."""

import contextlib
import fcntl
import pathlib
import subprocess

from . import programs
from .shell import run
from .wait import wait_until


class TestyStore:
    """An nbd disk whose reads and writes can be held, and whose writes can land late; zeroing and trimming are writes.

    A write that arrives while it is slow takes seconds to land, or as long
    as the test wants. A delay that is the same for every write could not show
    a late one: the newer write would be behind the older one in the same
    queue.
    """

    __test__ = False

    def __init__(self, directory, size_mib=4):
        self.file = directory / "nbd.img"
        self.path = "/dev/nbd0"
        self._slow = directory / "slow"
        self._shore = open(directory / "shore", "wb")  # pylint: disable=consider-using-with
        self._held = directory / "held"
        self._held_reads = directory / "held-reads"
        self._failing = directory / "failing"
        self._marks = directory / "marks"
        self._marks.mkdir()
        with open(self.file, "wb") as file:
            file.truncate(size_mib << 20)
        socket, listens = directory / "nbd.sock", directory / "nbd.pid"
        self._server = subprocess.Popen(
            [
                "nbdkit", "--foreground", "--exit-with-parent", "--threads=32", f"--unix={socket}",
                f"--pidfile={listens}", programs.testy_store(), f"file={self.file}", f"directory={directory}",
            ],
        )
        wait_until(listens.exists, "nbdkit listening")
        run("modprobe", "nbd", "nbds_max=1", "max_part=0")
        # While a program has it open, such as udev, it is in use, and the driver refuses a client (nbd_genl_connect()).
        client = "nbd-client", "-unix", socket, self.path, "-block-size", "4096"
        refusals = []
        wait_until(lambda: self._connects(client, refusals), lambda: f"nbd-client connected: {refusals[-1]}")
        wait_until(lambda: self._size() == size_mib << 20, "the nbd disk")

    @staticmethod
    def _connects(client, refusals):
        result = run(*client, check=False)
        refusals.append(result.stdout)
        return result.returncode == 0

    @staticmethod
    def _size():
        return int(pathlib.Path("/sys/block/nbd0/size").read_text(encoding="ascii")) * 512

    def slow(self, seconds):
        """Writes that arrive from now on take that long, or until they are let land."""
        fcntl.flock(self._shore, fcntl.LOCK_EX)
        self._slow.write_text(f"{seconds}\n")

    def fast(self):
        """Later writes land at once; writes under way stay slow."""
        self._slow.unlink()

    @contextlib.contextmanager
    def _holding(self, path):
        """What finds the file waits for its lock: processes that looked again and again would load the machine."""
        draft = path.with_suffix(".draft")
        with open(draft, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            draft.rename(path)
            try:
                yield
            finally:
                path.unlink()

    def holding(self):
        """Writes that arrive within the block wait for its end."""
        return self._holding(self._held)

    def holding_reads(self):
        """Reads that arrive within the block wait for its end."""
        return self._holding(self._held_reads)

    @contextlib.contextmanager
    def failing(self):
        """Writes and flushes that arrive within the block fail with EIO."""
        self._failing.touch()
        try:
            yield
        finally:
            self._failing.unlink()

    def wait_asked(self, count=1):
        """Wait until held reads are under way."""
        wait_until(lambda: self._count("asked") >= count, f"{count} reads under way")

    def _count(self, what):
        return len(list(self._marks.glob(f"{what}.*")))

    def wait_arrived(self, count):
        """Wait until held or slow writes are under way."""
        wait_until(lambda: self._count("arrived") >= count, f"{count} writes under way")

    def land(self):
        """Let slow writes land, of which none arrives any more."""
        fcntl.flock(self._shore, fcntl.LOCK_UN)

    def wait_landed(self):
        """Wait until every slow write is in the store."""
        wait_until(lambda: self._count("landed") == self._count("arrived"), "all slow writes in the store")

    def close(self):
        """Remove it."""
        self._slow.unlink(missing_ok=True)
        self._shore.close()
        run("nbd-client", "-d", self.path)
        # While it has an opener, such as udev, it is in use, and the next client is refused.
        wait_until(lambda: not pathlib.Path("/sys/block/nbd0/pid").exists(), "the nbd disk free")
        self._server.terminate()
        self._server.wait(60)
