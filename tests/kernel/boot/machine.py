# SPDX-License-Identifier: MIT
"""The machine of these tests: what its administrator has put into /etc, and what both boots know of its disks.

/dev/vda has the database of ublkd, /dev/vdb the backing files. Each is a file system of its own."""

import pathlib
import re

from harness import programs, stacks, units

IMAGES = pathlib.Path("/srv/images")
REQUIRED = pathlib.Path("/srv/required")  # its line in fstab requires the unit of the disk
PLAIN = pathlib.Path("/srv/plain")  # its line has no options
MISSING = pathlib.Path("/srv/missing")  # on a disk whose backing file is gone
SPARE = pathlib.Path("/srv/spare")  # the base system does not want it, and its disk goes, too
STACKS = {stack.name: pathlib.Path("/srv", stack.name) for stack in stacks.ALL}  # LUKS, LVM, MD, btrfs

_BASE = """\
/dev/vda /var/lib/ublkd ext4 defaults 0 0
/dev/vdb /srv/images ext4 defaults 0 0
"""
_DISKS = """\
/dev/ublk/by-name/required /srv/required ext4 x-systemd.requires=ublk-disk@required.service,x-systemd.after=ublkd.service 0 2
/dev/ublk/by-name/plain /srv/plain ext4 defaults 0 2
/dev/ublk/by-name/missing /srv/missing ext4 {nofail}x-systemd.requires=ublk-disk@missing.service,x-systemd.device-timeout=10s 0 2
/dev/ublk/by-name/spare /srv/spare ext4 x-systemd.requires=ublk-disk@spare.service,x-systemd.after=ublkd.service,{wanted} 0 2
"""
_TARGETS = ("vm.target", "multi-user.target")  # that of the boot, and the one after the rescue mode
_WANTED = ",".join(f"x-systemd.wanted-by={target}" for target in _TARGETS)
# What the unit of a disk, and what it runs, say of a disk that stays in use.
_IN_VAIN = r"systemd\[1\]: ublk-disk@.*(timed out|Failed with result)|ublk\S+\[\d+\]: .*in use"
# In a slow guest, disks and what lies on them take longer than systemd waits; but for the disk that is missing.
_SLOW = "[Manager]\nDefaultDeviceTimeoutSec=240s\n"
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
# The shell of an administrator waits for orders.
_RESCUE = """\
[Service]
ExecStartPre=
ExecStart=
ExecStart=/bin/sleep infinity
StandardInput=null
"""
# As ublkd.service(8) has it for a disk that is to go.
_NOT_IN_RESCUE = """\
[Unit]
Conflicts=rescue.target
"""
# The one sentence is the same after a shorter time.
_IMPATIENT = """\
[Service]
ExecStartPre=
ExecStartPre={ublkctl} start --timeout=5s %i
"""


# systemd finds each of them once its disks are there. Their disks are stopped after it: they wait for it.
_STACK = "LABEL={name} /srv/{name} {kind} defaults 0 {check}\n"


def shutdown_faults(log):
    """What is wrong with the shutdown at the end of a kernel's log: the file systems of the disks go first, then those
    below them, then that of the database, all by units of systemd and before its last resort; and no unit of a disk has
    waited in vain, however slow the guest is."""
    _, _, log = log.partition("vm: the command ended with")  # it may have stopped disks, too
    seen = [(float(time), text) for time, text in re.findall(r"^\[ *(\d+\.\d+)\] (.*)$", log, re.MULTILINE)]

    def times(pattern):
        return [time for time, text in seen if re.search(pattern, text)]

    upper, images, state = (times(rf"EXT4-fs \(({name})\): unmounting") for name in (r"ublkb\d+|dm-\d+|md\d+", "vdb", "vda"))
    end = times(r"systemd\[1\]: Shutting down")
    if not (upper and images and state and end):
        return [f"not all of it is in the log: {upper}, {images}, {state}, {end}"]
    faults = []
    if not upper[-1] < images[-1] < state[-1] < end[-1]:
        faults.append(f"wrong order: {upper}, {images}, {state}, {end}")
    faults += [text for time, text in seen if time > upper[0] and re.match(_IN_VAIN, text)]
    # What the guest shares with its host may stay.
    faults += [text for _, text in seen if re.search(r"Failed unmounting .*(/srv/|/var/lib/ublkd)", text)]
    return faults


def _put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _disks(nofail):
    lines = [_STACK.format(name=stack.name, kind=stack.kind, check=2 if stack.kind == "ext4" else 0) for stack in stacks.ALL]
    return _DISKS.format(nofail="nofail," if nofail else "", wanted=_WANTED) + "".join(lines)


def write_etc(etc, with_disks, nofail=True):
    """Write /etc of a machine where ublkd is installed and enabled; with_disks: fstab names its disks. Without `nofail`,
    the disk that cannot start ends the boot in emergency mode."""
    system = etc / "systemd" / "system"
    system.mkdir(parents=True)
    units.write(system)
    _put(etc / "udev/rules.d/60-ublkd.rules", programs.source("units/60-ublkd.rules").read_text(encoding="utf-8"))
    _put(etc / "fstab", _BASE + (_disks(nofail) if with_disks else ""))
    stacks.write_key(etc / "ublkd-tests.key")
    if with_disks:
        _put(etc / "crypttab", "".join(stack.crypttab for stack in stacks.ALL))
    _put(system / "emergency.service.d/tests.conf", _EMERGENCY)
    _put(system / "rescue.service.d/tests.conf", _RESCUE)
    _put(system / "ublk-disk@spare.service.d/rescue.conf", _NOT_IN_RESCUE)
    _put(system / "ublk-disk@missing.service.d/impatient.conf", _IMPATIENT.format(ublkctl=programs.ublkctl()))
    _put(etc / "systemd/system.conf.d/slow.conf", _SLOW)
    for target in _TARGETS:
        wants = system / f"{target}.wants"
        wants.mkdir()
        (wants / "ublkd.service").symlink_to("../ublkd.service")
    generators = etc / "systemd" / "system-generators"
    generators.mkdir()
    for name in ("systemd-fstab-generator", "systemd-cryptsetup-generator"):
        (generators / name).symlink_to(f"/usr/lib/systemd/system-generators/{name}")
