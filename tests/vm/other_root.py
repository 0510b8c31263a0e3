# SPDX-License-Identifier: MIT
"""Roots of another Debian than this machine's: for tests under another systemd, and for builds with its compiler.

A root is a bundle of the cache, which mmdebstrap makes of the packages that
scripts/install-deps lists for the build, for the guest and for packages. The
mirror is the machine's own (debian_packages.py), and signatures are checked.
Nothing is changed in it afterwards: a guest and a build see it below file
systems of their own.
"""

import os
import re
import subprocess
import zlib
from dataclasses import dataclass

import cache
from debian_packages import KEYRING, PackageError, machine_mirror

_RECIPE = 2
_HERE = os.path.dirname(os.path.realpath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(_HERE))
_INSTALL_DEPS = os.path.join(REPOSITORY, "scripts", "install-deps")
_GROUPS = ("build", "guest", "package")

SUITES = {"bookworm": 12, "trixie": 13}  # the Debian of each
_NEWEST, _OLDER = "trixie", "bookworm"
_OPTIONS = 'APT::Install-Recommends "false";\nAcquire::Retries "3";\n'

# What a build in the root sees, in a mount namespace of its own. Of the path of the sources only the first directory
# is made in the root; a tmpfs hides what is there of the rest.
_CHROOT = """\
set -eu
root=$1 sources=$2
shift 2
top=${sources#/}
mkdir -p "$root/${top%%/*}"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
there=$root$sources
while [ ! -d "$there" ]; do there=${there%/*}; done
if [ "$there" != "$root$sources" ]; then
	mount -t tmpfs -o mode=0755 tmpfs "$there"
	mkdir -p "$root$sources"
fi
mount --rbind "$sources" "$root$sources"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" "$@"
"""


@dataclass
class OtherRoot:
    """A root; its files stay while `keep` is open."""

    suite: str
    path: str
    systemd: str  # its version
    keep: int


def other_suite():
    """Return the suite that is not this machine's: the newest, and on that itself the one before."""
    with open("/etc/os-release", encoding="utf-8") as source:
        return _OLDER if re.search(rf"^VERSION_CODENAME={_NEWEST}$", source.read(), re.MULTILINE) else _NEWEST


def _packages(suite):
    """Return the names of all packages of a root."""
    names = []
    for group in _GROUPS:
        command = [_INSTALL_DEPS, "list", group, str(SUITES[suite])]
        names += subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sorted(set(names))


def _acquire_options():
    """Return how this machine's apt reaches a mirror (proxies), as a file for apt."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return "".join(line for line in dump.splitlines(True) if re.match(r"Acquire::(http|https|ftp)::", line))


def _systemd_version(path):
    command = ["dpkg-query", f"--admindir={path}/var/lib/dpkg", "-W", "-f", "${Version}", "systemd"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _build(suite, packages):
    def build_root(directory, scratch):
        options = os.path.join(scratch, "apt.conf")
        with open(options, "w", encoding="utf-8") as output:
            output.write(_acquire_options() + _OPTIONS)
        command = ["mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", f"--keyring={KEYRING}",
                   f"--aptopt={options}", "--architectures=amd64",
                   f"--include={','.join(packages)}", suite, os.path.join(directory, "root"), machine_mirror()]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                  umask=0o022)
        except FileNotFoundError as problem:
            raise PackageError("mmdebstrap is missing: run scripts/install-deps test") from problem
        if done.returncode != 0:
            reason = re.search(r"^E: (.*)$", done.stderr, re.MULTILINE)  # the first; the next are what follows from it
            reason = reason.group(1) if reason else done.stderr.strip()
            raise PackageError(f"a root of Debian {suite} could not be made: {reason}; try again with network, or set UBLKD_DEBIAN_MIRROR")
        return _systemd_version(os.path.join(directory, "root"))

    return build_root


def other_root(suite=None, refresh=False):
    """Return the root of a suite, by default of other_suite(), from the cache if it is there."""
    suite = suite or other_suite()
    packages = _packages(suite)
    recipe = f"{_RECIPE}.{zlib.crc32(' '.join(packages).encode()):08x}"
    directory, keep = cache.bundle(f"root-{suite}", recipe, _build(suite, packages), refresh)
    path = os.path.join(directory, "root")
    return OtherRoot(suite=suite, path=path, systemd=_systemd_version(path), keep=keep)


def _run_in(root, command, output):
    """Run a command in a root, in the repository, which it may write; return whether it succeeded."""
    unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _CHROOT, "sh", root.path, REPOSITORY]
    inside = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", REPOSITORY]
    return not subprocess.run([*unshare, *inside, *command], stdin=subprocess.DEVNULL, stdout=output, check=False).returncode


def build_directory(root):
    """Return the directory of the build that a root has of its own."""
    return os.path.join(REPOSITORY, f"build-{root.suite}")


def build(root, output=None):
    """Build everything with the compiler and the libraries of a root; return whether that went well."""
    directory = build_directory(root)
    steps = (["cmake", "--preset", "release", "-B", directory], ["cmake", "--build", directory])
    return all(_run_in(root, step, output) for step in steps)


def package(root, output=None):
    """Make the packages for Debian in a root, in the folder "packages" of its build; return whether that went well. The
    archive is made here: the repository of git may lie elsewhere, where the root does not see it."""
    variables = [f"UBLKD_PACKAGES={os.path.join(build_directory(root), 'packages')}"]
    if "DEB_BUILD_OPTIONS" in os.environ:
        variables.append(f"DEB_BUILD_OPTIONS={os.environ['DEB_BUILD_OPTIONS']}")
    program = os.path.join(REPOSITORY, "scripts", "package")
    done = subprocess.run(["env", *variables, program, "source"], stdout=subprocess.PIPE, stderr=output, text=True, check=False)
    if done.returncode != 0:
        return False
    return _run_in(root, ["env", *variables, program, "deb", done.stdout.strip()], output)
