# SPDX-License-Identifier: MIT
"""ublkd-volumes: each call of the protocol, and each again. tests/kernel/test_volumes.py has real volumes."""
import concurrent.futures
import http.client
import os
import re
import subprocess
import sys
import tempfile

import pytest
from api_server import Server, spec
from api_tenants_test import ALICE, Tenants, create
from hostile_names import HOSTILE_NAMES
from other_user import NEEDS_ROOT
from plugin import Plugin

VOLUMES = os.environ["UBLKD_VOLUMES"]


@pytest.fixture(name="server")
def _server():
    with tempfile.TemporaryDirectory(prefix="ublkd-vol-") as directory:
        server = Server(directory, "--sqlite")
        yield server
        server.stop()


@pytest.fixture(name="plugin")
def _plugin(server):
    plugin = Plugin(VOLUMES, server.directory, server.path).start()
    yield plugin
    plugin.stop()


def options(**more):
    return {"path": "/disks/a.img", "size": "1GiB", **more}


def labels_of(made):
    """The labels of a spec, without the hash of the options."""
    assert len(made["labels"]["volume-options"]) == 16
    return {name: value for name, value in made["labels"].items() if name != "volume-options"}


def test_activation_and_capabilities(plugin):
    """As the documentation of the protocol has them."""
    assert plugin.ask("/Plugin.Activate") == (200, {"Implements": ["VolumeDriver"], "Err": ""})
    assert plugin.call("Capabilities") == {"Capabilities": {"Scope": "local"}}


def test_the_life_of_a_volume(plugin, server):
    """Each call twice: the engine may not have had the answer."""
    for _ in range(2):
        plugin.call("Create", Name="data", Opts=options())
    device = server.ask("GET", "/devices/data").json
    assert labels_of(device["spec"]) == {"volume": "data", "volume-type": "ext4"}
    assert device["spec"]["target"] == {"type": "loop", "path": "/disks/a.img"}
    created = {"Name": "data", "Mountpoint": "", "CreatedAt": device["createdAt"]}
    assert plugin.call("Get", Name="data") == {"Volume": created}
    assert plugin.call("List") == {"Volumes": [created]}
    assert plugin.call("Path", Name="data") == {"Mountpoint": ""}
    where = f"/mounts/{device['uid']}"
    for _ in range(2):
        assert plugin.call("Mount", Name="data", ID="one") == {"Mountpoint": where}
    assert plugin.call("Mount", Name="data", ID="two") == {"Mountpoint": where}
    assert plugin.call("Path", Name="data") == {"Mountpoint": where}
    assert plugin.call("Get", Name="data")["Volume"]["Mountpoint"] == where
    for _ in range(2):
        plugin.call("Unmount", Name="data", ID="one")
    assert plugin.call("Path", Name="data") == {"Mountpoint": where}
    assert "holders" in plugin.fail("Remove", Name="data")
    for _ in range(2):
        plugin.call("Unmount", Name="data", ID="two")
    assert plugin.call("Path", Name="data") == {"Mountpoint": ""}
    for _ in range(2):
        plugin.call("Remove", Name="data")
    assert plugin.call("List") == {"Volumes": []}
    assert server.ask("GET", "/devices/data").status == 404


@NEEDS_ROOT
def test_a_device_of_a_tenant_does_not_count_as_a_volume():
    """Whatever its labels say: the tenant chooses them."""
    with tempfile.TemporaryDirectory(prefix="ublkd-vol-") as directory:
        tenants = Tenants(directory)
        device = create(tenants, "data", labels={"volume": f"u{ALICE}-data"})
        plugin = Plugin(VOLUMES, directory, tenants.server.path).start()
        assert plugin.call("List") == {"Volumes": []}
        plugin.fail("Get", Name=device["name"])
        plugin.call("Remove", Name=device["name"])
        assert tenants.server.ask("GET", f"/devices/{device['name']}").status == 200
        plugin.stop()
        tenants.server.stop()


def test_the_plug_in_keeps_nothing(plugin, server):
    """It may be killed between any two calls."""
    for name, body in [
            ("Create", {"Name": "data", "Opts": options()}), ("Mount", {"Name": "data", "ID": "one"}),
            ("Mount", {"Name": "data", "ID": "two"}), ("Unmount", {"Name": "data", "ID": "one"}), ("Get", {"Name": "data"}),
            ("Unmount", {"Name": "data", "ID": "two"}), ("Remove", {"Name": "data"})]:
        plugin.call(name, **body)
        plugin.kill()
        plugin.start()
    assert server.ask("GET", "/devices/data").status == 404


