# SPDX-License-Identifier: MIT
"""Control groups of workers, as the kernel shows them."""

import os
import pathlib

from .disk import block
from .wait import wait_until

ROOT = pathlib.Path("/sys/fs/cgroup")

# A device whose worker holds writes back, with their bytes in its memory, and may not have that much.
SATISFIED = {"dataPath": "copy", "queues": 1, "queueDepth": 64, "maxIoSize": "1MiB"}
HUNGRY = SATISFIED | {"limits": {"write": {"bytesPerSec": "1MiB"}}, "resources": {"memoryMax": "16MiB"}}


def group_of(pid):
    """The directory of a process's group."""
    (line,) = [line for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines() if line.startswith("0::")]
    return ROOT / line.removeprefix("0::/")


def own_group(pid):
    """Wait until a worker has a group of its own; return its directory."""
    wait_until(lambda: group_of(pid).name == f"worker-{pid}", lambda: f"a group of its own for {pid}: {group_of(pid)}")
    return group_of(pid)


def read(group, name):
    """What a file of a group has."""
    return (group / name).read_text(encoding="ascii").strip()


def move(pid, group):
    """Put a process into a group."""
    (group / "cgroup.procs").write_text(str(pid), encoding="ascii")


def write_more_than_fits(disk):
    """Writes to a HUNGRY disk that wait in its worker."""
    return [disk.write_later(number << 20, block("w", 1 << 20)) for number in range(40)]


def is_alive(pid):
    """Whether a process is there, and not waiting to be reaped."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def disk_number(path):
    """ "MAJOR:MINOR" of a block device."""
    number = os.stat(path).st_rdev
    return f"{os.major(number)}:{os.minor(number)}"
