# SPDX-License-Identifier: MIT
"""Disks of device mapper: what the kernel calls them depends on the order in which they are made."""

import os

from .kernel_disks import detach_loop
from .shell import output, run
from .wait import wait_until


class Mapped:
    """All of a file, as a linear disk with a name and a UUID of its own."""

    def __init__(self, name, file):
        run("modprobe", "dm_mod")
        self._name = name
        self._loop = output("losetup", "--find", "--show", file)
        sectors = os.stat(file).st_size // 512
        run("dmsetup", "create", name, "--uuid", f"UBLKD-{name}", "--table", f"0 {sectors} linear {self._loop} 0")
        self.mapper = f"/dev/mapper/{name}"
        self.by_id = f"/dev/disk/by-id/dm-uuid-UBLKD-{name}"
        wait_until(lambda: os.path.exists(self.mapper) and os.path.exists(self.by_id), "the links that udev makes")
        self.node = f"/dev/dm-{os.minor(os.stat(self.mapper).st_rdev)}"

    def close(self):
        """Take it away, and the loop disk below."""
        run("dmsetup", "remove", "--retry", self._name)
        detach_loop(self._loop)
