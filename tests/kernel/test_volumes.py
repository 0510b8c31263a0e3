# SPDX-License-Identifier: MIT
"""Volumes of the plug-in on real disks: an engine's calls, each again after ublkd and the plug-in were killed before or after
it."""

import concurrent.futures
import json
import pathlib
import sys

import pytest

from harness import programs
from harness.disk import block
from harness.wait import wait_until

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "volumes"))

from plugin import Plugin  # noqa: E402 (found there)

pytestmark = pytest.mark.long


@pytest.fixture(name="pool")
def pool_on_ext4(ext4):
    """The directory of a pool."""
    pool = ext4 / "pool"
    pool.mkdir(mode=0o700)
    return pool


@pytest.fixture(name="daemon")
def daemon_with_a_pool(make_daemon, pool, directory):
    """A daemon with the pool fast; what is mounted in the end is unmounted."""
    policy = directory / "policy.d"
    policy.mkdir(mode=0o755)
    (policy / "pools.json").write_text(json.dumps({"pools": {"fast": {"directory": str(pool)}}}), encoding="utf-8")
    daemon = make_daemon(more_options=("--policy-dir", str(policy))).start()
    yield daemon
    for name in daemon.api.names():
        daemon.api.ask("POST", f"/devices/{name}/unmount", 200, json={"allHolders": True})


@pytest.fixture(name="plugin")
def plugin_of_the_daemon(daemon, directory):
    """The plug-in, as an engine finds it."""
    plugin = Plugin(programs.ublkd_volumes(), directory, daemon.runtime / "ublkd.sock", "--pool", "fast").start()
    yield plugin
    plugin.stop()


def _restart(daemon):
    daemon.kill()
    daemon.start()


def _call(daemon, plugin, name, kills, **body):
    """A call, and again: with a SIGKILL of ublkd and of the plug-in before each, where there are kills."""
    for _ in range(2):
        if kills:
            plugin.kill()
            _restart(daemon)
            plugin.start()
        answer = plugin.call(name, **body)
    return answer


@pytest.mark.parametrize("fs, size, kills", [("ext4", "64MiB", True), pytest.param("xfs", "320MiB", False, marks=pytest.mark.storm)])
def test_the_life_of_a_volume(daemon, plugin, pool, fs, size, kills):
    _call(daemon, plugin, "Create", kills, Name="data", Opts={"size": size, "fs": fs})
    assert len([*pool.iterdir()]) == 1
    assert daemon.api.get("data")["status"]["filesystem"] is None  # at the first use
    where = pathlib.Path(_call(daemon, plugin, "Mount", kills, Name="data", ID="a" * 64)["Mountpoint"])
    assert where.is_mount()
    (where / "file").write_bytes(block("f"))
    assert _call(daemon, plugin, "Mount", kills, Name="data", ID="b" * 64)["Mountpoint"] == str(where)
    _call(daemon, plugin, "Unmount", kills, Name="data", ID="a" * 64)
    assert where.is_mount() and (where / "file").read_bytes() == block("f")
    plugin.fail("Remove", Name="data")
    daemon.kill_worker("data")  # the file system does not notice
    (where / "file").write_bytes(block("g"))
    _call(daemon, plugin, "Unmount", kills, Name="data", ID="b" * 64)
    assert not where.is_mount() and plugin.call("Path", Name="data")["Mountpoint"] == ""
    assert plugin.call("Mount", Name="data", ID="c")["Mountpoint"] == str(where)
    assert (where / "file").read_bytes() == block("g")
    plugin.call("Unmount", Name="data", ID="c")
    _call(daemon, plugin, "Remove", kills, Name="data")
    assert [*pool.iterdir()] == [] and plugin.call("List") == {"Volumes": []}


def test_a_program_that_uses_the_volume_keeps_it(daemon, plugin):
    plugin.call("Create", Name="data", Opts={"size": "64MiB"})
    where = pathlib.Path(plugin.call("Mount", Name="data", ID="a")["Mountpoint"])
    (where / "file").write_bytes(block("f"))
    with open(where / "file", "rb"):
        plugin.fail("Unmount", Name="data", ID="a")
        plugin.fail("Remove", Name="data")
        assert where.is_mount()
    plugin.call("Unmount", Name="data", ID="a")  # as an engine does it again
    assert not where.is_mount()
    daemon.api.wait_for("data", lambda device: device["status"]["mount"] is None, "without a mount")
    plugin.call("Remove", Name="data")


def _together(calls):
    """Make calls at once; return the answers, in order."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(*call) for call in calls]]


@pytest.mark.storm
def test_many_containers_at_once(daemon, plugin):
    """Each gets its mount, and the last one ends it."""
    plugin.call("Create", Name="data", Opts={"size": "64MiB"})

    def use(number):
        where = pathlib.Path(plugin.call("Mount", Name="data", ID=str(number))["Mountpoint"])
        (where / str(number)).write_text("x")
        plugin.call("Unmount", Name="data", ID=str(number))

    _together([(use, number) for number in range(6)])
    assert daemon.api.get("data")["status"]["mount"] is None
    where = pathlib.Path(plugin.call("Mount", Name="data", ID="last")["Mountpoint"])
    assert {path.name for path in where.iterdir()} - {"lost+found"} == {str(number) for number in range(6)}
    plugin.call("Unmount", Name="data", ID="last")
    plugin.call("Remove", Name="data")


@pytest.mark.variant
def test_two_volumes_side_by_side(daemon, plugin):
    for name in ("one", "two"):
        plugin.call("Create", Name=name, Opts={"size": "64MiB"})
    mounts = {name: pathlib.Path(plugin.call("Mount", Name=name, ID=name)["Mountpoint"]) for name in ("one", "two")}
    for name, where in mounts.items():
        (where / "name").write_text(name)
    assert {name: (where / "name").read_text() for name, where in mounts.items()} == {"one": "one", "two": "two"}
    for name in mounts:
        plugin.call("Unmount", Name=name, ID=name)
        plugin.call("Remove", Name=name)
    wait_until(lambda: daemon.api.names() == [], "no device")
