# SPDX-License-Identifier: MIT
"""The machine of these tests: what its administrator has put into /etc, and what both boots know of its disks.

/dev/vda has the database of ublkd, /dev/vdb the backing files, /dev/vde the pool of a tenant. Each is a file system of its
own. /dev/vdc and /dev/vdd have each other's name after the first boot."""

import json
import os
import pathlib
import re
from types import SimpleNamespace

from harness import programs, stacks, units
from harness.api import loop_spec
from harness.shell import run
from harness.tenants import User
from harness.wait import wait_until

IMAGES = pathlib.Path("/srv/images")
REQUIRED = pathlib.Path("/srv/required")  # its line in fstab requires the unit of the disk
PLAIN = pathlib.Path("/srv/plain")  # its line has no options
WAITING = pathlib.Path("/srv/waiting")  # its line is that of ublkd.service(8), with nofail
MISSING = pathlib.Path("/srv/missing")  # on a disk whose backing file is gone
ABSENT = pathlib.Path("/srv/absent")  # on another such disk, whose unit its line does not name
MISTYPED = pathlib.Path("/srv/mistyped")  # its line has a name that no device has
SLIP = pathlib.Path("/srv/slip")  # so has this one, in that of the unit, too
SPARE = pathlib.Path("/srv/spare")  # the base system does not want it, and its disk goes, too
LOWER = pathlib.Path("/srv/lower")  # has the backing file of a disk; its own one is described by a file in /etc
UPPER = pathlib.Path("/srv/upper")  # on that disk
# Its line says that it needs the network. It is on a drive that is /dev/vdc in the first boot, and named by its serial number.
REMOTE = pathlib.Path("/srv/remote")
MOVED = "moved"  # a device that has /dev/vdd, and is named so
DESCRIPTION = pathlib.Path("/etc/ublkd/devices.d/lower.json")
POOL = pathlib.Path("/var/lib/pools/fast")
TENANT = pathlib.Path("/srv/tenant")  # root mounts the disk of a tenant there, which has no unit, by hand
_TENANT_UID = 1234
TENANT_SPEC = {"name": f"u{_TENANT_UID}-data", "target": {"type": "loop", "pool": POOL.name}, "size": "16MiB"}
_POLICY = {
    "pools": {POOL.name: {"directory": str(POOL)}},
    "rules": [{"name": "tenants", "who": {"users": [_TENANT_UID]}, "targets": ["loop"], "pools": [POOL.name], "devices": 1,
               "size": "64MiB"}],
}
STACKS = {stack.name: pathlib.Path("/srv", stack.name) for stack in stacks.ALL}  # LUKS, LVM, MD, btrfs
# Its swap, of which a machine with free memory uses nothing.
SWAP = "swap"
SWAP_UNIT = r"dev-ublk-by\x2dname-swap.swap"
# What the base system mounts at each boot: before local-fs.target, and all.
BASE = (REQUIRED, PLAIN, LOWER, UPPER, *STACKS.values())
MOUNTED = (*BASE, WAITING)
_SINGLE = (REQUIRED, PLAIN, WAITING, SPARE, LOWER, UPPER, REMOTE)
# All that are served until the shutdown.
DISKS = (
    SWAP,
    *(point.name for point in _SINGLE),
    *(f"{stack.name}-{number}" for stack in stacks.ALL for number in range(stack.disks)),
)

