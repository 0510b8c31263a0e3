# SPDX-License-Identifier: MIT
"""Orders to a worker that was taken over (tests/kernel/hostile), and what came of them."""

import contextlib
import ctypes
import errno
import mmap
import os
import pathlib
import socket
import struct

from .disk import Disk, block
from .wait import wait_until

_VICTIMS = struct.Struct("=iiii108s108s108s")  # struct page of tests/kernel/hostile/hostile.c
_STATE = struct.Struct("=IIII")
_DEED = struct.Struct("=I")
# enum deed of hostile.h
_DEEDS = "none ready news largest grown close close-channel notice spin end-main call-32 stay eat notice-and-exit spin-all".split()
_CLAIMS = struct.Struct("=256s")
_REPORT = _VICTIMS.size + _STATE.size + _DEED.size + _CLAIMS.size
_SIZE = _REPORT + 32 * 1024
_SHM_KEY = 0x75626C6B
_IPC_CREAT, _IPC_RMID = 0o1000, 0


@contextlib.contextmanager
def _shared_memory():
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(_SHM_KEY, 4096, _IPC_CREAT | 0o600)
    assert number >= 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.shmctl(number, _IPC_RMID, None)


@contextlib.contextmanager
def _message_queue():
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.msgget(_SHM_KEY, _IPC_CREAT | 0o600)
    assert number >= 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.msgctl(number, _IPC_RMID, None)


@contextlib.contextmanager
def victims():
    """What root has on a machine beside ublkd; return the port of a service."""
    with _shared_memory(), _message_queue(), socket.socket(socket.AF_UNIX) as abstract, socket.socket() as service:
        abstract.bind("\0ublkd-victim")
        abstract.listen()
        service.bind(("127.0.0.1", 0))
        service.listen()
        yield service.getsockname()[1]


def deed_number(deed):
    """What $UBLKD_HOSTILE_DEED says for a deed."""
    return str(_DEEDS.index(deed))


class Eaters:
    """Workers that eat memory as soon as they have their CONFIG, of a device that is named later. Make it before a daemon
    that is started."""

    _LAYOUT = struct.Struct("=64sII")  # struct orders of tests/kernel/hostile/first_moment.c

    def __init__(self, directory):
        self._path = pathlib.Path(directory) / "orders"
        self._path.write_bytes(bytes(self._LAYOUT.size))
        self._path.chmod(0o666)

    def name(self, device):
        """From now on the workers of this device eat; "": none does."""
        with open(self._path, "r+b") as file, mmap.mmap(file.fileno(), self._LAYOUT.size) as page:
            page[:64] = device.encode().ljust(64, b"\0")

    def eaten(self):
        """(MiB that one worker has eaten at most, how many have begun)."""
        return self._LAYOUT.unpack(self._path.read_bytes())[1:]


class Hostile:
    """A worker that was taken over; `disk`: that it serves."""

    def __init__(self, directory, pid, disk: Disk):
        self._path = pathlib.Path(directory) / str(pid)
        self._disk = disk

    def attack(self, daemon, victim, port):
        """Have it try everything, on the worker of the device `victim` and a service at `port`; return {attack: None if it
        was done, else the name of the error}."""
        named = daemon.runtime / "workers" / daemon.api.get(victim)["uid"]
        paths = [named.with_suffix(".region"), named.with_suffix(".sock"), daemon.runtime / "ublkd.sock"]
        assert all(path.exists() for path in paths), paths
        with open(self._path, "r+b") as file, mmap.mmap(file.fileno(), _SIZE) as page:
            processes = daemon.pid, daemon.worker_pid(victim)
            _VICTIMS.pack_into(page, 0, *processes, _SHM_KEY, port, *(bytes(path) for path in paths))
            _STATE.pack_into(page, _VICTIMS.size, 1, 0, 0, 0)

            def state():
                return _STATE.unpack_from(page, _VICTIMS.size)

            def done():
                self._disk.write(0, block("h"))  # the thread of the queue comes by with a request
                ordered, main, ring, _ = state()
                return main == ordered and ring == ordered

            wait_until(done, lambda: f"the attacks are over; {state()}")
            text = page[_REPORT : _REPORT + state()[3]].decode()
        results = [line.rpartition(": ") for line in text.splitlines()]
        return {
            name: None if result == "0" else errno.errorcode.get(-int(result), result) for name, _, result in results
        }

    def do(self, deed):
        """Have its main thread do that; return at once. A flood ends with the worker."""
        with open(self._path, "r+b") as file, mmap.mmap(file.fileno(), _SIZE) as page:
            _DEED.pack_into(page, _VICTIMS.size + _STATE.size, _DEEDS.index(deed))

    def claim(self, claims):
        """Have it send these claims (JSON, without the braces around it) to the next supervisor."""
        with open(self._path, "r+b") as file, mmap.mmap(file.fileno(), _SIZE) as page:
            _CLAIMS.pack_into(page, _VICTIMS.size + _STATE.size + _DEED.size, claims.encode())

    def has_done(self):
        """Whether the deed is done."""
        with open(self._path, "r+b") as file, mmap.mmap(file.fileno(), _SIZE) as page:
            return _DEED.unpack_from(page, _VICTIMS.size + _STATE.size)[0] == 0
