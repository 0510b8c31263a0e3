# SPDX-License-Identifier: MIT
"""Devices that files describe, with the real driver: what is in use stays, whatever becomes of its file."""

import json
import signal

import pytest

from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.shell import run
from harness.wait import holds_for, wait_until

pytestmark = pytest.mark.long


class _Files:
    def __init__(self, daemon, folder):
        self.daemon, self.folder = daemon, folder
        self.folder.mkdir(mode=0o755)

    def put(self, name, spec):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(spec, indent=1), encoding="utf-8")
        path.chmod(0o644)
        return path

    def reload(self):
        self.daemon.process.send_signal(signal.SIGHUP)

    def source(self, name):
        """The reason of the condition Source."""
        return (condition_of(self.daemon.api.get(name), "Source") or {}).get("reason")

    def clean(self):
        """The devices must go as their files do: the API does not remove them."""
        for path in self.folder.iterdir():
            path.unlink()
        if not self.daemon.running:
            self.daemon.start()
        self.reload()
        wait_until(lambda: not [d for d in self.daemon.api.ask("GET", "/devices", 200)["items"] if d["source"]],
                   "no device of a file")


@pytest.fixture(name="files")
def files_of_devices(make_daemon, directory):
    """The files, and a daemon that does not run yet."""
    files = _Files(make_daemon(more_options=("--devices-dir", str(directory / "devices.d"))), directory / "devices.d")
    yield files
    files.clean()


def test_a_device_of_a_file_is_live_after_the_start(files, file_of):
    path = files.put("data", loop_spec("data", file_of()))
    files.put("bad", {"name": "bad", "target": {"type": "parrot"}})
    files.put("other", null_spec("other"))
    api = files.daemon.start().api
    assert sorted(api.names()) == ["data", "other"]  # when ublkd is ready, it has them
    device = api.wait_phase("data", "Live")
    assert device["source"] == str(path) and files.source("data") == "OwnedByFile"
    api.wait_phase("other", "Live")
    (problem,) = [p for p in api.ask("GET", "/host", 200)["problems"] if p["title"] == "FileInvalid"]
    assert "bad.json:4: /target/type" in problem["detail"], problem
    problem = api.ask("DELETE", "/devices/data?force=true", 409)
    assert problem["type"].endswith("owned-by-file") and str(path) in problem["detail"]
    worker = files.daemon.worker_pid("data")
    files.daemon.stop()
    files.daemon.start()
    assert api.wait_phase("data", "Live")["generation"] == 1 and files.daemon.worker_pid("data") == worker


def test_a_mounted_disk_stays_when_its_file_goes(files, file_of, directory):
    path = files.put("data", loop_spec("data", file_of()))
    api = files.daemon.start().api
    disk = Disk(api.wait_phase("data", "Live")["status"]["id"])
    run("mkfs.ext4", "-q", disk.path)
    mount = directory / "mnt"
    mount.mkdir()
    run("mount", disk.path, mount)
    try:
        path.unlink()
        files.reload()
        wait_until(lambda: files.source("data") == "FileGone", "FileGone")
        assert str(mount) in condition_of(api.get("data"), "Source")["message"]
        (mount / "file").write_bytes(block("x"))
        run("sync", "-f", mount)
        assert api.phase("data") == "Live"
        files.daemon.stop()  # the next ublkd finds the same
        files.daemon.start()
        wait_until(lambda: files.source("data") == "FileGone", "FileGone after a restart")
        files.daemon.kill()
        files.daemon.start()
        wait_until(lambda: files.source("data") == "FileGone", "FileGone after a crash")
        assert api.phase("data") == "Live" and (mount / "file").read_bytes() == block("x")
        problem = api.ask("DELETE", "/devices/data", 409)  # now a client may, once it is not in use
        assert problem["type"].endswith("in-use"), problem
    finally:
        run("umount", mount)
    files.reload()
    wait_until(lambda: "data" not in api.names(), "the device to go")


def test_a_change_that_needs_a_new_disk_waits_for_the_users(files, file_of):
    store, other = file_of(), file_of("other.img")
    files.put("data", loop_spec("data", store))
    api = files.daemon.start().api
    disk = Disk(api.wait_phase("data", "Live")["status"]["id"])
    with open(disk.path, "rb"):
        files.put("data", loop_spec("data", other))
        files.reload()
        wait_until(lambda: files.source("data") == "FileRefused", "FileRefused")
        device = api.get("data")
        assert device["generation"] == 1 and device["status"]["phase"] == "Live"
        files.put("data", loop_spec("data", store, labels={"a": "b"}))  # in place
        files.reload()
        api.wait_for("data", lambda device: device["generation"] == 2, "changed in place")
        wait_until(lambda: files.source("data") == "OwnedByFile", "OwnedByFile")
    files.put("data", loop_spec("data", other))
    files.reload()
    api.wait_for("data", lambda device: device["generation"] == 3 and device["status"]["phase"] == "Live", "replaced")


def test_a_change_that_no_worker_can_serve_keeps_the_disk(files, file_of, directory):
    files.put("data", loop_spec("data", file_of()))
    api = files.daemon.start().api
    api.wait_phase("data", "Live")
    worker = files.daemon.worker_pid("data")
    files.put("data", loop_spec("data", directory / "missing.img"))
    files.reload()
    wait_until(lambda: files.source("data") == "FileRefused", "FileRefused")
    assert files.daemon.worker_pid("data") == worker


def test_a_directory_that_is_away_removes_nothing(files):
    files.put("data", null_spec("data"))
    api = files.daemon.start().api
    api.wait_phase("data", "Live")
    away = files.folder.rename(files.folder.with_name("away"))
    files.reload()
    wait_until(lambda: files.source("data") == "FileInvalid", "FileInvalid")
    files.daemon.stop()
    files.daemon.start()
    holds_for(lambda: api.phase("data") == "Live", 2, "the device stays")
    away.rename(files.folder)
    files.reload()
    wait_until(lambda: files.source("data") == "OwnedByFile", "its file")


def test_the_new_spec_counts_at_a_start_without_a_disk(files, file_of):
    """As at a boot: a disk that does not exist has no users, so the file is not refused."""
    path = files.put("data", loop_spec("data", file_of(), enabled=False))
    api = files.daemon.start().api
    api.wait_phase("data", "Disabled")
    files.daemon.stop()
    files.put("data", loop_spec("data", file_of("other.img")))
    files.daemon.start()
    device = api.wait_phase("data", "Live")
    assert device["generation"] == 2 and device["spec"]["target"]["path"].endswith("other.img")
    assert device["source"] == str(path)
