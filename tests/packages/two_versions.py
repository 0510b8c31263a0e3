# SPDX-License-Identifier: MIT
"""Build the Debian packages of this tree and of the version before it, each from its own source."""

import os
import pathlib
import shutil
import subprocess
import tempfile

# The version before this one, in its real build: each must adopt the disks of the other. After a release it is the commit
# of that release. Until there is one, it is a commit from which these tests have upgraded, and to which they have
# downgraded. It is far behind, so that much has changed between the two: the protocol of workers, the region, the database
# and what the runtime directory has. No commit between them is tried.
# To move it on, run tests/packages/run --older COMMIT -k upgrade first. A commit that changes one of these has to pass
# with the commit before it, too.
OLDER = "d1d2cead185d168193a5c587628fbeff0fe859e4"


class _Missing(Exception):
    """The source of the version before cannot be had here: why."""


def _git(directory, *arguments, **more):
    """Run git in a repository that may belong to another user; return what it prints."""
    command = ["git", "-c", f"safe.directory={directory}", "-C", str(directory), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout.strip()


def _commit(root, name):
    """The full id of a commit of this clone."""
    if not (root / ".git").exists():
        raise _Missing(f"{root} is not a clone of git, and so has no commit {name} to upgrade from; give two packages with "
                       "--packages")
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except subprocess.CalledProcessError:
        raise _Missing(f"the commit {name}, to upgrade from, is not in this clone; fetch it with 'git fetch --unshallow', "
                       "or give two packages with --packages") from None


def _check_out(root, commit, tree):
    """Make a clone that has this commit checked out and shares the objects of `root`, where nothing is written."""
    _git(tree, "init", "--quiet")
    objects = _git(root, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    (tree / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n", encoding="utf-8")
    shallow = pathlib.Path(_git(root, "rev-parse", "--path-format=absolute", "--git-path", "shallow"))
    if shallow.exists():
        shutil.copy(shallow, tree / ".git" / "shallow")
    tags = _git(root, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")  # for scripts/version
    _git(tree, "update-ref", "--stdin", input=f"{tags}\n" if tags else "")
    _git(tree, "checkout", "--quiet", "--detach", commit)


def _one_package(directory):
    """The package in a directory, or None."""
    return next(directory.glob("ublkd_*.deb"), None)


def _version(tree):
    return subprocess.check_output([tree / "scripts" / "version"], text=True).strip()


def _build(tree, directory):
    """Build the package of a tree in a directory, which had none."""
    shutil.rmtree(directory, ignore_errors=True)
    print(f"== building the package of {_version(tree)}", flush=True)
    options = f"nocheck {os.environ.get('DEB_BUILD_OPTIONS', '')}".strip()
    environment = {**os.environ, "UBLKD_PACKAGES": str(directory), "DEB_BUILD_OPTIONS": options}
    subprocess.run([tree / "scripts" / "package", "deb"], env=environment, check=True, stdout=subprocess.DEVNULL)
    package = _one_package(directory)
    assert package, f"scripts/package deb of {tree} made no package in {directory}"
    return package


def _build_commit(root, commit, directory):
    with tempfile.TemporaryDirectory(prefix="ublkd-older-") as name:
        tree = pathlib.Path(name)
        _check_out(root, commit, tree)
        return _build(tree, directory)


def build(root, older):
    """Return the packages of the commit `older` and of this tree, or that of this tree alone if the commit cannot be had.
    Those that are there are not built again."""
    top = root / "build" / "test-packages"
    packages = {top / _version(root): lambda directory: _build(root, directory)}
    try:
        commit = _commit(root, older)
        packages = {top / commit: lambda directory: _build_commit(root, commit, directory), **packages}
    except _Missing as why:
        print(f"== no upgrade is tested: {why}", flush=True)
    for path in top.glob("*"):
        if path.is_file():
            path.unlink()
        elif path not in packages or path.name.endswith(".dirty"):
            shutil.rmtree(path)
    return [_one_package(directory) or make(directory) for directory, make in packages.items()]
