# SPDX-License-Identifier: MIT
"""ublkctl with real disks: from a file to a file system and back."""

import json
import os
import subprocess

import pytest

from harness import programs, ublk
from harness.disk import Disk, block
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test


def ublkctl(daemon, *arguments, status=0):
    """Run it; return what it printed."""
    done = subprocess.run(
        [str(programs.build() / "ublkctl"), "--socket", str(daemon.runtime / "ublkd.sock"), *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )
    assert done.returncode == status, f"{arguments}: exit status {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def test_attach_use_restart_detach(daemon, file_of, directory):
    path = str(file_of(size=64 << 20))
    node = ublkctl(daemon, "attach", path).strip()
    name = ublkctl(daemon, "list", "-o", "name").strip()
    assert node.startswith("/dev/ublkb") and os.path.exists(node)
    assert ublkctl(daemon, "attach", path).strip() == node
    run("mkfs.ext4", "-q", "-F", node)

    (row,) = [line.split() for line in ublkctl(daemon, "list").splitlines()[1:]]
    assert row[1:3] == ["Live", node] and row[4:6] == ["loop", path]
    read, write = [line.split() for line in ublkctl(daemon, "stats", name).splitlines()[1:3]]
    assert (read[1], write[1]) == ("read", "write") and int(write[2]) > 0 and write[4] == "0"

    mount = directory / "mnt"
    mount.mkdir()
    run("mount", node, mount)
    try:
        (mount / "file").write_bytes(b"x" * 100000)
        assert str(mount) in ublkctl(daemon, "detach", node, status=7)  # it names the openers
        before = daemon.worker_pid(name)
        assert ublkctl(daemon, "restart", name) == f"{name} restarted\n"
        assert daemon.worker_pid(name) != before
        assert (mount / "file").read_bytes() == b"x" * 100000
    finally:
        run("umount", mount)
    os.truncate(path, 128 << 20)
    assert ublkctl(daemon, "resize", name, "128MiB") == f"{name} changed and ready\n"
    node = daemon.api.get(name)["status"]["device"]
    assert Disk(daemon.api.get(name)["status"]["id"]).size() == 128 << 20
    described = ublkctl(daemon, "describe", name)
    assert node in described and f"target.path = {path}" in described and "Events:" in described
    assert ublkctl(daemon, "detach", path) == f"{name} removed\n"
    assert ublk.numbers() == [] and not os.path.exists(node)


def test_a_growth_that_fails_changes_nothing(daemon, file_of):
    """Where the disk grows live, and where it would be recreated: there the new one is tried first."""
    ublkctl(daemon, "create", "data", "target.type=loop", f"target.path={file_of(size=64 << 20)}")
    disk = Disk(daemon.api.get("data")["status"]["id"])
    disk.write(0, block("a"))
    output = ublkctl(daemon, "resize", "data", "2GiB", status=1)
    assert "64MiB" in output and ("The old size was put back" in output or "Nothing was changed" in output)
    assert "retries" not in output and "remove it" not in output, output
    device = daemon.api.get("data")
    assert "size" not in device["spec"] and device["status"]["phase"] == "Live" and disk.size() == 64 << 20
    assert disk.read(0, 4096) == block("a")


def test_top_sees_the_load(daemon):
    ublkctl(daemon, "create", "data", "target.type=null", "size=64MiB")
    disk = Disk(daemon.api.get("data")["status"]["id"])
    with subprocess.Popen(
        [str(programs.build() / "ublkctl"), "-s", str(daemon.runtime / "ublkd.sock"), "top", "-b", "-i", "200ms"],
        stdout=subprocess.PIPE, text=True,
    ) as top:

        def is_busy():
            disk.write(0, block("a", 8192))
            line = next(line for line in top.stdout if line.startswith("data"))
            return line.split()[5] != "0"  # writes per second

        try:
            wait_until(is_busy, "a write in top")
        finally:
            top.terminate()
    ublkctl(daemon, "delete", "data")


def test_apply_to_the_real_thing(daemon, directory, file_of):
    specs = directory / "specs"
    specs.mkdir()
    labels = {"app": "x"}
    loop = {"name": "a", "target": {"type": "loop", "path": str(file_of(size=8 << 20))}, "labels": labels}
    (specs / "a.json").write_text(json.dumps(loop), encoding="utf-8")
    (specs / "b.json").write_text(
        json.dumps({"name": "b", "target": {"type": "null"}, "size": "8MiB", "labels": labels}), encoding="utf-8"
    )
    apply = ["apply", "-f", str(specs), "--prune", "-l", "app=x", "--wait"]
    assert ublkctl(daemon, *apply).splitlines() == ["a created", "b created"]
    assert ublkctl(daemon, *apply).splitlines() == ["a unchanged", "b unchanged"]
    (specs / "b.json").unlink()
    assert ublkctl(daemon, *apply).splitlines() == ["a unchanged", "b removed"]
    assert len(ublk.numbers()) == 1
    assert ublkctl(daemon, "host").startswith("ublkd:")
    ublkctl(daemon, "delete", "a")


def test_a_mounted_disk_is_pruned_only_by_its_name(daemon, directory, file_of):
    """--force once removed every mounted disk that was not in the folder any more, and reported success."""
    labels = {"app": "x"}
    spec = {"name": "a", "target": {"type": "loop", "path": str(file_of(size=64 << 20))}, "labels": labels}
    daemon.api.create(spec)
    node = daemon.api.get("a")["status"]["device"]
    run("mkfs.ext4", "-q", "-F", node)
    mount = directory / "mnt"
    mount.mkdir()
    run("mount", node, mount)
    try:
        (mount / "file").write_bytes(b"x" * 100000)
        (directory / "none.json").write_text("[]", encoding="utf-8")
        prune = ["apply", "-f", str(directory / "none.json"), "--prune", "-l", "app=x"]
        assert "--prune-in-use" in ublkctl(daemon, *prune, "--force", status=2)
        for more in ([], ["--dry-run"], ["--wait"]):
            output = ublkctl(daemon, *prune, *more, status=7)
            assert f"mounted at {mount}" in output and "removed" not in output.splitlines()[0]
        foreseen = ublkctl(daemon, *prune, "--dry-run", "--prune-in-use", "a")
        assert foreseen.startswith("a would be removed although it is in use: ") and str(mount) in foreseen
        assert daemon.api.phase("a") == "Live" and (mount / "file").read_bytes() == b"x" * 100000
        assert ublkctl(daemon, *prune, "--prune-in-use", "a") == "a is being removed\n"
        assert daemon.api.phase("a") == "Stopping", "the mount keeps it"
    finally:
        run("umount", mount)
    assert ublkctl(daemon, "wait", "a", "--for", "gone") == ""
    assert ublk.numbers() == []
