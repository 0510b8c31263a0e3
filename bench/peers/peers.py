# SPDX-License-Identifier: MIT
"""Builds the peers of the benchmarks, and keeps them in the cache.

Each peer is a bundle of the download cache of tests/vm (see cache.py there),
under $CACHE/peers: the program, and a file `versions` with one line for each
thing that it was built from.  A peer that cannot be built raises PeerError
with the reason: callers name it, and never leave a peer out silently.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tests/vm"))

# pylint: disable=wrong-import-position
import cache
from debian_packages import PackageError, Suite

_KUBLK_RECIPE = 1
_RUBLK_RECIPE = 1
_JOBS = 2

# The part of the kernel's source that kublk and `make headers` need: a tenth of it.
_KERNEL_PARTS = (
    "Makefile",
    "*/Makefile",
    "*/Kbuild*",
    "Kbuild*",
    "include",
    "arch/x86",
    "scripts",
    "usr/include",
    "tools/include",
    "tools/testing/selftests/*.h",
    "tools/testing/selftests/ublk",
)
# Ours: the program of bench/inkernel, which needs clang, bpftool and libbpf, as nothing else here does.
_ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")
INKERNEL = os.path.join(_ROOT, "bench/inkernel")
_SBIN = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"  # Debian has bpftool there
_INKERNEL_PACKAGES = "clang, bpftool, libbpf-dev, libelf-dev"

_KUBLK_HAS_OWN_MAIN = "metadata_size.c"


class PeerError(Exception):
    """A peer could not be built; the text is for the user."""


@dataclass
class Peer:
    """A program to run; its files stay while `keep` is open."""

    name: str
    program: str
    versions: list = field(default_factory=list)
    keep: int = -1


def _run(*command, **options):
    """Run a step of a build; on failure report the step and the end of its output."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            **options,
        )
    except OSError as problem:
        raise PeerError(f"{command[0]} cannot be run: {problem.strerror}") from problem
    if done.returncode != 0:
        last = "; ".join(done.stdout.strip().splitlines()[-3:])
        raise PeerError(f"{' '.join(command[:3])} ended with {done.returncode}: {last}")
    return done.stdout


def _write_versions(directory, lines):
    with open(os.path.join(directory, "versions"), "w", encoding="utf-8") as output:
        output.writelines(f"{line}\n" for line in lines)


def _unpack_kernel_source(suite, scratch):
    """Return (the folder with the parts that are needed, the version)."""
    unpacked = os.path.join(scratch, "source")
    suite.unpack("linux-source-7.2", unpacked)
    (archive,) = glob.glob(os.path.join(unpacked, "usr/src/linux-source-*.tar.xz"))
    top = os.path.basename(archive).removesuffix(".tar.xz")
    parts = [f"{top}/{part}" for part in _KERNEL_PARTS]
    _run("tar", "-xJf", archive, "-C", scratch, "--wildcards", *parts)
    return os.path.join(scratch, top), suite.version("linux-source-7.2")


def _build_kublk(directory, scratch):
    """kublk wants the kernel's own headers, and a liburing that is newer than
    Debian 12's: that of Debian 13, unpacked here, linked statically."""
    kernel, kernel_version = _unpack_kernel_source(Suite("trixie-backports", scratch), scratch)
    # headers_install needs rsync, and only copies what `make headers` has made.
    _run("make", f"-j{_JOBS}", "-C", kernel, "headers")
    newer = Suite("trixie", scratch)
    liburing = os.path.join(scratch, "liburing")
    newer.unpack("liburing-dev", liburing)
    (library,) = glob.glob(os.path.join(liburing, "usr/lib/*/liburing.a"))
    folder = os.path.join(kernel, "tools/testing/selftests/ublk")
    sources = glob.glob(os.path.join(folder, "*.c"))
    sources = [path for path in sources if os.path.basename(path) != _KUBLK_HAS_OWN_MAIN]
    includes = ["-I", os.path.join(kernel, "usr/include"), "-I", os.path.join(liburing, "usr/include")]
    # As the selftest's own Makefile compiles it, but for -Werror.
    flags = ["-O3", "-D_GNU_SOURCE=", "-w"]
    output = os.path.join(directory, "kublk")
    _run("cc", *flags, *includes, *sorted(sources), "-o", output, library, "-lpthread", "-lm")
    versions = [
        f"kublk of linux-source-7.2 {kernel_version}",
        f"liburing {newer.version('liburing-dev')} (for kublk)",
    ]
    _write_versions(directory, versions)
    return kernel_version


