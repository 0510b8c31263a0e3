# SPDX-License-Identifier: MIT
"""Docker's own engine: volumes of the plug-in over deaths, and the commands of examples/containers/README.md as they stand."""

import os
import pathlib
import shutil
import signal

import pytest

from harness import docker as engine
from harness.programs import source, ublkd_volumes
from harness.rootless import activated
from harness.shell import run
from harness.wait import wait_until
from test_container_examples import blocks, programs_and_a_place_for_the_pool  # noqa: F401 (a fixture)
from test_volumes import Plugin, daemon_with_a_pool, plugin_of_the_daemon, pool_on_ext4  # noqa: F401 (fixtures)

pytestmark = [
    pytest.mark.long,
    pytest.mark.storm,
    pytest.mark.skipif(
        not engine.is_installed() or not os.path.exists("/bin/busybox"), reason="needs docker.io and busybox-static"),
]

_EXAMPLES = source("examples/containers")
_CONFIGURATION = pathlib.Path("/etc/docker/daemon.json")
_COUNT = "i=0; while true; do i=$((i+1)); echo $i >/data/count.new; sync; mv /data/count.new /data/count; done"


@pytest.fixture(name="docker")
def _docker(directory):
    docker = engine.Docker(directory)
    try:
        yield docker.start()
    finally:
        docker.remove()


@pytest.fixture(name="with_plugin")
def docker_with_the_plugin(docker, plugin, directory):
    """Docker that knows the plug-in, and an image of one static program."""
    docker.use_plugin(plugin.path)
    root = directory / "image"
    for name in ("bin", "data", "tmp", "proc", "dev", "sys", "etc"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin")
    (root / "bin" / "sh").symlink_to("busybox")
    run("tar", "-C", root, "-cf", directory / "image.tar", ".")
    docker("import", directory / "image.tar", "box")
    yield docker
    containers = docker("ps", "--all", "--quiet").split()
    if containers:
        docker("rm", "--force", *containers)


def _shell(docker, script, *options):
    return docker("run", "--rm", "--network", "none", "-v", "data:/data", *options, "box", "/bin/busybox", "sh", "-c", script)


def test_containers_use_a_volume(daemon, plugin, with_plugin):
    docker = with_plugin
    docker("volume", "create", "-d", "ublkd", "-o", "size=64MiB", "data")
    assert [volume["Name"] for volume in plugin.call("List")["Volumes"]] == ["data"]
    assert "data" in docker("volume", "ls", "--quiet", "--filter", "driver=ublkd").split()
    assert _shell(docker, "echo first >/data/file; cat /data/file") == "first"
    assert daemon.api.get("data")["status"]["filesystem"]["type"] == "ext4"
    assert plugin.call("Path", Name="data") == {"Mountpoint": ""}  # the container has ended
    for kill in (daemon, plugin):
        kill.kill()
        kill.start()
        assert _shell(docker, "cat /data/file") == "first"
    assert docker.run("volume", "create", "-d", "ublkd", "-o", "size=128MiB", "data", check=False).returncode == 0  # Docker has it
    assert daemon.api.get("data")["spec"]["size"] == "64MiB"
    docker("volume", "rm", "data")
    assert daemon.api.names() == [] and plugin.call("List") == {"Volumes": []}


def test_a_container_runs_on_over_deaths(daemon, plugin, with_plugin):
    docker = with_plugin
    docker("volume", "create", "-d", "ublkd", "-o", "size=64MiB", "data")
    docker("run", "--detach", "--name", "writer", "--network", "none", "-v", "data:/data", "box", "/bin/busybox", "sh", "-c", _COUNT)
    count = pathlib.Path(plugin.call("Path", Name="data")["Mountpoint"]) / "count"
    wait_until(count.exists, "a first write")

    def restart(process):
        process.kill()
        process.start()

    for kill in (lambda: daemon.kill_worker("data"), lambda: restart(daemon), lambda: restart(plugin)):
        before = int(count.read_text())
        kill()
        wait_until(lambda before=before: int(count.read_text() or 0) > before, "writes go on")
    assert _shell(docker, "cat /data/count") != ""  # a second container beside it
    assert count.exists()  # still mounted for the first
    assert docker.run("volume", "rm", "data", check=False).returncode != 0
    docker("rm", "--force", "writer")
    assert plugin.call("Path", Name="data") == {"Mountpoint": ""}
    docker("volume", "rm", "data")
    assert daemon.api.names() == []


def test_an_engine_that_died_leaves_its_mount(daemon, plugin, with_plugin):
    """Its containers end with it. Docker does not know afterwards that it has a volume mounted: an administrator ends that."""
    docker = with_plugin
    docker("volume", "create", "-d", "ublkd", "-o", "size=64MiB", "data")
    docker("run", "--detach", "--name", "writer", "--network", "none", "-v", "data:/data", "box", "/bin/busybox", "sh", "-c", _COUNT)
    count = pathlib.Path(plugin.call("Path", Name="data")["Mountpoint"]) / "count"
    wait_until(count.exists, "a first write")
    docker.kill()
    docker.start()
    docker("rm", "--force", "writer")
    assert _shell(docker, "test -s /data/count && echo whole") == "whole"
    assert docker.run("volume", "rm", "data", check=False).returncode != 0
    daemon.ctl("unmount", "data", "--all-holders")
    docker("volume", "rm", "data")
    assert daemon.api.names() == []


# ---- the examples ----


@pytest.fixture(name="usual")
def ublkd_and_the_plugin_at_the_usual_paths(daemon_there):
    """As the packages install them."""
    plugin = Plugin(ublkd_volumes(), "/run/docker", "/run/ublkd/ublkd.sock").start()
    yield daemon_there
    plugin.stop()


@pytest.fixture(name="daemon_there")
def daemon_of_the_examples(installed, make_daemon):  # pylint: disable=unused-argument
    """A ublkd in /run/ublkd, whose socket stays over its restarts."""
    with activated(make_daemon, runtime="/run/ublkd") as daemon:
        yield daemon


def _reload(daemon):
    def loads():
        return daemon.log().count(": rules ")

    before = loads()
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: loads() > before, "the policy in force")


