# SPDX-License-Identifier: MIT
"""A service with PrivateDevices= has its disk by its unit, as docs/nodes.md says."""

import pathlib
import subprocess
import types

from harness.api import loop_spec
from harness.disk import Disk, block
from harness.tenants import User
from harness.shell import output

_USER = 1234
_NAME = f"u{_USER}-data"
_RULE = {"name": "user", "who": {"users": [_USER]}, "targets": ["loop"], "pools": ["fast"], "devices": 1, "size": "1GiB"}
_AS_USER = ("setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
_WRITE = ("sh", "-c", 'head -c 4096 /dev/zero | tr "\\0" "$2" | dd of="$1" bs=4096 iflag=fullblock oflag=direct conv=nocreat,notrunc', "sh")


def _in_service(properties, *command):
    """Run a command in a service with PrivateDevices= and these properties; return what it has printed, and its exit status."""
    options = [word for line in ("PrivateDevices=yes", *properties) for word in ("-p", line)]
    done = subprocess.run(["systemd-run", "-q", "--wait", "--pipe", "--collect", *options, "--", *command], check=False,
                          stdout=subprocess.PIPE, text=True, timeout=120)
    return done.stdout.strip(), done.returncode


def test_a_service_opens_the_node_of_its_user(ext4, service, rules):
    """With BindPaths= and DeviceAllow=, and not with one of them alone."""
    pool = ext4 / "pool"
    pool.mkdir(mode=0o700)
    rules(_RULE, pools={"fast": {"directory": str(pool)}})
    user = User(types.SimpleNamespace(runtime=pathlib.Path("/run/ublkd"), api=service), _USER)
    device = user.create({"name": _NAME, "target": {"type": "loop", "pool": "fast"}, "size": 64 << 20})
    node, disk = device["status"]["node"], Disk(device["status"]["id"])
    bind, allow = f"BindPaths={node}", f"DeviceAllow={node} rw"
    deliver = ("curl", "-sS", "--json", '{"path": "/dev/data"}', "--unix-socket", "/run/ublkd/ublkd.sock")
    assert '"NoUserNamespace"' in _in_service((), *_AS_USER, *deliver, f"http://localhost/devices/{_NAME}/deliver")[0]
    for properties in ((), (bind,), (allow,)):
        assert _in_service(properties, *_AS_USER, *_WRITE, node, "x")[1] != 0
    assert _in_service((bind, allow), *_AS_USER, *_WRITE, node, "a")[1] == 0
    assert disk.read(0, 4096) == block("a")
    assert user.ask("DELETE", f"/devices/{_NAME}?wait&timeout=60s")[0] == 204


def test_a_service_has_a_file_system_that_ublkd_has_mounted(service, file_of):
    service.create(loop_spec("data", file_of()))
    service.ask("POST", "/devices/data/filesystem", 200, json={"type": "ext4"})
    where = service.ask("POST", "/devices/data/mount", 200, json={})["status"]["mount"]
    assert _in_service((f"BindPaths={where}:/mnt",), "sh", "-c", "echo hello >/mnt/file && sync /mnt/file")[1] == 0
    assert output("cat", f"{where}/file") == "hello"
    service.ask("POST", "/devices/data/unmount", 200, json={})
    service.delete("data")
