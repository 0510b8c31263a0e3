# SPDX-License-Identifier: MIT
"""What the system builds on disks: LUKS, LVM, MD and btrfs over several of them."""

import contextlib
import os
import pathlib

from .shell import output, run
from .wait import wait_until

SIZE = 128 << 20  # of each disk: mkfs.btrfs refuses less
_KEY = pathlib.Path("/etc/ublkd-tests.key")


def write_key(path=_KEY):
    """Write the key of LUKS, where it is by default."""
    path.write_text("the key of the tests", encoding="ascii")
    path.chmod(0o600)


class _Ext4:
    """An ext4 on a device that the stack makes."""

    top = None

    def make_file_system(self):
        """With a label by which fstab finds it."""
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-L", self.name, self.top)

    def check(self):
        """Assert that the file system, which is unmounted, has no fault."""
        run("fsck.ext4", "-f", "-n", self.top)


class Luks(_Ext4):
    """A disk that is encrypted."""

    name, disks, kind = "secret", 1, "ext4"
    top = "/dev/mapper/secret"
    crypttab = f"secret /dev/ublk/by-name/secret-0 {_KEY} luks\n"

    def build(self, paths):
        """Make it, and open it."""
        run("cryptsetup", "luksFormat", "-q", "--type=luks2", "--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000",
            f"--key-file={_KEY}", *paths)
        run("cryptsetup", "open", f"--key-file={_KEY}", *paths, self.name)

    def close(self):
        """Leave the disks."""
        run("cryptsetup", "close", self.name)


class Lvm(_Ext4):
    """A volume in stripes over two disks."""

    name, disks, kind = "logical", 2, "ext4"
    top = "/dev/logical/volume"
    crypttab = ""

    def build(self, paths):
        """Make it; it is active then."""
        run("pvcreate", "-q", "-y", *paths)
        run("vgcreate", "-q", self.name, *paths)
        run("lvcreate", "-q", "-y", "--wipesignatures=n", "--stripes=2", "--extents=100%FREE", "--name=volume", self.name)

    def close(self):
        """Leave the disks."""
        run("vgchange", "-q", "-an", self.name)


class Mirror(_Ext4):
    """MD over two disks; it would drop one that has an error."""

    name, disks, kind = "mirror", 2, "ext4"
    top = "/dev/md/mirror"
    crypttab = ""

    def build(self, paths):
        """Make it; it runs then."""
        run("mdadm", "--create", self.top, "--quiet", "--run", "--level=1", "--raid-devices=2", "--metadata=1.2",
            "--assume-clean", "--bitmap=none", *paths)
        wait_until(lambda: os.path.exists(self.top), "the link of the array")  # mdadm waits five seconds for udev

    def check(self):
        """Also that it has both disks."""
        assert "[UU]" in pathlib.Path("/proc/mdstat").read_text(encoding="ascii")
        super().check()

    def close(self):
        """Leave the disks."""
        run("mdadm", "--stop", "--quiet", self.top)


class Btrfs:
    """One file system that has everything on each of two disks."""

    name, disks, kind = "twin", 2, "btrfs"
    top = "/dev/ublk/by-name/twin-0"
    crypttab = ""

    def __init__(self):
        self._paths = ()

    def build(self, paths):
        """Nothing lies between the disks and the file system."""
        self._paths = tuple(paths)

    def make_file_system(self):
        """With a label by which fstab finds it."""
        run("modprobe", "btrfs")
        run("mkfs.btrfs", "-q", "-f", "-L", self.name, "-d", "raid1", "-m", "raid1", *self._paths)

    def check(self):
        """Also the sums of all data, on both disks."""
        run("btrfs", "check", "--readonly", "--check-data-csum", self.top)

    def errors(self, point):
        """The numbers of its errors so far, of both disks."""
        return [int(line.split()[-1]) for line in output("btrfs", "device", "stats", point).splitlines()]

    def close(self):
        """Nothing is left after it was unmounted."""


ALL = (Luks, Lvm, Mirror, Btrfs)


@contextlib.contextmanager
def mounted(path, point):
    """Mount it, and unmount it in the end."""
    point.mkdir(exist_ok=True)
    run("mount", path, point)
    try:
        yield point
    finally:
        run("umount", point)
