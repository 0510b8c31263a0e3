# SPDX-License-Identifier: MIT
"""The version that a tree has, with and without tags, git and an archive; and that dpkg and rpm sort the versions in
the order in which they were made."""

import filecmp
import itertools
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = os.environ.get("UBLKD_PROGRAMS")
ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
       for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-02T03:04:05Z"))},
}


class Tree:
    """A repository with the scripts under test and nothing else."""

    def __init__(self, path, version="0.2.0"):
        self.path = path
        (path / "scripts").mkdir(parents=True)
        for name in ("version", "package"):
            shutil.copy(ROOT / "scripts" / name, path / "scripts" / name)
        self.write_version(version)
        (path / ".gitignore").write_text("/build/\n")
        self.git("init", "-q")
        self.commit()

    def write_version(self, version):
        (self.path / "CMakeLists.txt").write_text(f"project(ublkd VERSION {version} LANGUAGES C)\n")

    def git(self, *arguments):
        run = subprocess.run(["git", *arguments], cwd=self.path, env=ENVIRONMENT, check=True, capture_output=True, text=True)
        return run.stdout.strip()

    def commit(self, tag=None):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        if tag:
            self.git("tag", tag)

    def run(self, *command, check=True):
        return subprocess.run(command, cwd=self.path, env=ENVIRONMENT, check=check, capture_output=True, text=True)

    def version(self, *options):
        return self.run("scripts/version", *options).stdout.strip()

    def hash(self):
        return self.git("rev-parse", "--short=12", "HEAD")

    def archive(self):
        return pathlib.Path(self.run("scripts/package", "source").stdout.strip())


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    return Tree(tmp_path / "tree")


def test_without_a_tag(tree):
    tree.commit()
    assert tree.version() == f"0.2.0~dev.2.g{tree.hash()}"


def test_of_a_tag(tree):
    tree.commit("v0.2.0-rc1")
    assert tree.version() == "0.2.0~rc1"
    tree.commit("v0.2.0")
    assert tree.version() == "0.2.0"


def test_other_tags_do_not_count(tree):
    tree.commit("vendor-2")
    assert tree.version().startswith("0.2.0~dev.2.")


def test_a_change_shows_until_it_is_committed(tree):
    tree.commit("v0.2.0")
    (tree.path / "note").write_text("git does not know this file")
    assert tree.version() == "0.2.0"
    (tree.path / ".gitignore").write_text("# changed\n")
    assert tree.version() == "0.2.0.dirty" and tree.version("--clean") == "0.2.0"


def test_of_an_archive_inside_another_repository(tree):
    """As in a packager's: the tags there are not ours."""
    tree.commit("v0.2.0")
    archive = tree.archive()
    tree.commit("v9.9.9")
    with tarfile.open(archive) as tar:
        tar.extractall(tree.path)
    assert tree.run("ublkd-0.2.0/scripts/version").stdout == "0.2.0\n"
    (tree.path / "ublkd-0.2.0/.version").unlink()
    assert tree.run("ublkd-0.2.0/scripts/version").stdout == "0.2.0~unknown\n"


def test_versions_sort_in_the_order_in_which_they_were_made(tree):
    made = [tree.version()]
    for _ in range(10):  # 2 to 11: a number, not a text
        tree.commit()
        made.append(tree.version())
    for step in (
        lambda: tree.commit("v0.2.0-rc1"), tree.commit, lambda: tree.commit("v0.2.0-rc2"), lambda: tree.commit("v0.2.0"),
        tree.commit, lambda: tree.write_version("0.3.0"), tree.commit, lambda: tree.commit("v0.3.0"),
    ):
        step()
        if tree.version() != made[-1]:
            made.append(tree.version())
    assert len(set(made)) == len(made) >= 18
    for earlier, later in itertools.combinations(made, 2):
        assert tree.run("dpkg", "--compare-versions", f"{earlier}-1", "lt", f"{later}-1", check=False).returncode == 0, (
            earlier, later)


