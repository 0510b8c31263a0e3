# SPDX-License-Identifier: MIT
"""The download cache: bundles that are made once, published whole, and shared.

A bundle NAME is the symlink $CACHE/vm/NAME to a directory
$CACHE/vm/NAME@RECIPE-VERSION (vm is the kind of the bundle: others have other
folders).  RECIPE is the version of the code that makes
the bundle: bundles of another recipe are rebuilt.  A bundle is made in a
hidden directory beside it and then renamed, under a lock, so two runs that
start at once make it once, and one that is killed leaves nothing half made.
A run that uses a bundle holds a shared lock on its directory; an old bundle
is removed only when no run does.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile


def cache_directory(kind="vm"):
    """Return the directory of all bundles of a kind; make it if need be."""
    base = os.environ.get("UBLKD_CACHE")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        base = os.path.join(home, "ublkd")
    directory = os.path.join(os.path.realpath(base), kind)
    os.makedirs(directory, exist_ok=True)
    return directory


def _current(directory, name, recipe):
    link = os.path.join(directory, name)
    try:
        target = os.readlink(link)
    except OSError:
        return None
    path = os.path.join(directory, target)
    if target.startswith(f"{name}@{recipe}-") and os.path.isdir(path):
        return path
    return None


def _take_shared_lock(path):
    """Return a descriptor that keeps `path`, or None if it was just removed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if os.path.isdir(path):
        return descriptor
    os.close(descriptor)
    return None


def _remove_unused(directory, name, keep):
    """Remove what earlier runs left of this bundle; the caller holds its lock."""
    for entry in os.listdir(directory):
        path = os.path.join(directory, entry)
        if entry.startswith(f".{name}."):
            shutil.rmtree(path, ignore_errors=True)
        elif entry.startswith(f"{name}@") and path != keep:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            except BlockingIOError:
                pass  # a guest runs from it; a later refresh removes it
            finally:
                os.close(descriptor)


def _publish(directory, name, recipe, version, built):
    target = f"{name}@{recipe}-{version}"
    path = os.path.join(directory, target)
    if not os.path.isdir(path):
        os.rename(built, path)
    link = os.path.join(directory, f".{name}.link")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link)
    os.symlink(target, link)
    os.rename(link, os.path.join(directory, name))
    return path


def _make(directory, name, recipe, build, refresh):
    with open(os.path.join(directory, f"{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        current = _current(directory, name, recipe)
        if current and not refresh:
            return current  # another run made it while this one waited
        _remove_unused(directory, name, keep=current)
        with tempfile.TemporaryDirectory(
            prefix=f".{name}.", dir=directory, ignore_cleanup_errors=True
        ) as scratch:
            built = os.path.join(scratch, "bundle")
            os.mkdir(built)
            version = build(built, scratch)
            path = _publish(directory, name, recipe, version, built)
        _remove_unused(directory, name, keep=path)
        return path


def bundle(name, recipe, build, refresh=False, kind="vm"):
    """Return (path, descriptor) of a bundle, made by build(directory, scratch)
    if it is not there yet.  `build` returns the version of what it made.  The
    bundle stays as long as the descriptor is open."""
    directory = cache_directory(kind)
    while True:
        path = None if refresh else _current(directory, name, recipe)
        if path is None:
            path = _make(directory, name, recipe, build, refresh)
            refresh = False
        descriptor = _take_shared_lock(path)
        if descriptor is not None:
            return path, descriptor
