# SPDX-License-Identifier: MIT
"""On which NUMA node a process's memory lies, read from the page tables: also that of rings, which numa_maps leaves out."""

import os
import pathlib
import re
import struct
from dataclasses import dataclass

from .wait import wait_until

_PAGE = os.sysconf("SC_PAGESIZE")
_ENTRY = struct.Struct("<Q")
_PRESENT = 1 << 63
_FRAME = (1 << 55) - 1


def nodes():
    """How many nodes this machine has."""
    return len(list(pathlib.Path("/sys/devices/system/node").glob("node[0-9]*")))


def node_of_cpu(cpu):
    """The node of a CPU."""
    (link,) = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}").glob("node[0-9]*")
    return int(link.name[4:])


def _frames():
    """[(node, first frame, frame after the last)] of each zone with memory."""
    zones = pathlib.Path("/proc/zoneinfo").read_text(encoding="ascii")
    pattern = r"Node (\d+), zone +\w+\n(?:(?!Node ).*\n)*? +spanned +(\d+)\n(?:(?!Node ).*\n)*? +start_pfn: +(\d+)"
    found = [(int(node), int(start), int(start) + int(spanned)) for node, spanned, start in re.findall(pattern, zones)]
    return [zone for zone in found if zone[1] < zone[2]]


@dataclass(frozen=True)
class Mapping:
    """A line of /proc/PID/maps."""

    start: int
    end: int
    access: str
    name: str


def mappings(pid):
    """What a process has mapped."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        fields = line.split(None, 5)
        start, end = (int(address, 16) for address in fields[0].split("-"))
        found.append(Mapping(start, end, fields[1], fields[5] if len(fields) > 5 else ""))
    return found


def pages(pid, start, end):
    """{address: node} of the pages that are there."""
    zones, found = _frames(), {}
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        data = os.pread(pagemap.fileno(), (end - start) // _PAGE * _ENTRY.size, start // _PAGE * _ENTRY.size)
    for index, (entry,) in enumerate(_ENTRY.iter_unpack(data)):
        if entry & _PRESENT:
            frame = entry & _FRAME
            (found[start + index * _PAGE],) = (node for node, first, last in zones if first <= frame < last)
    return found


def anonymous_pages(pid):
    """The same of all private memory of a process that no file is behind."""
    found = {}
    for mapping in mappings(pid):
        if mapping.access == "rw-p" and mapping.name in ("", "[heap]"):
            found.update(pages(pid, mapping.start, mapping.end))
    return found


def stack_page(pid, task):
    """{address: node} of the page at which the stack of a thread has got to, once it waits."""
    syscall = pathlib.Path(f"/proc/{pid}/task/{task}/syscall")
    fields = wait_until(lambda: syscall.read_text(encoding="ascii").split()[1:], f"the thread {task} waiting")
    start = int(fields[-2], 16) // _PAGE * _PAGE  # one that runs says no more than "running"
    return pages(pid, start, start + _PAGE)
