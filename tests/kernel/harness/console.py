# SPDX-License-Identifier: MIT
"""The console of this guest: what its host has of it."""

import ctypes
import os
import pathlib
import re

_AT_FDCWD, _AT_STATX_FORCE_SYNC, _STATX_SIZE = -100, 0x2000, 0x200  # linux/fcntl.h, linux/stat.h
_libc = ctypes.CDLL(None, use_errno=True)


def _file():
    """The host shows the guest the directory with the console's output."""
    (files,) = re.findall(r"vm_files=(\S+)", pathlib.Path("/proc/cmdline").read_text(encoding="ascii"))
    return pathlib.Path(files, "kernel.log")


def _ask_for_size(path):
    """The guest asks the host for the size of a file once (virtiofsd: cache=always), or where a program wants that."""
    answer = ctypes.create_string_buffer(256)
    if _libc.statx(_AT_FDCWD, os.fsencode(path), _AT_STATX_FORCE_SYNC, _STATX_SIZE, answer) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _whole(lines):
    """journald writes a line in parts, and the kernel prints between them: take out what begins within a line."""
    return re.sub(r"(?<=[^\n])\[ *\d+\.\d{6}\] [^\n]*\n", "", lines)


def text():
    """All of it so far; the host may lag behind. Read from the host, not from what the guest has of the file."""
    path, parts = _file(), []
    _ask_for_size(path)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        while part := os.read(file, 1 << 16):
            parts.append(part)
    finally:
        os.close(file)
    return _whole(b"".join(parts).decode(errors="replace").replace("\r\n", "\n"))


def lines_of(program, start=""):
    """What the journal has printed of this program there, oldest first: [line]. `start`: only the lines that begin so."""
    return re.findall(rf"^(?:\[ *[\d.]+\] )?{re.escape(program)}\[\d+\]: ({re.escape(start)}.*)$", text(), re.MULTILINE)
