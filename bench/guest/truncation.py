#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: truncate the backing file of a live disk, and record what each server answers.

usage: truncation.py CONFIGURATION, a JSON file that bench/truncation wrote.
"""

import errno
import json
import mmap
import os
import sys

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import servers
from commands import CommandError, run

COLUMNS = ("read across the end", "read", "write", "read again", "refilled")
_MIB = 1 << 20
_SIZE, _END = 8 * _MIB, 4 * _MIB
_LOST, _BEHIND = 5 * _MIB, 6 * _MIB  # where the acknowledged block is, and another one
_BLOCK = 4096
_DATA, _MEMORY = b"a", b"m"  # what is written, and what is in the reader's buffer before


def _buffer(letter, length):
    buffer = mmap.mmap(-1, length)  # page aligned, as O_DIRECT wants it
    buffer.write(letter * length)
    return buffer


def _io(path, flags, function):
    """Call function(descriptor) past the page cache; return its result, or the name of the error."""
    try:
        descriptor = os.open(path, flags | os.O_DIRECT)
        try:
            return function(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"error ({errno.errorcode[error.errno]})"


def _write(path, offset):
    result = _io(path, os.O_WRONLY, lambda descriptor: os.pwritev(descriptor, [_buffer(_DATA, _BLOCK)], offset))
    return "done" if result == _BLOCK else f"{result}"


def _read(path, offset, length=_BLOCK):
    """Read, and return what the client gets as the last block of its data."""
    buffer = _buffer(_MEMORY, length)
    result = _io(path, os.O_RDONLY, lambda descriptor: os.preadv(descriptor, [buffer], offset))
    if result != length:
        return result if isinstance(result, str) else f"{result} of {length} bytes"
    last = buffer[-_BLOCK:]
    known = {_DATA * _BLOCK: "the data", _MEMORY * _BLOCK: "old memory", bytes(_BLOCK): "zeroes"}
    return known.get(last, "other bytes")


def _cut(path, backing):
    if _write(path, _LOST) != "done" or _read(path, _LOST) != "the data":
        raise CommandError("the disk does not keep a block")
    os.truncate(backing, _END)
    results = {"read across the end": _read(path, _END - _BLOCK, 2 * _BLOCK)}
    results |= {"read": _read(path, _LOST), "write": _write(path, _BEHIND), "read again": _read(path, _LOST)}
    os.truncate(backing, _SIZE)
    return results | {"refilled": _read(path, _LOST)}


def _file(environment):
    """Return a new file beside the one that other benchmarks use."""
    path = os.path.join(os.path.dirname(environment.backends.path("ext4")), "truncation")
    with open(path, "wb", buffering=0) as output:
        output.write(bytes(range(256)) * (_SIZE // 256))
        os.fsync(output.fileno())
    return path


def _measure(environment, row):
    backing = _file(environment)
    try:
        with row.start(row, environment, servers.Want("loop", backing, 1, 32)) as disk:
            run("udevadm", "settle")
            return _cut(disk.path, backing)
    finally:
        os.unlink(backing)


def _attempt(environment, row):
    try:
        return _measure(environment, row)
    except servers.NotApplicable as reason:
        return {"not_applicable": str(reason)}
    except (CommandError, OSError) as problem:
        return {"failed": str(problem)}


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    run("modprobe", "ublk_drv")
    environment = servers.Environment(configuration["programs"], configuration["missing"])
    with open(configuration["results"], "w", encoding="utf-8") as output:
        output.write(json.dumps({"about": {"kernel": os.uname().release}}) + "\n")
        for name in configuration["rows"]:
            result = {"row": name, **_attempt(environment, servers.ROWS[name])}
            output.write(json.dumps(result) + "\n")
            output.flush()
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