def _cargo():
    path = shutil.which("cargo") or os.path.expanduser("~/.cargo/bin/cargo")
    if not os.access(path, os.X_OK):
        raise PeerError("cargo is missing: rublk is only to be had from crates.io")
    return path


def _build_rublk(directory, scratch):
    root = os.path.join(scratch, "root")
    options = ["--no-default-features", "--locked", "--root", root, "--jobs", str(_JOBS)]
    environment = dict(os.environ, CARGO_TARGET_DIR=os.path.join(scratch, "target"))
    _run(_cargo(), "install", "rublk", *options, env=environment)
    program = os.path.join(root, "bin/rublk")
    os.rename(program, os.path.join(directory, "rublk"))
    version = _run(os.path.join(directory, "rublk"), "--version").split()[-1]
    compiler = _run(_cargo(), "--version").split()[1]
    _write_versions(directory, [f"rublk {version} (crates.io, cargo {compiler})"])
    return version


def inkernel_recipe():
    """Return a name for its sources as they are, so that a changed one is built again."""
    digest = hashlib.sha256()
    for path in sorted(glob.glob(f"{INKERNEL}/*.[ch]")):
        with open(path, "rb") as source:
            digest.update(source.read())
    return digest.hexdigest()[:12]


def _build_inkernel(directory, scratch):
    lacking = [name for name in ("clang", "bpftool") if not shutil.which(name, path=_SBIN)]
    if lacking:
        raise PeerError(f"{' and '.join(lacking)} missing: inkernel needs {_INKERNEL_PACKAGES}")
    code, skeleton = os.path.join(scratch, "inkernel.bpf.o"), os.path.join(scratch, "inkernel.skel.h")
    machine = _run("cc", "-print-multiarch").strip()
    flags = ["-std=gnu17", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-I", _ROOT]
    _run("clang", "-target", "bpf", "-mcpu=v3", *flags, f"-I/usr/include/{machine}", "-c", f"{INKERNEL}/inkernel.bpf.c", "-o", code)
    with open(skeleton, "w", encoding="utf-8") as output:
        output.write(_run("bpftool", "gen", "skeleton", code, "name", "inkernel_bpf", env={"PATH": _SBIN}))
    more = ["-D_GNU_SOURCE", "-Wmissing-prototypes", "-Wshadow", "-Wno-unknown-pragmas", "-I", scratch]
    sources = [f"{INKERNEL}/{name}.c" for name in ("inkernel", "attach", "control", "queue")]
    libraries = ["-luring", "-lbpf", "-lelf", "-lz", "-lpthread"]
    _run("cc", *flags, *more, *sources, "-o", os.path.join(directory, "inkernel"), *libraries)
    compiler = _run("clang", "-dumpversion").strip()
    _write_versions(directory, [f"inkernel (of this tree, clang {compiler})"])
    return compiler


_RECIPES = {
    "inkernel": (inkernel_recipe(), _build_inkernel),
    "kublk": (_KUBLK_RECIPE, _build_kublk),
    "rublk": (_RUBLK_RECIPE, _build_rublk),
}
NAMES = tuple(_RECIPES)

# Peers that these steps cannot build.
UNAVAILABLE = {
    "ublksrv": "no Debian package, and on no registry: its source is only in its git repository",
}


def peer(name, refresh=False):
    """Return a peer, built if it is not in the cache yet."""
    recipe, build = _RECIPES[name]
    try:
        directory, keep = cache.bundle(name, recipe, build, refresh, kind="peers")
    except (PackageError, subprocess.CalledProcessError, OSError) as problem:
        raise PeerError(str(problem)) from problem
    with open(os.path.join(directory, "versions"), encoding="utf-8") as source:
        versions = source.read().splitlines()
    return Peer(name, os.path.join(directory, name), versions, keep)


def every_peer(refresh=False):
    """Return (peers that are there, {name: why it is not there})."""
    found, missing = {}, dict(UNAVAILABLE)
    for name in NAMES:
        try:
            found[name] = peer(name, refresh)
        except PeerError as problem:
            missing[name] = str(problem)
    return found, missing