def test_other_options_are_members_of_the_spec(plugin, server):
    plugin.call("Create", Name="data", Opts=options(**{"fs": "xfs", "queues": "2", "target.directIo": "off", "labels.team": "7",
                                                       "readOnly": "false"}))
    made = server.ask("GET", "/devices/data").json["spec"]
    assert made["queues"] == 2 and made["target"]["directIo"] == "off" and made["readOnly"] is False
    assert labels_of(made) == {"team": "7", "volume": "data", "volume-type": "xfs"}


def test_a_volume_that_was_changed_is_created_again(plugin, server):
    """The engine may not have had the answer, and the administrator has grown the disk since."""
    plugin.call("Create", Name="data", Opts=options(**{"labels.team": "7"}))
    assert server.ask("PATCH", "/devices/data?wait=ready", {"size": "2GiB", "readOnly": True}).status == 200
    changed = server.ask("GET", "/devices/data").json["spec"]
    plugin.call("Create", Name="data", Opts=dict(reversed(options(**{"labels.team": "7"}).items())))
    assert server.ask("GET", "/devices/data").json["spec"] == changed
    for other in (options(), options(size="2GiB", **{"labels.team": "7"}), options(fs="xfs", **{"labels.team": "7"})):
        assert "exists" in plugin.fail("Create", Name="data", Opts=other)


@pytest.mark.parametrize("wrong", [
    {}, {"size": "1GiB"}, {"pool": "fast"}, {"path": "/a", "pool": "fast", "size": "1GiB"}, {"path": "/a", "fs": "btrfs"},
    {"path": "/a", "name": "other"}, {"path": "/a", "colour": "red"}, {"path": "/a", "size": "much"}, {"path": "/a", "path.b": "c",
                                                                                                      "size.x": "1", "size": "1"},
    {"path": 1}])
def test_wrong_options_are_refused(plugin, wrong):
    plugin.fail("Create", Name="data", Opts=wrong)
    assert plugin.call("List") == {"Volumes": []}


def test_a_default_pool(server):
    plugin = Plugin(VOLUMES, server.directory, server.path, "--pool", "fast").start()
    assert "pool" in plugin.fail("Create", Name="data", Opts={"size": "1GiB"})  # this server has none
    plugin.call("Create", Name="data", Opts=options())
    plugin.stop()


def test_a_name_that_no_device_can_have(plugin, server):
    """An anonymous volume of Docker has 64 digits."""
    for name in ("ab" * 32, "Data_1", "-data-"):
        plugin.call("Create", Name=name, Opts=options(path=f"/disks/{name}.img"))
        assert plugin.call("Get", Name=name)["Volume"]["Name"] == name
    assert sorted(volume["Name"] for volume in plugin.call("List")["Volumes"]) == sorted(["ab" * 32, "Data_1", "-data-"])
    assert all(item["name"].startswith("volume-") for item in server.ask("GET", "/devices").json["items"])


def test_names_that_could_confuse_a_program(plugin, server):
    """The device has another one, and the label is data."""
    for name in HOSTILE_NAMES:
        plugin.call("Create", Name=name, Opts=options())
        (device,) = server.ask("GET", "/devices").json["items"]
        assert re.fullmatch("volume-[0-9a-f]{16}", device["name"]) and labels_of(device["spec"])["volume"] == name
        assert [volume["Name"] for volume in plugin.call("List")["Volumes"]] == [name]
        assert plugin.call("Mount", Name=name, ID=name)["Mountpoint"] == f"/mounts/{device['uid']}"
        plugin.call("Unmount", Name=name, ID=name)
        plugin.call("Remove", Name=name)
        assert plugin.call("List") == {"Volumes": []}


def test_a_device_without_the_label_is_left_alone(plugin, server):
    assert server.ask("POST", "/devices?wait=ready", spec("data")).status == 201
    assert plugin.call("List") == {"Volumes": []}
    for name in ("Get", "Path", "Mount", "Unmount"):
        plugin.fail(name, Name="data", ID="one")
    plugin.fail("Create", Name="data", Opts=options())
    plugin.call("Remove", Name="data")  # there is no such volume
    assert server.ask("GET", "/devices/data").status == 200


