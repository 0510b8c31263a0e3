# SPDX-License-Identifier: MIT
"""Docker's own engine: volumes of the plug-in and disks over deaths, and the commands of examples/containers/README.md as they
stand."""

import errno
import json
import os
import pathlib
import re
import shutil
import signal
import sysconfig

import pytest

from harness import docker as engine
from harness.api import loop_spec
from harness.disk import Disk, block
from harness.fio import FileOnDisk
from harness.programs import source, ublkd_volumes
from harness.rootless import FioInside, activated
from harness.shell import run
from harness.tenants import User, kill_under
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
_NEIGHBOUR = 1001
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


def _run_blocks(section, docker, daemon, directory, how_many=None):
    """Run the commands of a section, or of its first blocks; return what each block has printed. systemd is not there: its part
    is done here."""
    examples, printed = directory / "examples", []
    shutil.copytree(_EXAMPLES, examples, dirs_exist_ok=True)
    units = {"systemctl reload ublkd": lambda: _reload(daemon), "systemctl restart docker": lambda: _restart(docker)}

    def run_lines(lines):
        return docker.command("sh", "-e", input="\n".join(lines), cwd=examples).stdout

    for user, commands in blocks(section)[:how_many]:
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


# Each argument is a node; prints those that could be written to, and the errors of the others.
_WRITE_TO_EACH = """
for node; do
    dd if=/dev/zero of="$node" bs=4096 count=1 conv=nocreat,notrunc oflag=direct status=none 2>&1 && echo "$node"
done
true
"""


def _disk_of_a_neighbour(daemon, path, uid):
    """Another tenant asks for a disk, by a rule of its own; return its name, the disk and its node."""
    rule = {"name": "neighbour", "who": {"users": [uid]}, "targets": ["loop"], "directories": [str(path.parent)], "devices": 1, "size": "1GiB"}
    policy = pathlib.Path("/etc/ublkd/policy.d/60-neighbour.json")
    policy.write_text(json.dumps({"rules": [rule]}), encoding="utf-8")
    policy.chmod(0o644)
    _reload(daemon)
    os.chown(path, uid, uid)
    path.parent.chmod(0o755)
    device = User(daemon, uid).create(loop_spec(f"u{uid}-theirs", path, size=path.stat().st_size))
    disk = Disk(device["status"]["id"])
    disk.write(0, block("n"))
    return device["name"], disk, device["status"]["node"]


def test_a_container_with_userns_remap_has_a_disk_that_recovers_and_no_other(
        usual, docker, directory, file_of, without_a_configuration):  # pylint: disable=unused-argument
    """It asks with curl. Without the rule for its control group the node is there, and opening it is EPERM."""
    _run_blocks("Docker with userns-remap", docker, usual, directory, how_many=1)
    docker.command("sh", "-c", "./make-image sh cat dd sleep curl | docker import - disk-tools", cwd=directory / "examples")
    neighbour, theirs, node = _disk_of_a_neighbour(usual, file_of(), _NEIGHBOUR)
    shared, libraries = directory / "shared", f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    shared.mkdir()
    options = ("--volume", f"{shared}:{shared}", "--volume", f"{libraries}:{libraries}:ro", "--volume", f"{shutil.which('fio')}:/usr/bin/fio:ro",
               "--volume", "/dev:/host", "--device-cgroup-rule", "b 259:* rw")

    with engine.Container(docker, "disk-tools", *options) as box, engine.Container(docker, "disk-tools") as without_the_rule:
        os.chown(shared, box.user, box.user)
        name = f"u{box.user}-data"
        status, device = box.ask("POST", "/devices?wait=ready&timeout=60s", {
            "name": name, "target": {"type": "loop", "pool": "fast"}, "size": 64 << 20})
        assert status == 201 and device["tenant"] == f"uid:{box.user}", device
        disk = Disk(device["status"]["id"])
        usual.api.wait_for(name, lambda now: now["status"]["node"], "with a node")
        for there in (box, without_the_rule):
            assert there.ask("POST", f"/devices/{name}/deliver", {"path": "/dev/data"})[0] == 200
        refused = without_the_rule.output("sh", "-c", _WRITE_TO_EACH, "sh", "/dev/data")
        assert os.strerror(errno.EPERM) in refused and refused != "/dev/data"
        fio = FioInside(box, shared, FileOnDisk("/dev/data", disk), size="16M", jobs=2)
        try:
            kill_under(fio, usual, name)
            fio.finish().assert_clean()
        finally:
            fio.kill()
        assert box.ask("GET", f"/devices/{name}")[1]["status"]["recoveries"]["count"] >= 1
        assert box.ask_each(("GET", f"/devices/{neighbour}", None), ("DELETE", f"/devices/{neighbour}?force=true", None)) == [404, 404]
        nodes = [path.replace("/dev/", "/host/") for path in (node, theirs.path)]
        refused = box.output("sh", "-c", _WRITE_TO_EACH, "sh", *nodes, "/dev/data").splitlines()
        assert [os.strerror(errno.EACCES) in line for line in refused] == [True, True, False] and refused[-1] == "/dev/data"
        assert box.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
        user = box.user
    assert theirs.read(0, 4096) == block("n")
    log = usual.log()
    for request, asker, status in ((r"POST /devices\S*", user, 201), (rf"DELETE /devices/{neighbour}\S*", user, 404),
                                   (rf"DELETE /devices/{name}\S*", user, 204), (r"POST /devices\S*", _NEIGHBOUR, 201)):
        assert re.search(rf"{request} by user {asker} \(pid \d+[^)]*\), .*: {status}", log), log
