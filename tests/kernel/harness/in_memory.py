# SPDX-License-Identifier: MIT
"""Copies, in the guest's memory, of the programs that tests start over and over, and of their libraries.

The guest's root is an overlay of memory over the host's files. To open one of those asks the host; a program that is
started opens some twenty. A copy is in the layer of the guest. udev's program is not copied: ublkd knows the processes
of udev, which are there already, by their file.
"""

import contextlib
import pathlib
import re
import shutil

from . import programs
from .shell import Failed, output

_TOOLS = (
    "bash", "blockdev", "dmsetup", "fio", "losetup", "mkfs.ext4", "mount", "nbdkit", "sfdisk", "sh", "sleep", "sysctl",
    "umount",
)


def _programs():
    yield from map(pathlib.Path, (programs.ublkd(), programs.ublkd_helper(), programs.ublkd_mortal(), programs.worker()))
    yield from (pathlib.Path(path) for path in map(shutil.which, _TOOLS) if path)


def _libraries(program):
    with contextlib.suppress(Failed):  # a script has none
        yield from map(pathlib.Path, re.findall(r"(/\S+) \(0x", output("ldd", program)))


def copy_programs():
    """Copy them; whatever runs them from now on finds them in memory."""
    found = {path.resolve() for program in _programs() for path in (program, *_libraries(program))}
    for path in found:
        fresh = path.with_name(path.name + ".in-memory")
        shutil.copy2(path, fresh)
        fresh.rename(path)