_BASE = """\
/dev/vda /var/lib/ublkd ext4 defaults 0 0
/dev/vdb /srv/images ext4 defaults 0 0
/dev/vde /var/lib/pools ext4 defaults 0 0
"""
_DISKS = """\
/dev/ublk/by-name/required /srv/required ext4 x-systemd.requires=ublk-disk@required.service,x-systemd.after=ublkd.service 0 2
/dev/ublk/by-name/plain /srv/plain ext4 defaults 0 2
/dev/ublk/by-name/waiting /srv/waiting ext4 nofail,x-systemd.requires=ublk-disk@waiting.service,x-systemd.after=ublkd.service 0 2
/dev/ublk/by-name/missing /srv/missing ext4 {nofail}x-systemd.requires=ublk-disk@missing.service,x-systemd.device-timeout=10s 0 2
/dev/ublk/by-name/absent /srv/absent ext4 {nofail}x-systemd.device-timeout=30s 0 2
/dev/ublk/by-name/spare /srv/spare ext4 x-systemd.requires=ublk-disk@spare.service,x-systemd.after=ublkd.service,{wanted} 0 2
/dev/ublk/by-name/lower /srv/lower ext4 defaults 0 2
/dev/ublk/by-name/upper /srv/upper ext4 x-systemd.requires=ublk-disk@upper.service,x-systemd.after=ublkd.service 0 2
/dev/ublk/by-name/swap none swap sw 0 0
/dev/ublk/by-name/remote /srv/remote ext4 _netdev 0 2
"""
_SLIPS = """\
/dev/ublk/by-name/mistyped /srv/mistyped ext4 x-systemd.device-timeout=30s 0 2
/dev/ublk/by-name/slip /srv/slip ext4 x-systemd.requires=ublk-disk@slip.service,x-systemd.device-timeout=30s 0 2
"""
_TARGETS = ("vm.target", "multi-user.target")  # that of the boot, and the one after the rescue mode
# When the stop of a disk has ended, and how: the kernel's log has the unmounts, too, but not which disk it was. And in a
# slow guest the disk of a file on a disk comes late. The name of the file lets that of the missing disk count after it.
_EVERY_DISK = """\
[Service]
ExecStartPre=
ExecStartPre=/bin/sh -c 'test -e "/run/ublkd/live/$$0" || exec {ublkctl} start --timeout=480s "$$0"' %i
TimeoutStartSec=490s
TimeoutStopSec=250s
ExecStopPost=/bin/sh -c 'echo "tests: the stop of disk %i ended: $$SERVICE_RESULT" >/dev/kmsg'
"""
# ublkd must not start with this.
WRONG = pathlib.Path("/etc/ublkd/ublkd.conf.d/wrong.conf")
_WRONG_TEXT = "[Manager]\nStateDirectory=nowhere\n"
# No program loads the driver.
NO_DRIVER = pathlib.Path("/etc/modprobe.d/no-driver.conf")
_NO_DRIVER_TEXT = "install ublk_drv /bin/false\n"
# At the end of that stop.
_REMOTE_DISK = f"""\
[Service]
ExecStopPost=/bin/sh -c 'grep -q " {REMOTE} " /proc/self/mounts || echo "tests: {REMOTE} is unmounted, and its disk stopped" >/dev/kmsg'
"""
# What the unit of a disk, and what it runs, say of a disk that stays in use.
_IN_VAIN = r"systemd\[1\]: ublk-disk@.*(timed out|Failed with result)|ublk\S+\[\d+\]: .*in use"
# In a slow guest, disks and what lies on them take longer than systemd waits; but for the disk that is missing. systemd waits
# for each from the begin of the boot on: with two guests side by side, the last has taken 154 s.
_SLOW = "[Manager]\nDefaultDeviceTimeoutSec=480s\n"
# The tests run where an administrator would get a shell. The kernel's command line names the directory of the guest.
_TESTS = """\
[Service]
ExecStartPre=
ExecStart=
ExecStart=/bin/sh -c 'export "$$(grep -o "vm_files=[^ ]*" /proc/cmdline)"; exec "$$vm_files/run-command"'
StandardInput=null
StandardOutput=journal
StandardError=journal
"""
# The shell of an administrator waits for orders.
_IDLE = """\
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
# In seconds. systemd would wait for 90 for a process that does not end. A busy host slows the guest down: not much less.
_LAST_RESORT_MAX = 85
# On a busy host, a task that has nothing to do with the disks may also wait for so long.
_BLOCKED = r"task (ublk|jbd2/ublkb)\S*:\d+ blocked for more than"
# The one sentence is the same after a shorter time, in which ublkd answers also in a slow guest.
_PATIENCE = "20s"


# systemd finds each of them once its disks are there. Their disks are stopped after it: they wait for it.
_STACK = "LABEL={name} /srv/{name} {kind} defaults 0 {check}\n"


def _seen(log):
    """[(time, text)] of what the kernel's log has after the tests, which may have stopped disks, too."""
    _, _, log = log.partition("vm: the command ended with")
    return [(float(time), text) for time, text in re.findall(r"^\[ *(\d+\.\d+)\] (.*)$", log, re.MULTILINE)]


