# SPDX-License-Identifier: MIT
"""Podman itself: containers write to volumes of the plug-in, over deaths of the worker and of ublkd, and get disks by CDI."""

import os
import pathlib
import shutil
import subprocess

import pytest

from harness.api import loop_spec
from harness.cdi import engines_directory
from harness.disk import Disk, block
from harness.wait import wait_until
from test_volumes import daemon_with_a_pool, plugin_of_the_daemon, pool_on_ext4  # noqa: F401 (fixtures)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not shutil.which("podman") or not os.path.exists("/bin/busybox"), reason="needs podman, crun and busybox-static"),
]

_CONF = """
[containers]
cgroups = "disabled"
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
"""
_PLUGIN = """
[engine.volume_plugins]
ublkd = "{socket}"
"""


class _Podman:
    def __init__(self, directory, socket=None):
        directory.mkdir()
        self._environment = os.environ | {"CONTAINERS_CONF": str(directory / "containers.conf"), "TMPDIR": str(directory)}
        plugin = _PLUGIN.format(socket=socket) if socket else ""
        (directory / "containers.conf").write_text(_CONF + plugin, encoding="utf-8")
        self._command = [
            "podman", "--root", str(directory / "root"), "--runroot", str(directory / "run"), "--storage-driver", "vfs"]

    def __call__(self, *words, status=0, **more):
        result = subprocess.run(
            [*self._command, *map(str, words)], env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=300, check=False, **more)
        assert (result.returncode == 0) == (status == 0), (words, result.returncode, result.stdout, result.stderr)
        return result.stdout.strip()

    def import_busybox(self, directory):
        """An image from a directory with one static program."""
        for name in ("bin", "data", "tmp", "proc", "dev", "sys", "etc"):
            (directory / name).mkdir(parents=True)
        shutil.copy("/bin/busybox", directory / "bin")
        (directory / "bin" / "sh").symlink_to("busybox")
        archive = directory.parent / "image.tar"
        subprocess.run(["tar", "-C", str(directory), "-cf", str(archive), "."], check=True)
        self("import", archive, "box")

    def shell(self, script):
        """Run a script in a new container with the volume at /data."""
        return self("run", "--rm", "-v", "data:/data", "box", "/bin/busybox", "sh", "-c", script)


@pytest.fixture(name="podman")
def _podman(directory, plugin):
    podman = _Podman(directory / "podman", plugin.path)
    podman.import_busybox(directory / "image")
    yield podman
    podman("rm", "--all", "--force", "--time", "0")


@pytest.mark.storm
def test_containers_use_a_volume(daemon, plugin, podman):
    podman("volume", "create", "--driver", "ublkd", "--opt", "size=64MiB", "data")
    assert [volume["Name"] for volume in plugin.call("List")["Volumes"]] == ["data"]
    assert "data" in podman("volume", "ls", "--quiet").split()
    assert podman.shell("echo first >/data/file; cat /data/file") == "first"
    assert daemon.api.get("data")["status"]["filesystem"]["type"] == "ext4"
    assert plugin.call("Path", Name="data") == {"Mountpoint": ""}  # the container has ended
    daemon.kill()
    daemon.start()
    assert podman.shell("cat /data/file") == "first"
    podman("volume", "rm", "data")
    assert daemon.api.names() == [] and plugin.call("List") == {"Volumes": []}


@pytest.mark.storm
def test_a_container_runs_on_over_deaths(daemon, plugin, podman):
    podman("volume", "create", "--driver", "ublkd", "--opt", "size=64MiB", "data")
    script = "i=0; while true; do i=$((i+1)); echo $i >/data/count.new; sync; mv /data/count.new /data/count; done"
    podman("run", "--detach", "--name", "writer", "-v", "data:/data", "box", "/bin/busybox", "sh", "-c", script)
    count = pathlib.Path(plugin.call("Path", Name="data")["Mountpoint"]) / "count"
    wait_until(count.exists, "a first write")
    for kill in (daemon.kill_worker, lambda name: (daemon.kill(), daemon.start()), daemon.kill_worker):
        before = int(count.read_text())
        kill("data")
        wait_until(lambda before=before: int(count.read_text() or 0) > before, "writes go on")
    assert podman.shell("cat /data/count") != ""  # a second container beside it
    assert count.exists()  # still mounted for the first
    podman("volume", "rm", "data", status=1)
    podman("rm", "--force", "--time", "0", "writer")
    assert plugin.call("Path", Name="data") == {"Mountpoint": ""}
    podman("volume", "rm", "data")
    assert daemon.api.names() == []


@pytest.fixture(name="cdi")
def directory_of_the_engines():
    with engines_directory() as path:
        yield path


@pytest.fixture(name="cdi_daemon")
def daemon_that_writes_files(cdi, make_daemon):
    return make_daemon(more_options=("--cdi-dir", str(cdi))).start()


@pytest.fixture(name="engine")
def podman_without_a_plugin(directory):
    podman = _Podman(directory / "podman")
    podman.import_busybox(directory / "image")
    return podman


@pytest.mark.variant
def test_a_container_of_root_gets_a_disk_by_its_name(cdi_daemon, engine, file_of):
    """Podman reads the file of ublkd: --device ublkd.io/disk=NAME."""
    disk = Disk(cdi_daemon.api.create(loop_spec("data", file_of()))["status"]["id"])
    node = "/dev/ublk/by-name/data"
    script = f"head -c 4096 /dev/zero | tr '\\0' p | dd of={node} bs=4096 conv=notrunc,fsync 2>/dev/null && ls {node}"

    def run(*options, **more):
        return engine("run", "--rm", *options, "box", "/bin/busybox", "sh", "-c", script, **more)

    assert run("--device", "ublkd.io/disk=data") == node
    assert disk.read(0, 4096) == block("p")
    run("--device", "ublkd.io/disk=other", status=1)
    cdi_daemon.api.delete("data")
    run("--device", "ublkd.io/disk=data", status=1)