def test_more_volumes_than_a_page(plugin, server):
    names = [f"v{number:03}" for number in range(520)]
    for name in names:
        server.ask("PUT", f"/devices/{name}", spec(name, labels={"volume": name, "volume-type": "ext4"}))
    assert [volume["Name"] for volume in plugin.call("List")["Volumes"]] == names


def test_requests_that_are_not_calls(plugin):
    assert plugin.ask("/VolumeDriver.Nothing")[0] == 404
    assert plugin.ask("/VolumeDriver.Get", method="GET")[0] == 405
    assert plugin.ask("/VolumeDriver.Get", body=[])[0] == 400
    assert plugin.ask("/VolumeDriver.Get", body={"Name": "x" * 70000})[0] == 413
    for body in ({}, {"Name": ""}, {"Name": 1}, {"Name": "x" * 300}):
        assert plugin.ask("/VolumeDriver.Get", body)[0] == 500


def test_a_ublkd_that_does_not_run(plugin, server):
    server.process.kill()
    server.process.wait()
    assert "does not answer" in plugin.fail("Mount", Name="data", ID="one")
    server.stop = lambda: None


def test_a_volume_that_hangs_delays_no_other(plugin, server):
    names = [f"v{number}" for number in range(8)]
    for name in names:
        plugin.call("Create", Name=name, Opts=options(path=f"/disks/{name}.img"))
    plugin.call("Create", Name="stuck", Opts=options(path="/disks/stuck.img", **{"labels.filesystem": "never mount"}))

    def holders():
        return server.ask("GET", "/devices/stuck").json["status"]["mountHolders"]

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(plugin.call, "Mount", Name="stuck", ID="one")
        while holders() == 0:
            assert not stuck.done()
        for name in names:
            plugin.call("Mount", Name=name, ID="one")
        assert not stuck.done()
        plugin.kill()
        assert isinstance(stuck.exception(), (OSError, http.client.HTTPException))
    plugin.start()
    assert holders() == 1  # the Mount that was killed has left its ID
    assert server.ask("PATCH", "/devices/stuck", {"labels": {"filesystem": None}}).status == 200  # a mount ends from here on
    plugin.call("Mount", Name="stuck", ID="one")
    assert holders() == 1
    plugin.call("Unmount", Name="stuck", ID="one")
    assert holders() == 0
    plugin.call("Remove", Name="stuck")
    assert server.ask("GET", "/devices/stuck").status == 404


def test_a_stop_waits_for_no_disk(plugin, server):
    """Calls under way end with an error: the engine repeats them, and a Mount has not left its ID."""
    plugin.call("Create", Name="stuck", Opts=options(**{"labels.filesystem": "never mount"}))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(plugin.fail, "Mount", Name="stuck", ID="one")
        while server.ask("GET", "/devices/stuck").json["status"]["mountHolders"] == 0:
            assert not call.done()
        plugin.stop()
        assert call.result()
    assert server.ask("GET", "/devices/stuck").json["status"]["mountHolders"] == 0
    plugin.start()


@NEEDS_ROOT
def test_root_of_a_container_is_refused(plugin):
    """It has PIDs and a root directory of its own, and root of the host as its user."""
    ask = ("import http.client, socket, sys; c = http.client.HTTPConnection('plugin'); c.sock = socket.socket(socket.AF_UNIX);"
           f"c.sock.connect({str(plugin.path)!r}); c.request('POST', '/VolumeDriver.List'); sys.exit(c.getresponse().status - 400)")
    command = ["unshare", "--mount", "--pid", "--fork", sys.executable, "-c", ask]
    assert subprocess.run(command, check=False).returncode == 3
    assert plugin.call("List") == {"Volumes": []}


def test_only_one_listens(plugin, server):
    socket_before = plugin.path.stat()
    other = subprocess.run([VOLUMES, "--listen", str(plugin.path), "--socket", str(server.path)], check=False, timeout=60,
                           stderr=subprocess.PIPE)
    assert other.returncode == 1 and str(plugin.path).encode() in other.stderr
    assert plugin.path.stat().st_ino == socket_before.st_ino and plugin.process.poll() is None
    assert plugin.call("List") == {"Volumes": []}
    assert socket_before.st_mode & 0o777 == 0o600 and plugin.path.parent.stat().st_mode & 0o777 == 0o700