def _disk_faults(seen, images):
    """The disks are taken down before the file systems that their files are on; also the disk in a file on a disk."""
    stops = [(time, re.search(r"tests: the stop of disk (\S+) ended: success", text)) for time, text in seen]
    gone = {match.group(1): time for time, match in stops if match}
    left = set(DISKS) - gone.keys()
    if left:
        return [f"not taken down: {sorted(left)}"]
    order = [gone["upper"], gone["lower"], images]
    return [] if order == sorted(set(order)) else [f"upper, lower, and what its file is on: {order}"]


def _end_faults(end, seen):
    """systemd's last resort waits for no worker: the disk of a tenant, which has no unit, is taken down as well."""
    faults = [text for _, text in seen if re.search(r"(Waiting for process|SIGKILL to PID).*ublkd", text)]
    last, text = seen[-1]
    if last - end > _LAST_RESORT_MAX:
        faults.append(f"systemd's last resort began at {end}, and at {last} the machine was still there: {text}")
    return faults


def shutdown_faults(log):
    """What is wrong with the shutdown at the end of a kernel's log: the file systems of the disks go first, then those
    below them, then that of the database, all by units of systemd and before its last resort; and no unit of a disk has
    waited in vain, however slow the guest is."""
    seen = _seen(log)

    def times(pattern):
        return [time for time, text in seen if re.search(pattern, text)]

    upper, images, state = (times(rf"EXT4-fs \(({name})\): unmounting") for name in (r"ublkb\d+|dm-\d+|md\d+", "vdb", "vda"))
    end = times(r"systemd\[1\]: Shutting down")
    if not (upper and images and state and end):
        return [f"not all of it is in the log: {upper}, {images}, {state}, {end}"]
    faults = _disk_faults(seen, images[-1])
    if not times(f"tests: {REMOTE} is unmounted, and its disk stopped"):
        faults.append(f"{REMOTE} was mounted when its disk was stopped")
    if not upper[-1] < images[-1] < state[-1] < end[-1]:
        faults.append(f"wrong order: {upper}, {images}, {state}, {end}")
    faults += [text for time, text in seen if time > upper[0] and re.match(_IN_VAIN, text)]
    faults += [text for _, text in seen if re.search(r"[Ss]wap", text) and re.search(r"[Ff]ailed|[Cc]ould not", text)]
    faults += [text for _, text in seen if re.search(rf"I/O error|{_BLOCKED}", text)]
    faults += _end_faults(end[-1], seen)
    # What the guest shares with its host may stay.
    faults += [text for _, text in seen if re.search(r"Failed unmounting .*(/srv/|/var/lib/ublkd)", text)]
    return faults


def _put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _without_units(lines):
    """Lines of fstab that name no unit of a disk, so that no mount has one started, nor ublkd."""
    lines = re.sub(r"x-systemd\.(requires|after)=[^, ]+,?", "", lines).replace(", ", " ")
    return lines.replace(" ext4  0", " ext4 defaults 0")


def _disks(nofail, targets):
    lines = [_STACK.format(name=stack.name, kind=stack.kind, check=2 if stack.kind == "ext4" else 0) for stack in stacks.ALL]
    wanted = ",".join(f"x-systemd.wanted-by={target}" for target in targets)
    return _DISKS.format(nofail="nofail," if nofail else "", wanted=wanted) + "".join(lines)


def wait_mounted(point):
    """Wait for a mount of MOUNTED: the tests may start before that of a line with nofail."""
    wait_until(lambda: os.path.ismount(point), f"the mount of {point}", timeout=480)


def swaps():
    """The swap areas that are in use, as /proc/swaps names them."""
    return [line.split()[0] for line in pathlib.Path("/proc/swaps").read_text(encoding="utf-8").splitlines()[1:]]


