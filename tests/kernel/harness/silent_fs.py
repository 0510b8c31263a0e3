# SPDX-License-Identifier: MIT
"""A file system in user space (FUSE) with one file, whose server can be stopped: then it does not answer. It can
also have a quota."""

import contextlib
import ctypes
import errno
import mmap
import os
import signal
import stat
import struct

from .halt import halt

_LOOKUP, _GETATTR, _OPEN, _READ, _WRITE, _RELEASE = 1, 3, 14, 15, 16, 18
_FSYNC, _FLUSH, _INIT, _STATFS = 20, 25, 26, 17
_FUSE_FORGET, _FUSE_BATCH_FORGET, _FUSE_INTERRUPT = 2, 42, 36
_ROOT, _FILE = 1, 2
_NAME = b"disk.img"
_SIZE = 1 << 20
_HEADER = struct.Struct("<IIQQIIII")
_ROOM = struct.Struct("<Q")
_REQUEST_MAX = 1 << 20


def _attributes(node):
    mode, size = (stat.S_IFDIR | 0o755, 0) if node == _ROOT else (stat.S_IFREG | 0o644, _SIZE)
    return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def _answer(opcode, node, body, data, room):
    """Return the answer to the kernel, with nothing that it may cache; or a negative errno."""
    if opcode == _INIT:
        return struct.pack("<IIIIHHII8I", 7, 31, 0, 0, 16, 12, 128 << 10, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    if opcode == _LOOKUP:
        if body.rstrip(b"\0") != _NAME:
            return -errno.ENOENT
        return struct.pack("<4Q2I", _FILE, 0, 0, 0, 0, 0) + _attributes(_FILE)
    if opcode == _GETATTR:
        return struct.pack("<QII", 0, 0, 0) + _attributes(node)
    if opcode == _OPEN:
        return struct.pack("<QII", 0, 0, 0)
    if opcode == _READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(data[offset : offset + size])
    if opcode == _WRITE:
        _, offset, size = struct.unpack_from("<QQI", body)
        if offset + size > _ROOM.unpack_from(room)[0]:
            return -errno.EDQUOT
        data[offset : offset + size] = body[40 : 40 + size]
        return struct.pack("<II", size, 0)
    if opcode == _STATFS:
        return struct.pack("<5Q4I6I", 0, 0, 0, 0, 0, 4096, 255, 4096, 0, *[0] * 6)
    if opcode in (_RELEASE, _FLUSH, _FSYNC):
        return b""
    return -errno.ENOSYS


def _serve(device, room):
    data = bytearray(_SIZE)
    while True:
        try:
            request = os.read(device, _REQUEST_MAX)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            return
        _, opcode, unique, node, *_ = _HEADER.unpack_from(request)
        if opcode in (_FUSE_FORGET, _FUSE_BATCH_FORGET, _FUSE_INTERRUPT):
            continue
        answer = _answer(opcode, node, request[_HEADER.size :], data, room)
        error, answer = (answer, b"") if isinstance(answer, int) else (0, answer)
        with contextlib.suppress(OSError):
            os.write(device, struct.pack("<IiQ", 16 + len(answer), error, unique) + answer)


class SilentFs:
    """A file system that answers, unless silent() stops it."""

    def __init__(self, path, pid, room):
        self.path = path
        self._pid = pid
        self._room = room

    def set_room(self, size):
        """Fail writes behind the first `size` bytes with EDQUOT."""
        _ROOM.pack_into(self._room, 0, size)

    @contextlib.contextmanager
    def silent(self):
        """Answer no request until the end of the block."""
        halt(self._pid)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)


@contextlib.contextmanager
def silent_fs(where):
    """Mounted at `where`, which is made."""
    where.mkdir()
    device = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"silent", os.fsencode(where), b"fuse", 0, options.encode()) < 0:
        raise OSError(ctypes.get_errno(), "mount")
    room = mmap.mmap(-1, _ROOM.size)  # shared with the server
    _ROOM.pack_into(room, 0, _SIZE)
    pid = os.fork()
    if pid == 0:
        try:
            _serve(device, room)
        finally:
            os._exit(0)
    os.close(device)
    try:
        yield SilentFs(where / _NAME.decode(), pid, room)
    finally:
        libc.umount2(os.fsencode(where), 2)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
