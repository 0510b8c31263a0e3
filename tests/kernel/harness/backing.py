"""Backing stores with a temper."""

import contextlib
import os
import pathlib
import subprocess

from .shell import output, run
from .wait import wait_until


class HeldStore:
    """A device-mapper disk over a file: hold() makes I/O that arrives wait, release() lets it go on."""

    def __init__(self, directory, name, size_mib=32):
        self.file = directory / f"{name}.dm"
        self.name = f"held-{os.getpid()}-{name}"
        self.path = f"/dev/mapper/{self.name}"
        with open(self.file, "wb") as file:
            file.truncate(size_mib << 20)
        self._loop = output("losetup", "--find", "--show", "--direct-io=off", self.file)
        table = f"0 {size_mib * 2048} linear {self._loop} 0"
        run("dmsetup", "create", self.name, "--noudevsync", "--table", table)
        run("dmsetup", "mknodes", self.name)
        wait_until(lambda: os.path.exists(self.path), f"{self.path}")
        self._held = False

    def hold(self):
        """From now on I/O waits."""
        run("dmsetup", "suspend", "--noflush", "--nolockfs", "--noudevsync", self.name)
        self._held = True

    @contextlib.contextmanager
    def holding(self):
        """I/O waits within the block, or until release()."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def release(self):
        """I/O goes on."""
        if self._held:
            run("dmsetup", "resume", "--noudevsync", self.name)
            self._held = False

    def close(self):
        """Remove it."""
        self.release()
        run("dmsetup", "remove", "--retry", "--noudevsync", self.name)
        run("losetup", "--detach", self._loop)


# nbdkit runs these with the arguments of its eval plugin: pwrite HANDLE COUNT OFFSET FLAGS.
_PWRITE = """
if [ -e "{slow}" ]; then
    touch "{marks}/arrived.$4"
    cat >"{marks}/data.$4"
    sleep {delay}
    dd if="{marks}/data.$4" of="{file}" oflag=seek_bytes seek="$4" conv=notrunc status=none
    touch "{marks}/landed.$4"
else
    dd of="{file}" oflag=seek_bytes seek="$4" conv=notrunc status=none
fi
"""
_PREAD = 'dd if="{file}" iflag=skip_bytes,count_bytes skip="$4" count="$3" status=none'


class SlowStore:
    """An nbd disk on which a write that arrives while it is slow takes seconds to land.

    A delay that is the same for every write could not show a late one: the
    newer write would be behind the older one in the same queue.
    """

    def __init__(self, directory, delay=8, size_mib=4):
        self.delay = delay
        self.file = directory / "nbd.img"
        self.path = "/dev/nbd0"
        self._slow = directory / "slow"
        self._marks = directory / "marks"
        self._marks.mkdir()
        with open(self.file, "wb") as file:
            file.truncate(size_mib << 20)
        words = {"file": self.file, "slow": self._slow, "marks": self._marks, "delay": delay}
        socket = directory / "nbd.sock"
        self._server = subprocess.Popen(
            [
                "nbdkit", "--foreground", "--exit-with-parent", "--threads=32", f"--unix={socket}", "eval",
                f"get_size=echo {size_mib}M", "thread_model=echo parallel", "can_write=exit 0",
                "can_flush=exit 0", "flush=exit 0",
                f"pread={_PREAD.format(**words)}", f"pwrite={_PWRITE.format(**words)}",
            ],
        )
        wait_until(socket.exists, "nbdkit listening")
        run("modprobe", "nbd", "nbds_max=1", "max_part=0")
        run("nbd-client", "-unix", socket, self.path, "-block-size", "4096")
        wait_until(lambda: self._size() == size_mib << 20, "the nbd disk")

    @staticmethod
    def _size():
        return int(pathlib.Path("/sys/block/nbd0/size").read_text(encoding="ascii")) * 512

    def slow(self):
        """Writes that arrive from now on take seconds."""
        self._slow.touch()

    def fast(self):
        """Writes that arrive from now on land at once; those under way stay slow."""
        self._slow.unlink()

    def _count(self, what):
        return len(list(self._marks.glob(f"{what}.*")))

    def wait_arrived(self, count):
        """Wait until slow writes are under way."""
        wait_until(lambda: self._count("arrived") >= count, f"{count} slow writes under way")

    def wait_landed(self):
        """Wait until every slow write is in the store."""
        wait_until(lambda: self._count("landed") == self._count("arrived"), "all slow writes in the store")

    def close(self):
        """Remove it."""
        if self._slow.exists():
            self.fast()
        run("nbd-client", "-d", self.path)
        self._server.terminate()
        self._server.wait(60)
