# SPDX-License-Identifier: MIT
"""What writers write and flush until the power is cut, and what they may rely on after it.

The ledger is on the host: it has the last number of each writer for which all that the writer had written was flushed.
A writer appends each number to one file, and replaces one of a few others by it, as a program does that saves a document."""

import os
import pathlib
import subprocess
import sys

_LEDGER = pathlib.Path(os.environ["UBLKD_LEDGER"])
_DOCUMENTS = 3
_WRITER = """
import os, sys
top, ledger, number, documents = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
top = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
def flushed(path, flags, text):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o600, dir_fd=top)
    os.write(file, text)
    os.fsync(file)
    os.close(file)
with open(ledger, "wb", buffering=0) as kept:
    os.pwrite(kept.fileno(), b"%020d" % number, 0)
    while True:
        number += 1
        flushed("numbers", os.O_APPEND, b"%d\\n" % number)
        flushed("draft", os.O_TRUNC, b"%d\\n" % number)
        os.rename("draft", "document%d" % (number % documents), src_dir_fd=top, dst_dir_fd=top)
        os.fsync(top)
        os.pwrite(kept.fileno(), b"%020d" % number, 0)
"""


def acknowledged(point):
    """The last number that the writer may rely on."""
    path = _LEDGER / point.name
    return int(path.read_text(encoding="ascii") or 0) if path.exists() else 0


def _lines(path):
    return [int(line) for line in path.read_text(encoding="ascii").split("\n")[:-1]] if path.exists() else []


def written(point):
    """How many numbers are there."""
    return len(_lines(point / "numbers"))


def losses(point):
    """What is lost of that, or damaged: all numbers are there, and each document is whole and is the last one, or newer."""
    last, numbers = acknowledged(point), _lines(point / "numbers")
    lost = []
    if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < last:
        lost.append(f"{last} numbers were flushed, and there are {len(numbers)}, of which the last are {numbers[-3:]}")
    for flushed in range(max(1, last - _DOCUMENTS + 1), last + 1):
        name = f"document{flushed % _DOCUMENTS}"
        found = _lines(point / name)
        if len(found) != 1 or found[0] < flushed or found[0] % _DOCUMENTS != flushed % _DOCUMENTS:
            lost.append(f"{name} had {flushed}, and has {found}")
    return lost


def start_writer(point):
    """Start a writer that goes on until the power is cut; return its first number."""
    number = written(point)
    subprocess.Popen(  # pylint: disable=consider-using-with
        [sys.executable, "-c", _WRITER, point, _LEDGER / point.name, str(number), str(_DOCUMENTS)], start_new_session=True
    )
    return number
