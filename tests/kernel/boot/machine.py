# SPDX-License-Identifier: MIT
"""The machine of these tests: what its administrator has put into /etc, and what both boots know of its disks.

/dev/vda has the database of ublkd, /dev/vdb the backing files. Each is a file system of its own."""

import pathlib

from harness import programs, units

IMAGES = pathlib.Path("/srv/images")
REQUIRED = pathlib.Path("/srv/required")  # its line in fstab requires the unit of the disk
PLAIN = pathlib.Path("/srv/plain")  # its line has no options
MISSING = pathlib.Path("/srv/missing")  # on a disk whose backing file is gone

_BASE = """\
/dev/vda /var/lib/ublkd ext4 defaults 0 0
/dev/vdb /srv/images ext4 defaults 0 0
"""
_DISKS = """\
/dev/ublk/by-name/required /srv/required ext4 x-systemd.requires=ublk-disk@required.service,x-systemd.after=ublkd.service 0 2
/dev/ublk/by-name/plain /srv/plain ext4 defaults 0 2
/dev/ublk/by-name/missing /srv/missing ext4 {nofail}x-systemd.requires=ublk-disk@missing.service,x-systemd.device-timeout=10s 0 2
"""
# The tests run where an administrator would get a shell. The kernel's command line names the directory of the guest.
_EMERGENCY = """\
[Service]
ExecStartPre=
ExecStart=
ExecStart=/bin/sh -c 'export "$$(grep -o "vm_files=[^ ]*" /proc/cmdline)"; exec "$$vm_files/run-command"'
StandardInput=null
StandardOutput=journal
StandardError=journal
"""
_IMAGES_FIRST = f"""\
[Unit]
RequiresMountsFor={IMAGES}
"""
# The one sentence is the same after a shorter time.
_IMPATIENT = f"""\
[Service]
ExecStartPre=
ExecStartPre={programs.ublkctl()} start --timeout=5s %i
"""


def _put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_etc(etc, with_disks, nofail=True):
    """Write /etc of a machine where ublkd is installed and enabled; with_disks: fstab names its disks. Without `nofail`,
    the disk that cannot start ends the boot in emergency mode."""
    system = etc / "systemd" / "system"
    system.mkdir(parents=True)
    units.write(system)
    _put(etc / "udev/rules.d/60-ublkd.rules", programs.source("units/60-ublkd.rules").read_text(encoding="utf-8"))
    _put(etc / "fstab", _BASE + (_DISKS.format(nofail="nofail," if nofail else "") if with_disks else ""))
    _put(system / "emergency.service.d/tests.conf", _EMERGENCY)
    _put(system / "ublk-disk@.service.d/images.conf", _IMAGES_FIRST)
    _put(system / "ublk-disk@missing.service.d/impatient.conf", _IMPATIENT)
    wants = system / "vm.target.wants"
    wants.mkdir()
    (wants / "ublkd.service").symlink_to("../ublkd.service")
    generators = etc / "systemd" / "system-generators"
    generators.mkdir()
    (generators / "systemd-fstab-generator").symlink_to("/usr/lib/systemd/system-generators/systemd-fstab-generator")
