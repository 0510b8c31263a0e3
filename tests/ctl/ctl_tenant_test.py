# SPDX-License-Identifier: MIT
"""ublkctl of a tenant: its own devices, and nothing of others."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest
from ctl import DEADLINE, FAILED, NOT_ALLOWED, NOT_FOUND, OK, PROGRAM, REFUSED, USAGE, Ctl, field
from other_user import CONTAINERS, NEEDS_ROOT, run_as_user
from server_fixture import running, write_policy

pytestmark = NEEDS_ROOT
ALICE, BOB = 4001, 4002
NULL = ["target.type=null", "size=1MiB"]


class UserCtl(Ctl):
    """ublkctl as a user without rights. Where it was built, that user may not be able to read it."""

    def __init__(self, server, uid):
        program = os.path.join(server.directory, "ublkctl")
        if not os.path.exists(program):
            shutil.copy(PROGRAM, program)
        super().__init__(server.path, server.directory, program)
        self.ids = {"user": uid, "group": uid, "extra_groups": []}

    def run(self, *arguments, **more):
        return super().run(*arguments, **more, **self.ids)


def with_a_policy(*arguments):
    rule = {"name": "test", "who": {"users": [ALICE, BOB]}, "targets": ["null"], "devices": 2, "size": "1GiB", "ids": "5-6"}
    with tempfile.TemporaryDirectory(prefix="ublkd-ctl-") as directory:
        os.chmod(directory, 0o755)
        yield from running(directory, *write_policy(directory, rules=[rule]), *arguments)


@pytest.fixture(name="server")
def server_with_a_policy():
    yield from with_a_policy()


@pytest.fixture(name="reading_server")
def server_that_all_may_read_from():
    yield from with_a_policy("--readers", "everyone")


def test_a_tenant_creates_shows_and_removes_its_devices(server):
    alice, bob, root = UserCtl(server, ALICE), UserCtl(server, BOB), Ctl(server.path, server.directory)
    alice("create", f"u{ALICE}-a", *NULL)
    bob("create", f"u{BOB}-b", *NULL)
    assert [row[0] for row in alice("list").rows] == [f"u{ALICE}-a"]
    assert [row[0] for row in root("list").rows] == [f"u{ALICE}-a", f"u{BOB}-b"]
    for ctl in (alice, root):
        assert field(ctl("describe", f"u{ALICE}-a"), "Tenant") == f"uid:{ALICE}"
    alice("describe", f"u{BOB}-b", status=NOT_FOUND)
    alice("delete", f"u{BOB}-b", status=NOT_FOUND)
    alice("delete", f"u{ALICE}-a")
    assert alice("list").rows == [] and len(root("list").rows) == 1


def test_an_export_has_what_its_client_can_apply(server):
    """Root gets none of a tenant, whose names it cannot have, and a warning; a tenant gets its own."""
    alice, bob, root = UserCtl(server, ALICE), UserCtl(server, BOB), Ctl(server.path, server.directory)
    root("create", "ours", *NULL)
    assert root("export").err == ""
    for ctl, names in ((alice, "ab"), (bob, "c")):
        for name in names:
            ctl("create", f"u{ctl.ids['user']}-{name}", *NULL, f"labels.x={name}")
    for arguments, left_out in (((), "3 devices:"), (("-o", "backup"), "3 devices:"), (("-l", "x=c"), "1 device:")):
        run = root.run("export", *arguments)
        assert run.status == OK and left_out in run.err and len(run.err.splitlines()) == 1
    assert [path.name for path in pathlib.Path(server.directory, "backup").iterdir()] == ["ours.json"]
    specs = {ctl: ctl.run("export") for ctl in (root, alice, bob)}
    assert [spec["name"] for spec in specs[root].json] == ["ours"]
    assert [spec["name"] for spec in specs[alice].json] == [f"u{ALICE}-a", f"u{ALICE}-b"] and specs[alice].err == ""
    root("delete", "ours", f"u{ALICE}-a", f"u{ALICE}-b", f"u{BOB}-c")
    for ctl, run in specs.items():
        assert all(line.endswith(" created") for line in ctl("apply", "-f", "-", stdin=run.out).lines)
    assert len(root("list").rows) == 4


def test_a_tenant_in_a_container_exports_its_own(server):
    """User 1 of a user namespace is alice on the host."""
    alice = UserCtl(server, ALICE)
    alice("create", f"u{ALICE}-a", *NULL)
    inside = CONTAINERS["users"].replace("0 0 100000", f"0 {ALICE - 1} 10") + "uid, groups = 1, []\n"
    output = run_as_user(server, f"os.execv({alice.program!r}, ['ublkctl', '--socket', path, 'export'])", container=inside)
    assert [spec["name"] for spec in json.loads(output)] == [f"u{ALICE}-a"]


def test_a_tenant_who_reads_all_exports_its_own(reading_server):
    alice, bob = UserCtl(reading_server, ALICE), UserCtl(reading_server, BOB)
    alice("create", f"u{ALICE}-a", *NULL)
    bob("create", f"u{BOB}-b", *NULL)
    run = alice.run("export")
    assert [spec["name"] for spec in run.json] == [f"u{ALICE}-a"] and "1 device:" in run.err


def test_a_stop_of_the_disks_of_all_tenants(server):
    """Not of those of root; one in use keeps no other waiting, and refuses the whole at the end."""
    root = Ctl(server.path, server.directory)
    root("create", "ours", *NULL)
    UserCtl(server, ALICE)("create", f"u{ALICE}-a", *NULL, "id=5")
    UserCtl(server, BOB)("create", f"u{BOB}-b", *NULL, "id=6")
    server.tell("busy 5 mounted at /mnt")
    error = root("stop", "--tenants", "--when-unused", "--timeout=1s", status=REFUSED).err
    assert "/mnt" in error and f"u{ALICE}-a" in error and f"u{BOB}-b" not in error
    reasons = {row[0]: row for row in root("list").rows}
    assert "Stopped" in reasons[f"u{BOB}-b"] and "Stopped" not in reasons[f"u{ALICE}-a"]
    server.tell("idle")
    root("stop", "--tenants", "--when-unused")
    reasons = {row[0]: row for row in root("list").rows}
    assert "Stopped" in reasons[f"u{ALICE}-a"] and "Stopped" not in reasons["ours"]
    assert root("stop", "--tenants").out == ""
    for arguments in ((), ("--tenants", "ours")):
        root("stop", *arguments, status=USAGE)


def _requests(server, method, route):
    lines = [line for line in server.ask("GET", "/metrics").body.decode().splitlines() if "http_requests_total{" in line]
    return sum(int(line.split()[-1]) for line in lines if f'method="{method}"' in line and f'route="{route}"' in line)


def _two_disks(server):
    names = [f"u{ALICE}-a", f"u{BOB}-b"]
    for uid, name, number in zip((ALICE, BOB), names, (5, 6)):
        UserCtl(server, uid)("create", name, *NULL, f"id={number}")
    server.tell("auto off")
    return names


def test_a_disk_that_does_not_go_takes_no_time_from_another(server):
    """ublkd is asked to stop both before one of them is gone."""
    root, (first, second) = Ctl(server.path, server.directory), _two_disks(server)
    process = root.start("stop", "--tenants", "--when-unused", stdout=subprocess.PIPE)
    while _requests(server, "POST", "/devices/{name}/stop") < 2:
        assert process.poll() is None
    for name in (second, first):
        assert process.poll() is None
        server.tell(f"status {name} Disabled Stopped It was stopped.")
    assert sorted(process.communicate(timeout=DEADLINE)[0].splitlines()) == [f"{first} stopped", f"{second} stopped"]
    assert process.returncode == 0 and _requests(server, "POST", "/devices/{name}/stop") == 2


def test_the_end_of_the_time_is_the_end(server):
    """Of a disk that does not go, and of one in use: nothing looks for its users then."""
    root, (first, second) = Ctl(server.path, server.directory), _two_disks(server)
    server.tell("busy 5 mounted at /mnt")
    began = time.monotonic()
    error = root("stop", "--tenants", "--when-unused", "--timeout=1s", status=FAILED).err
    assert time.monotonic() - began >= 1
    assert "/mnt" in error and f"{second}: The disk was not gone within --timeout" in error
    assert f"{first}: " in error and _requests(server, "DELETE", "/devices/{name}") == 0


def test_a_refusal_names_the_field(server):
    run = UserCtl(server, ALICE)("create", f"u{ALICE}-a", "target.type=null", "size=2GiB", status=NOT_ALLOWED)
    assert "size" in run.err and "2GiB" not in run.out


def test_a_tenant_is_not_behind_a_file_of_root(server):
    """It has swapped its own file for a link to that of root since; its own ublkctl finds it by its path."""
    write_policy(server.directory, rules=[{"name": "test", "who": {"users": [ALICE]}, "targets": ["loop"], "directories": [server.directory],
                                           "devices": 2, "size": "1GiB"}])
    assert server.tell("policy") == 0
    own, roots = os.path.join(server.directory, "own"), os.path.join(server.directory, "roots")
    with open(roots, "wb") as file:
        file.truncate(1 << 20)
    alice, root = UserCtl(server, ALICE), Ctl(server.path, server.directory)
    alice("create", f"u{ALICE}-a", "target.type=loop", f"target.path={own}", "size=1MiB")
    os.symlink(roots, own)
    root("detach", roots, status=NOT_FOUND)
    root("detach", own, status=NOT_FOUND)
    assert [row[0] for row in root("list").rows] == [f"u{ALICE}-a"]
    alice("detach", own)
    assert root("list").rows == []


def test_devices_of_root_have_no_tenant(server):
    root = Ctl(server.path, server.directory)
    root("create", "ours", *NULL)
    assert "Tenant:" not in root("describe", "ours").out
