# SPDX-License-Identifier: MIT
"""Build Debian packages of two versions of the tree: the second differs in its version alone."""

import io
import os
import pathlib
import shutil
import subprocess
import tarfile

_SUFFIX = "+next"  # dpkg sorts it behind the first version


def _package(root, directory, *arguments):
    """Run scripts/package; return the files that it made."""
    options = f"nocheck {os.environ.get('DEB_BUILD_OPTIONS', '')}".strip()
    environment = {**os.environ, "UBLKD_PACKAGES": str(directory), "DEB_BUILD_OPTIONS": options}
    done = subprocess.run(
        [root / "scripts" / "package", *arguments], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return [pathlib.Path(line) for line in done.stdout.splitlines()]


def _is_program(path):
    return path.suffix == ".deb" and "-dbgsym_" not in path.name


def _with_version(archive, version, target):
    """Copy a source archive; the copy has another version."""
    with tarfile.open(archive) as source, tarfile.open(target, "w:xz", preset=0) as copy:
        for member in source:
            content = source.extractfile(member) if member.isfile() else None
            if member.name.count("/") == 1 and member.name.endswith("/.version"):
                text = f"{version}\n".encode()
                member.size, content = len(text), io.BytesIO(text)
            copy.addfile(member, content)


def _those_of(directory, versions):
    """The packages of the versions that are in the directory."""
    return [path for version in versions for path in directory.glob(f"ublkd_{version}-*.deb")]


def build(root):
    """Return the packages of both versions, the older one first."""
    directory = root / "build" / "test-packages"
    version = subprocess.check_output([root / "scripts" / "version"], text=True).strip()
    versions = [version, version + _SUFFIX]
    if version.endswith(".dirty") or len(_those_of(directory, versions)) != len(versions):
        shutil.rmtree(directory, ignore_errors=True)
        (archive,) = _package(root, directory, "source")
        copy = directory / f"ublkd-{versions[1]}.tar.xz"
        _with_version(archive, versions[1], copy)
        for each in (archive, copy):
            print(f"== building the package of {each.name}", flush=True)
            assert any(_is_program(path) for path in _package(root, directory, "deb", each))
    packages = _those_of(directory, versions)
    assert len(packages) == len(versions), f"{directory} has {packages}"
    return packages
