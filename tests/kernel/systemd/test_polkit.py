# SPDX-License-Identifier: MIT
"""The service in the sandbox of its unit asks the polkit of the machine, which the bus starts for that."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from harness import programs
from harness.shell import output, run

_ACTION = pathlib.Path("/usr/share/polkit-1/actions/io.ublkd.policy")
_RULE = pathlib.Path("/etc/polkit-1/rules.d/10-ublkd-test.rules")
_ALLOWED, _OTHER = 1234, 1235

_CHANGE = """
import http.client, os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
connection = http.client.HTTPConnection("localhost", timeout=60)
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect("/run/ublkd/ublkd.sock")
connection.request("POST", "/devices?wait=ready", sys.argv[2], {"Content-Type": "application/json"})
print(connection.getresponse().status)
"""


def _create(uid, name):
    spec = {"name": name, "target": {"type": "null"}, "size": "1MiB"}
    return int(output(sys.executable, "-c", _CHANGE, str(uid), json.dumps(spec)))


@pytest.fixture
def polkit():
    if not shutil.which("pkcheck"):
        pytest.skip("polkit is not installed")
    _ACTION.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(programs.source("units/polkit/io.ublkd.policy"), _ACTION)
    _RULE.write_text(
        f'polkit.addRule(function(action, subject) {{ if (action.id == "io.ublkd.manage" && subject.user == "{_ALLOWED}")'
        " return polkit.Result.YES; });\n",
        encoding="utf-8",
    )
    _RULE.chmod(0o644)
    run("systemctl", "stop", "polkit.service")
    yield
    _RULE.unlink()
    _ACTION.unlink()
    run("systemctl", "stop", "polkit.service")


def test_polkit_allows_one_user_a_disk(service, polkit):
    assert _create(_OTHER, "refused") == 403
    assert _create(_ALLOWED, "data") == 201
    assert service.get("data")["status"]["phase"] == "Live" and service.names() == ["data"]
    assert subprocess.run(["systemctl", "is-active", "-q", "polkit.service"], check=False).returncode == 0
    service.delete("data")


@pytest.mark.variant  # tests/api/daemon_polkit_test.py does it without the unit
def test_without_the_bus_a_change_of_a_user_is_refused_and_one_of_root_is_made(service, polkit):
    run("systemctl", "stop", "dbus.socket", "dbus.service")
    try:
        assert _create(_ALLOWED, "refused") == 403
        assert _create(0, "data") == 201
        service.delete("data")
    finally:
        run("systemctl", "start", "dbus.socket")
    assert _create(_ALLOWED, "data") == 201
    service.delete("data")