def _restart(docker):
    docker.stop()
    docker.start()


def _run_blocks(section, docker, daemon, directory):
    """Run the commands of a section; return what each block has printed. systemd is not there: its part is done here."""
    examples, printed = directory / "examples", []
    shutil.copytree(_EXAMPLES, examples, dirs_exist_ok=True)
    units = {"systemctl reload ublkd": lambda: _reload(daemon), "systemctl restart docker": lambda: _restart(docker)}

    def run_lines(lines):
        return docker.command("sh", "-e", input="\n".join(lines), cwd=examples).stdout

    for user, commands in blocks(section):
        assert user == "root"
        waiting, output = [], ""
        for line in commands.splitlines():
            if line.strip() in units:
                output += run_lines(waiting)
                waiting = []
                units[line.strip()]()
            else:
                waiting.append(line)
        printed.append(output + run_lines(waiting))
    return printed


def test_the_commands_for_docker(usual, docker, directory):
    printed = _run_blocks("Docker", docker, usual, directory)
    assert printed[1].splitlines() == ["data", "hello", "data"], printed  # made, read, removed
    assert printed[2].endswith("hello\n"), printed  # by Compose
    assert usual.api.names() == []


@pytest.fixture(name="without_a_configuration")
def _without_a_configuration():
    """Another test finds Docker as it was."""
    assert not _CONFIGURATION.exists()
    yield
    _CONFIGURATION.unlink(missing_ok=True)


def test_the_commands_for_docker_with_userns_remap(usual, docker, directory, without_a_configuration):  # pylint: disable=unused-argument
    printed = _run_blocks("Docker with userns-remap", docker, usual, directory)
    lines = printed[-1].splitlines()
    assert "hello" in lines and lines[-1] == "box", printed  # read from the disk, and the container that is removed
    assert usual.api.names() == []
