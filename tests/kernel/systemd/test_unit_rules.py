# SPDX-License-Identifier: MIT
"""Rules of the policy for units, with the groups that systemd makes; the service looks from the sandbox of its unit."""

import json
import subprocess

import pytest

from harness.api import null_spec
from harness.shell import output
from harness.wait import wait_until

_USER = 1234
_RULE = {"targets": ["null"], "devices": 2, "size": "1GiB"}


def _ask(unit, method, path, body=None, *options, user=_USER):
    """Send a request from a unit of that name; return the status and the body of the answer."""
    data = ["--json", json.dumps(body)] if body else []
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    done = subprocess.run(
        ["systemd-run", "-q", "--wait", "--pipe", "--collect", f"--unit={unit}", *options, *as_user, "curl", "-sS", "-X", method, *data,
         "-w", "\\n%{http_code}", "--unix-socket", "/run/ublkd/ublkd.sock", f"http://localhost{path}"],
        check=True, stdout=subprocess.PIPE, text=True, timeout=120)
    text, _, status = done.stdout.rpartition("\n")
    return int(status), text


def _logged(request, unit):
    """Wait for the record of a request from that unit in the journal, and return its fields."""
    def find():
        lines = output("journalctl", "-o", "json", "-u", "ublkd.service", f"REQUEST={request}",
                       f"CLIENT_CGROUP=/system.slice/{unit}").splitlines()
        return json.loads(lines[-1]) if lines else None
    return wait_until(find, f"{request} of {unit} in the journal")


def _spec(name):
    return null_spec(f"u{_USER}-{name}", size="1MiB")


def test_a_unit_has_devices_and_others_of_the_user_have_none(service, rules):
    rules({**_RULE, "name": "backup", "who": {"units": ["backup.service"]}})
    status, text = _ask("backup.service", "POST", "/devices?wait=ready", _spec("data"))
    assert status == 201, text
    assert json.loads(text)["tenant"] == f"uid:{_USER}"
    assert _ask("other.service", "POST", "/devices", _spec("other"))[0] == 403
    assert _ask("other.service", "GET", f"/devices/u{_USER}-data")[0] == 403
    assert _ask("backup.service", "GET", f"/devices/u{_USER}-data")[0] == 200
    assert _logged("POST /devices?wait=ready", "backup.service")["CLIENT_RULE"].startswith("/etc/ublkd/policy.d/50-test.json:")
    assert "CLIENT_RULE" not in _logged("POST /devices", "other.service")
    assert _ask("backup.service", "DELETE", f"/devices/u{_USER}-data?wait")[0] == 204
    assert _logged(f"DELETE /devices/u{_USER}-data?wait", "backup.service")["CLIENT_RULE"].startswith("/etc/ublkd/policy.d/50-test.json:")


def test_a_dynamic_user_has_no_devices(rules):
    unit = "nightly-copy.service"  # a user with the name of the unit would be taken instead
    rules({**_RULE, "name": "copy", "who": {"units": [unit]}})
    status, text = _ask(unit, "POST", "/devices", _spec("data"), "--property=DynamicUser=yes", user=None)
    assert status == 403 and "DynamicUser=" in json.loads(text)["detail"], text


@pytest.mark.variant
def test_a_slice_has_the_devices_of_its_units(rules):
    rules({**_RULE, "name": "batch", "who": {"units": ["batch.slice"]}}, {**_RULE, "name": "path", "who": {"cgroups": ["/path.slice"]}})
    for slice_name, status in (("batch", 201), ("path-to", 201), ("batches", 403), ("pathological", 403)):
        got, text = _ask("job.service", "POST", "/devices?wait=ready", _spec(slice_name), f"--slice={slice_name}.slice")
        assert got == status, text
        if got == 201:
            assert _ask("job.service", "DELETE", f"/devices/u{_USER}-{slice_name}?wait", None, f"--slice={slice_name}.slice")[0] == 204
