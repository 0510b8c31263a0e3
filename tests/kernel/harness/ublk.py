# SPDX-License-Identifier: MIT
"""What the kernel shows of ublk, without ublkd."""

import json
import os
import pathlib
import re
import subprocess

from . import programs
from .shell import output, run
from .wait import wait_until

DEAD, LIVE, QUIESCED, FAIL_IO = range(4)


def numbers():
    """The numbers of all ublk devices, also of those without a disk."""
    found = (re.fullmatch(r"ublkc(\d+)", entry.name) for entry in pathlib.Path("/sys/class/ublk-char").glob("*"))
    return sorted(int(match[1]) for match in found if match)


def _identity(number):
    """What distinguishes a device from the next one with its number; None: there is none."""
    try:
        return os.stat(f"/sys/class/ublk-char/ublkc{number}").st_ino
    except FileNotFoundError:
        return None


def disks():
    """The numbers of all ublk disks."""
    found = (re.fullmatch(r"ublkb(\d+)", entry.name) for entry in pathlib.Path("/sys/block").glob("ublkb*"))
    return sorted(int(match[1]) for match in found if match)


def info(number):
    """What the driver says of a device."""
    return json.loads(output(programs.stranger(), "info", number))


def is_known(number):
    """Return whether the driver has such a device: while it has openers, longer than /sys shows it."""
    return run(programs.stranger(), "info", number, check=False).returncode == 0


def _is_from(major, minor):
    """Whether the kernel is that one or newer."""
    return tuple(int(number) for number in os.uname().release.split(".")[:2]) >= (major, minor)


def is_new():
    """Of the two kernels that are tested, the newer."""
    return _is_from(7, 0)


def features():
    """Nothing but what the tests must know of a kernel."""
    everywhere = ("USER_COPY",)
    newer = (
        "SUPPORT_ZERO_COPY", "AUTO_BUF_REG", "BATCH_IO", "USER_RECOVERY_FAIL_IO", "UPDATE_SIZE", "SAFE_STOP_DEV",
    )
    of_7_3 = {"IO_DESC_SIZE": _is_from(7, 3)}  # with which QUIESCE_DEV is sent
    return {name: True for name in everywhere} | {name: is_new() for name in newer} | of_7_3


def remove(number):
    """Remove a disk of any server: for the cleanup after a failed test."""
    run(programs.stranger(), "stop", number, check=False)
    run(programs.stranger(), "del", number, check=False)


class Stranger:
    """A ublk disk of another server, served until close()."""

    def __init__(self, number):
        self.number = number
        self.process = subprocess.Popen(
            [programs.stranger(), "serve", str(number)], stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        assert line == "live\n", f"the stranger's disk {number} did not come up"
        self._identity = _identity(number)

    def close(self):
        """Take it away. Another server may have its number at once."""
        run(programs.stranger(), "stop", self.number, check=False)
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        run(programs.stranger(), "del", self.number)
        wait_until(self._is_gone, f"the stranger's device {self.number} gone")

    def _is_gone(self):
        """Its number belongs to another disk, or is free."""
        identity = _identity(self.number)
        return not is_known(self.number) if identity is None else identity != self._identity