def test_rpm_sorts_them_alike():
    rpm = pytest.importorskip("rpm", reason="needs python3-rpm")
    order = [
        "0.2.0~dev.2.gffffffffffff", "0.2.0~dev.11.g000000000000", "0.2.0~rc1", "0.2.0~rc1+dev.1.g000000000000",
        "0.2.0~rc2", "0.2.0", "0.2.0+dev.3.g000000000000", "0.2.0+dev.3.g000000000000.dirty", "0.3.0~dev.4.g000000000000",
        "0.3.0",
    ]
    for earlier, later in itertools.combinations(order, 2):
        assert rpm.labelCompare(("0", earlier, "1"), ("0", later, "1")) < 0, (earlier, later)  # pylint: disable=no-member


def test_the_same_commit_makes_the_same_archive(tree, tmp_path):
    tree.commit("v0.2.0")
    first = tree.archive().rename(tmp_path / "first")
    again = tmp_path / "elsewhere"
    tree.git("clone", "-q", str(tree.path), str(again))
    os.utime(again / "CMakeLists.txt", (0, 0))
    tree.path = again
    os.umask(0o077)
    try:
        assert filecmp.cmp(first, tree.archive(), shallow=False)
    finally:
        os.umask(0o022)


def test_an_archive_of_changes_has_them_and_says_so(tree, tmp_path):
    (tree.path / "CMakeLists.txt").write_text("project(ublkd VERSION 0.2.0 LANGUAGES C)\n# changed\n")
    (tree.path / "note").write_text("git does not know this file")
    before = tree.git("count-objects"), tree.git("status", "--porcelain")
    first = tree.archive()
    kept = shutil.copy(first, tmp_path / "first")
    assert filecmp.cmp(kept, tree.archive(), shallow=False)
    assert (tree.git("count-objects"), tree.git("status", "--porcelain")) == before
    with tarfile.open(first) as tar:
        root = tree.version()
        assert root.endswith(".dirty") and tar.extractfile(f"ublkd-{root}/.version").read().decode() == f"{root}\n"
        assert tar.extractfile(f"ublkd-{root}/CMakeLists.txt").read().endswith(b"# changed\n")
        assert f"ublkd-{root}/note" not in tar.getnames()


def test_only_packages_of_this_version_are_taken_from_another_debian(tree):
    """The build for it, here a stand-in, still has those of an earlier version, and of a root of another release."""
    tree.commit("v0.2.0")
    own = "13" if 'VERSION_ID="13"' in pathlib.Path("/etc/os-release").read_text() else "12"
    release, suite = ("13", "trixie") if own == "12" else ("12", "bookworm")
    made = tree.path / f"build-{suite}" / "packages"
    made.mkdir(parents=True)
    wanted = {"ublkd_0.2.0.orig.tar.xz", *(f"{name}_0.2.0-1~deb{release}{rest}" for name, rest in (
        ("ublkd", ".dsc"), ("ublkd", ".debian.tar.xz"), ("ublkd", "_amd64.deb"), ("ublkd-dbgsym", "_amd64.deb")))}
    others = {f"ublkd_0.1.0-1~deb{release}_amd64.deb", f"ublkd_0.2.0-1~deb{own}_amd64.deb", "ublkd_0.1.0.orig.tar.xz"}
    for name in wanted | others:
        (made / name).touch()
    root = tree.path / "tests/vm/other-root"
    root.parent.mkdir(parents=True)
    root.write_text("#!/bin/sh\n")
    root.chmod(0o755)
    printed = tree.run("scripts/package", "deb", "--release", release).stdout.split()
    assert {pathlib.Path(path).name for path in printed} == wanted
    assert {path.name for path in (tree.path / "build/packages").glob("ublkd*")} == wanted


def test_without_git_there_is_no_archive(tree):
    shutil.rmtree(tree.path / ".git")
    run = tree.run("scripts/package", "source", check=False)
    assert run.returncode == 1 and not list((tree.path / "build").rglob("*.tar*"))


@pytest.mark.parametrize("name", ["ublkd", "ublkctl", "ublkd-worker"])
def test_the_programs_show_it(name):
    """Whatever was changed since the build: all have one version, of this form."""
    shown = {program: subprocess.run([f"{PROGRAMS}/{program}", "--version"], check=True, capture_output=True, text=True).stdout
             for program in (name, "ublkd")}
    project = (ROOT / "CMakeLists.txt").read_text().split("project(ublkd VERSION ")[1].split()[0]
    assert shown[name].startswith(f"{name} {project}")
    assert shown[name].split()[1] == shown["ublkd"].split()[1]
