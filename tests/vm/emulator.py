# SPDX-License-Identifier: MIT
"""QEMU and virtiofsd: where they are, and how they are started.

QEMU 7.2 (Debian 12) corrupts a guest with several threads under TCG now and
then, so QEMU 10 is unpacked privately where the machine's own is too old.
Its virtiofsd is the machine's: part of qemu-system-common in Debian 12, a
package of its own from Debian 13 on, with other options.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

import cache
from debian_packages import Suite

_RECIPE = 1
_OLDEST_GOOD_QEMU = 10
_PRIVATE_PACKAGES = ("qemu-system-x86", "qemu-system-data", "seabios")
ROOT_TAG = "ublkd-root"
OUTPUT_PORT = "ublkd.output"

# What a kernel says that has booted and finds no root file system.
_BOOTED = b"Kernel panic - not syncing: VFS"
# Without what costs the emulator most and the driver does not need: checks at each access of the kernel to user memory,
# a fifth level of page tables, wide registers, and string instructions that it executes byte by byte.
_EMULATED_CPU = "max,smap=off,smep=off,umip=off,pku=off,la57=off,avx=off,avx2=off,erms=off,fsrm=off"
_KVM_PROBE_LIMIT = 20  # seconds; a kernel under KVM is there in two
_SERIAL_MAX = 20  # characters of the serial number of a virtio disk


class EmulatorError(Exception):
    """QEMU or virtiofsd cannot be used; the text is for the user."""


@dataclass
class Qemu:
    """A QEMU to run; its files stay while `keep` is open."""

    command: list
    keep: int = -1


@dataclass
class Machine:
    """What the guest's machine is made of."""

    accel: str = "tcg"
    icount: bool = False
    icount_sleep: bool = False
    smp: int = 2
    memory: int = 2048
    nodes: int = 1  # of NUMA: CPUs and memory are dealt out in equal shares
    disks: list = field(default_factory=list)
    plugins: list = field(default_factory=list)  # of TCG, as -plugin takes them


def _major_version(qemu):
    text = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"version (\d+)", text).group(1))


def _build_private_qemu(directory, scratch):
    suite = Suite("bookworm-backports", scratch)
    for package in _PRIVATE_PACKAGES:
        suite.unpack(package, directory)
    return suite.version(_PRIVATE_PACKAGES[0])


def qemu(refresh=False):
    """Return a QEMU that is good enough: the machine's own, or a private one."""
    own = shutil.which("qemu-system-x86_64")
    if own is None:
        raise EmulatorError("qemu-system-x86_64 is missing: run scripts/install-deps test")
    if _major_version(own) >= _OLDEST_GOOD_QEMU:
        return Qemu([own])
    directory, keep = cache.bundle("qemu", _RECIPE, _build_private_qemu, refresh)
    share = os.path.join(directory, "usr/share")
    command = [os.path.join(directory, "usr/bin/qemu-system-x86_64")]
    for data in ("qemu", "seabios"):
        command += ["-L", os.path.join(share, data)]
    return Qemu(command, keep)


def virtiofsd_command(socket):
    """Return the command that serves the machine's / on a socket."""
    for path in ("/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"):
        if os.access(path, os.X_OK):
            break
    else:
        raise EmulatorError("virtiofsd is missing: run scripts/install-deps test")
    usage = subprocess.run([path, "--help"], capture_output=True, text=True, check=False)
    if "--shared-dir" in usage.stdout + usage.stderr:
        # An announced submount would be an automount, which an overlay refuses.
        options = ["--shared-dir=/", "--sandbox=chroot", "--cache=always", "--no-announce-submounts"]
        return [path, f"--socket-path={socket}", "--log-level=error", *options]
    options = "source=/,sandbox=chroot,cache=always,log_level=err"
    return [path, f"--socket-path={socket}", "-o", options]


def _cpu_options(machine):
    # Linux complains of CPUs of one socket on different nodes.
    smp = f"{machine.smp},sockets={machine.smp}" if machine.nodes > 1 else str(machine.smp)
    if machine.icount:
        # CPUs take turns on one thread; without erms and fsrm a `rep movsb` counts per byte.
        cpu = "max,cx16=off,erms=off,fsrm=off"
        clock = ["-icount", "shift=2,sleep=off", "-accel", "tcg,thread=single"]
        return [*clock, "-smp", smp, "-cpu", cpu]
    if machine.icount_sleep:
        # The clock stops while the host has no CPU for the guest, and follows the host's while the guest waits.
        return ["-icount", "shift=2,sleep=on", "-accel", "tcg,thread=single", "-smp", smp, "-cpu", "max"]
    if machine.accel == "kvm":
        return ["-accel", "kvm", "-smp", smp, "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-smp", smp, "-cpu", _EMULATED_CPU]


def _memory_options(machine):
    """Of memory that virtiofsd shares, node by node."""
    options = []
    share, cpus = machine.memory // machine.nodes, machine.smp // machine.nodes
    for node in range(machine.nodes):
        last = node == machine.nodes - 1
        size = machine.memory - share * node if last else share
        options += ["-object", f"memory-backend-memfd,id=memory{node},size={size}M,share=on"]
        options += ["-numa", f"node,nodeid={node},memdev=memory{node}"]
        if machine.nodes > 1:
            end = machine.smp - 1 if last else cpus * (node + 1) - 1
            options[-1] += f",cpus={cpus * node}-{end}"
    return options


def _comma(path):
    return path.replace(",", ",,")  # as QEMU's option syntax wants it


def qemu_command(program, machine, files, image, cmdline):
    """Return the command of a guest.  `files` names the directory with its
    virtiofs socket, its kernel log, and the fifos output and console."""
    command = [*program.command, "-nodefaults", "-no-user-config", "-no-reboot"]
    command += ["-display", "none", "-machine", "q35", *_cpu_options(machine)]
    command += ["-m", str(machine.memory), *_memory_options(machine)]
    command += ["-chardev", f"socket,id=root,path={files}/virtiofs.socket"]
    command += ["-device", f"vhost-user-fs-pci,chardev=root,tag={ROOT_TAG},queue-size=1024"]
    # The kernel's log: the serial port until the virtio console is there.
    log = f"path={files}/kernel.log,append=on"
    command += ["-chardev", f"file,id=serial,{log}"]
    command += ["-chardev", f"file,id=console,{log},input-path={files}/console"]
    command += ["-serial", "chardev:serial", "-device", "virtio-serial-pci"]
    command += ["-device", "virtconsole,chardev=console"]
    command += ["-chardev", f"file,id=output,path={files}/output"]
    command += ["-device", f"virtserialport,chardev=output,name={OUTPUT_PORT}"]
    command += ["-object", "rng-builtin,id=random", "-device", "virtio-rng-pci,rng=random"]
    for plugin in machine.plugins:
        command += ["-plugin", plugin]
    for number, disk in enumerate(machine.disks):
        drive = f"if=none,id=disk{number},file={_comma(disk)},format=raw,discard=unmap"
        command += ["-drive", drive]
        # A file has its serial number at any place among the disks.
        serial = _comma(os.path.basename(disk)[-_SERIAL_MAX:])
        command += ["-device", f"virtio-blk-pci,drive=disk{number},serial={serial}"]
    return command + ["-kernel", image, "-append", cmdline]


def kvm_works(program, image):
    """Return whether a kernel boots under KVM: some machines have a /dev/kvm
    that runs a boot sector, but no kernel."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    command = [*program.command, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    command += ["-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256", "-serial", "stdio"]
    command += ["-kernel", image, "-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_KVM_PROBE_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return _BOOTED in done.stdout
