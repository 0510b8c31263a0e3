# SPDX-License-Identifier: MIT
"""A block device as an application sees it."""

import errno
import fcntl
import mmap
import os
import pathlib
import struct
import threading

from . import ublk
from .wait import TIMEOUT, wait_until


def _aligned(data):
    buffer = mmap.mmap(-1, len(data))  # page aligned, as O_DIRECT wants it
    buffer.write(data)
    return buffer


def write(path, offset, data, flags=os.O_DIRECT):
    """Write past the page cache."""
    descriptor = os.open(path, os.O_WRONLY | flags)
    try:
        written = os.pwritev(descriptor, [_aligned(data)], offset)
        assert written == len(data), f"short write of {written} bytes"
    finally:
        os.close(descriptor)


def read(path, offset, length, flags=os.O_DIRECT):
    """Read past the page cache."""
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        buffer = mmap.mmap(-1, length)
        count = os.preadv(descriptor, [buffer], offset)
        assert count == length, f"short read of {count} bytes"
        return bytes(buffer)
    finally:
        os.close(descriptor)


# include/uapi/linux/fs.h
BLKDISCARD = 0x1277
BLKZEROOUT = 0x127F


def zero(path, request, offset, length):
    """Discard or zero a range of a disk: BLKDISCARD or BLKZEROOUT."""
    descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT)
    try:
        fcntl.ioctl(descriptor, request, struct.pack("=QQ", offset, length))
    finally:
        os.close(descriptor)


def block(letter, length=4096):
    """A block of data that differs from others."""
    return letter.encode() * length


class Background:
    """An I/O call that may take long, on a thread of its own."""

    def __init__(self, function, *arguments):
        self._error = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(function, *arguments), daemon=True)
        self._thread.start()

    def _run(self, function, *arguments):
        try:
            function(*arguments)
        except OSError as error:
            self._error = error.errno
        except BaseException as error:  # pylint: disable=broad-except
            self._error = repr(error)
        finally:
            self._done.set()

    @property
    def done(self):
        """Whether it has returned."""
        return self._done.is_set()

    def wait_held(self):
        """Wait until the kernel holds the thread, in open() or in the request itself, because the disk has no server.

        open() is held where another process that has read the disk ends: it closes the disk under a lock and waits
        for its own request.
        """
        wait_until(lambda: self.done or self._state() == "D", "an I/O call that waits for the disk")
        assert not self.done, f"the I/O call has returned: {self.result()}"

    def _state(self):
        """The kernel's letter for the state of the thread; None: it has ended."""
        try:
            stat = pathlib.Path(f"/proc/self/task/{self._thread.native_id}/stat").read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        return stat.rpartition(")")[2].split()[0]

    def result(self, timeout=TIMEOUT):
        """Wait for it: None, or the name of the error ("EIO")."""
        wait_until(self._done.is_set, "the answer to an I/O call", timeout)
        return errno.errorcode.get(self._error, self._error) if self._error else None


class Disk:
    """/dev/ublkbN."""

    def __init__(self, number):
        self.number = number
        self.path = f"/dev/ublkb{number}"
        self.sys = pathlib.Path(f"/sys/block/ublkb{number}")

    def exists(self):
        """Whether the kernel has it."""
        return self.sys.exists()

    def attribute(self, name):
        """A file of /sys/block/ublkbN."""
        return (self.sys / name).read_text().strip()

    def queue(self, name):
        """A limit of the queue."""
        text = self.attribute(f"queue/{name}")
        return int(text) if text.isdigit() else text

    def size(self):
        """Bytes."""
        return int(self.attribute("size")) * 512

    def completed(self):
        """How many reads and writes were answered so far."""
        fields = self.attribute("stat").split()
        return int(fields[0]) + int(fields[4])

    def inflight(self):
        """How many requests wait for an answer."""
        return sum(int(field) for field in self.attribute("inflight").split())

    def wait_inflight(self, count=1):
        """Wait until requests are under way."""
        wait_until(lambda: self.inflight() >= count, lambda: f"{count} requests in flight, not {self.inflight()}")

    def wait_progress(self, count=1):
        """Wait until more requests were answered."""
        before = self.completed()
        wait_until(lambda: self.completed() >= before + count, f"{count} more requests answered")

    def wait_timeout_set(self):
        """Wait until ublkd has set the timeout of requests, which it does for old kernels. These wait for all requests of the
        disk before they set it, and keep new ones from the worker meanwhile. So wait for it before requests that the store is
        to keep in flight."""
        if ublk.is_new():
            return
        wait_until(lambda: self.queue("io_timeout") == 500, "the timeout of the disk")

    def write(self, offset, data):
        """Write past the page cache."""
        write(self.path, offset, data)

    def read(self, offset, length):
        """Read past the page cache."""
        return read(self.path, offset, length)

    def flush(self):
        """Have what was written reach the store."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write_later(self, offset, data, flags=os.O_DIRECT):
        """Write from a thread; ask the returned object for the result."""
        return Background(write, self.path, offset, data, flags)

    def zero_later(self, request, offset, length):
        """Discard or zero from a thread; ask the returned object for the result."""
        return Background(zero, self.path, request, offset, length)

    def read_later(self, offset, length):
        """Read from a thread; ask the returned object for the result."""
        return Background(read, self.path, offset, length)