def _link_as_installed(system):
    """What `systemctl enable` makes."""
    targets = re.findall(r"^WantedBy=(.*)", (system / "ublkd.service").read_text(encoding="utf-8"), re.MULTILINE)
    for target in " ".join(targets).split():
        _want(system, target, "ublkd.service", "../ublkd.service")


def _want(system, target, unit, path):
    wants = system / f"{target}.wants"
    wants.mkdir(exist_ok=True)
    (wants / unit).symlink_to(path)


def tenant(api):
    """The user who may have a disk of the pool."""
    return User(SimpleNamespace(api=api, runtime=pathlib.Path("/run/ublkd")), _TENANT_UID)


def correct_slips():
    """Remove the lines of fstab that name no device."""
    fstab = pathlib.Path("/etc/fstab")
    fstab.write_text(fstab.read_text(encoding="utf-8").replace(_SLIPS, ""), encoding="utf-8")
    run("systemctl", "daemon-reload")


def write_etc(etc, with_disks, nofail=True, rescue=False, slips=False, manager=True):
    """Write /etc of a machine where ublkd is installed and enabled; with_disks: fstab names its disks. Without `nofail`,
    the disks that cannot start end the boot in emergency mode. With `rescue` the boot is one in rescue mode, and no line of
    fstab names a unit. With `slips` two lines name no device. Without `manager` neither ublkd nor the driver can start."""
    system = etc / "systemd" / "system"
    system.mkdir(parents=True)
    units.write(system)
    _put(etc / "udev/rules.d/60-ublkd.rules", programs.source("units/60-ublkd.rules").read_text(encoding="utf-8"))
    targets = _TARGETS[1:] if rescue else _TARGETS
    disks = _disks(nofail, targets) if with_disks else ""
    _put(etc / "fstab", _BASE + (_without_units(disks) if rescue else disks) + (_SLIPS if slips else ""))
    if not manager:
        _put(etc / WRONG.relative_to("/etc"), _WRONG_TEXT)
        _put(etc / NO_DRIVER.relative_to("/etc"), _NO_DRIVER_TEXT)
        _put(etc / "modules-load.d/ublkd.conf", programs.source("units/modules-load.d/ublkd.conf").read_text(encoding="utf-8"))
        (system / "systemd-modules-load.service").symlink_to("/usr/lib/systemd/system/systemd-modules-load.service")
    _put(etc / DESCRIPTION.relative_to("/etc"), json.dumps(loop_spec(LOWER.name, IMAGES / "lower.img")))
    _put(etc / "ublkd/policy.d/50-tenants.json", json.dumps(_POLICY))
    stacks.write_key(etc / "ublkd-tests.key")
    if with_disks:
        _put(etc / "crypttab", "".join(stack.crypttab for stack in stacks.ALL))
    _put(system / "emergency.service.d/tests.conf", _TESTS)
    _put(system / "rescue.service.d/tests.conf", _TESTS if rescue else _IDLE)
    _put(system / "ublk-disk@.service.d/all.conf", _EVERY_DISK.format(ublkctl=programs.ublkctl()))
    _put(system / "ublk-disk@remote.service.d/remote.conf", _REMOTE_DISK)
    _put(system / "ublk-disk@spare.service.d/rescue.conf", _NOT_IN_RESCUE)
    for name in (MISSING.name, SLIP.name):
        _put(system / f"ublk-disk@{name}.service.d/impatient.conf", units.impatient(_PATIENCE))
    if not manager:  # a client of the socket has ublkd tried again and again
        _put(system / "ublk-disk@.service.d/start.conf", units.impatient("480s"))
    _put(etc / "systemd/system.conf.d/slow.conf", _SLOW)
    _link_as_installed(system)
    if rescue:
        (system / "vm.target").symlink_to("/usr/lib/systemd/system/rescue.target")
    else:
        _want(system, "vm.target", "ublkd.service", "../ublkd.service")
    for target in targets:
        _want(system, target, "remote-fs.target", "/usr/lib/systemd/system/remote-fs.target")
    generators = etc / "systemd" / "system-generators"
    generators.mkdir()
    for name in ("systemd-fstab-generator", "systemd-cryptsetup-generator"):
        (generators / name).symlink_to(f"/usr/lib/systemd/system-generators/{name}")
