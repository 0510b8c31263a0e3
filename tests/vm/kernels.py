# SPDX-License-Identifier: MIT
"""Debian's cloud kernels as bundles: DIR/vmlinux and DIR/root/lib/modules/RELEASE."""

import argparse
import os
import re
import subprocess
from dataclasses import dataclass

import cache
from debian_packages import PackageError, Suite, newest

_RECIPE = 1

SERIES = ("6.12", "7")  # that the tests use
_NEWEST = "7"  # stands for the newest 7.N that Debian has

# Where a series is found, the first that has it. From 7.0 on a kernel comes
# in three packages, and its linux-image-* is only the sum of them.
_SOURCES = (
    (r"6\.12", {"suites": ("bookworm-backports", "trixie"), "packages": ("linux-image",)}),
    (r"7\.\d+", {"suites": ("trixie-backports",), "packages": ("linux-binary", "linux-modules", "linux-base")}),
)

# What a bzImage may carry, by its first bytes.
_DECOMPRESSORS = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x02\x21\x4c\x18": "lz4",
}


@dataclass
class Kernel:
    """A kernel to boot; its files stay while `keep` is open."""

    series: str
    release: str
    image: str
    modules: str
    keep: int


def _source(series):
    """Return the suites and packages of a series, or None."""
    return next((source for pattern, source in _SOURCES if re.fullmatch(pattern, series)), None)


def known_series(text):
    """For argparse: a series that Debian may have, also one that the tests do not use, as 7.2."""
    if text != _NEWEST and not _source(text):
        raise argparse.ArgumentTypeError(f"no such kernel: {text}; give one of {', '.join(SERIES)}, or a 7.N")
    return text


def _find(series, scratch):
    """Return (suite, release) of the newest kernel of a series."""
    first = _source(series)["packages"][0]
    pattern = re.escape(f"{first}-{series}.") + r"[^-]*-cloud-amd64"
    problems = []
    for name in _source(series)["suites"]:
        try:
            suite = Suite(name, scratch)
        except PackageError as problem:
            problems.append(str(problem))
            continue
        names = suite.names(pattern)
        if names:
            return suite, newest(names, suite.version)[len(first) + 1 :]
        problems.append(f"Debian {name} has no kernel {series}")
    raise PackageError("; ".join(problems))


def _choose(directory, scratch):
    """Write the newest series that Debian has, for settle()."""
    (pattern, source), = (entry for entry in _SOURCES if entry[0].startswith(_NEWEST))
    first = source["packages"][0]
    suite = Suite(source["suites"][0], scratch)
    names = suite.names(re.escape(first) + f"-{pattern}" + r"\.[^-]*-cloud-amd64")
    if not names:
        raise PackageError(f"Debian {suite.name} has no kernel {_NEWEST}.N")
    series = re.search(pattern, newest(names, suite.version)).group()
    with open(os.path.join(directory, "series"), "w", encoding="ascii") as output:
        output.write(series)
    return series


def settle(series, refresh=False):
    """Return the series that "7" stands for; another one as it is. What was chosen once is kept until a refresh, like the
    kernel itself: when it goes from the archive, the cache still has it, and a refresh takes the next one."""
    if series != _NEWEST:
        return series
    directory, keep = cache.bundle(f"newest-{series}", _RECIPE, _choose, refresh)
    try:
        with open(os.path.join(directory, "series"), encoding="ascii") as source:
            return source.read()
    finally:
        os.close(keep)


def _extract_vmlinux(bzimage, output):
    """Write the uncompressed kernel of a bzImage: it boots faster under TCG.
    Offsets are those of Documentation/arch/x86/boot.rst."""
    with open(bzimage, "rb") as source:
        image = source.read()
    start = (image[0x1F1] + 1) * 512 + int.from_bytes(image[0x248:0x24C], "little")
    length = int.from_bytes(image[0x24C:0x250], "little")
    payload = image[start : start + length - 4]  # the last four bytes are the size
    for magic, program in _DECOMPRESSORS.items():
        if payload.startswith(magic):
            with open(output, "wb") as target:
                subprocess.run([program, "-dcq"], input=payload, stdout=target, check=True)
            return
    raise PackageError(f"{bzimage} is compressed in a way that is not known here")


def _build(series):
    def build(directory, scratch):
        suite, release = _find(series, scratch)
        root = os.path.join(directory, "root")
        os.makedirs(os.path.join(root, "usr/lib"))
        os.symlink("usr/lib", os.path.join(root, "lib"))
        unpacked = os.path.join(scratch, "unpacked")
        for package in _source(series)["packages"]:
            suite.unpack(f"{package}-{release}", unpacked)
        for modules in ("usr/lib/modules", "lib/modules"):
            path = os.path.join(unpacked, modules)
            if os.path.isdir(path):
                os.rename(path, os.path.join(root, "lib/modules"))
                break
        modules = os.path.join(root, "lib/modules", release)
        subprocess.run(["/usr/sbin/depmod", "-b", root, release], check=True)
        bzimage = os.path.join(modules, "vmlinuz")
        if not os.path.exists(bzimage):
            bzimage = os.path.join(unpacked, f"boot/vmlinuz-{release}")
        _extract_vmlinux(bzimage, os.path.join(directory, "vmlinux"))
        with open(os.path.join(directory, "release"), "w", encoding="ascii") as output:
            output.write(release)
        return release

    return build


def kernel(series, refresh=False):
    """Return the newest kernel of a series, from the cache if it is there."""
    series = settle(series, refresh)
    directory, keep = cache.bundle(f"kernel-{series}", _RECIPE, _build(series), refresh)
    with open(os.path.join(directory, "release"), encoding="ascii") as source:
        release = source.read()
    return Kernel(
        series=series,
        release=release,
        image=os.path.join(directory, "vmlinux"),
        modules=os.path.join(directory, "root"),
        keep=keep,
    )
