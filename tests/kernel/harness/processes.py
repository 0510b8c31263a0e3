# SPDX-License-Identifier: MIT
"""The processes of ublkd on this machine."""

import contextlib
import enum
import os
import pathlib


class Kind(enum.Enum):
    """What a process is for."""

    SUPERVISOR = enum.auto()  # also those that issue its control commands or show partitions
    PATH_WATCHER = enum.auto()
    WORKER = enum.auto()
    SPARE = enum.auto()


_SUPERVISORS = (b"ublkd", b"ublkd-mortal", b"ublkd-paths", b"ublkd-partition")


def _read(pid, name):
    """A file of /proc/PID. Without Python's layers for files: a guest has a hundred processes of the kernel."""
    descriptor = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _kind(pid):
    """What a process that has not ended is for; None: it is none of ublkd's."""
    try:
        name = _read(pid, "comm").strip()
        if not name.startswith(b"ublkd") and not name.isdigit():  # just started by way of a descriptor
            return None
        if _read(pid, "stat").rpartition(b")")[2].split()[0] == b"Z":
            return None
        command = _read(pid, "cmdline")
    except (FileNotFoundError, ProcessLookupError):
        return None
    if b"--path-watcher" in command:  # also before it has taken its name
        return Kind.PATH_WATCHER
    if b"--control-helper" in command or name in _SUPERVISORS:
        return Kind.SUPERVISOR
    if name.startswith(b"ublkd-worker"):
        return Kind.SPARE if b"\0(spare)" in command else Kind.WORKER  # its command line names its device
    return None


def processes():
    """{kind: the pids of all such processes on this machine}."""
    found = {kind: [] for kind in Kind}
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        kind = _kind(pid)
        if kind:
            found[kind].append(pid)
    return found


def spares():
    """The pids of all workers that wait for a device."""
    return processes()[Kind.SPARE]


def workers():
    """The pids of all workers that have a device."""
    return processes()[Kind.WORKER]


def path_watchers():
    """The pids of the processes that look where the paths of served disks lead."""
    return processes()[Kind.PATH_WATCHER]


def threads_of(pid):
    """{directory in /proc: name} of the threads of a process. Those of io_uring may end while they are listed."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found[task] = (task / "comm").read_text(encoding="utf-8").strip()
    return found
