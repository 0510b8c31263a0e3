# SPDX-License-Identifier: MIT
"""ublkctl of a tenant: its own devices, and nothing of others."""
import os
import shutil
import tempfile

import pytest
from ctl import NOT_ALLOWED, NOT_FOUND, PROGRAM, REFUSED, USAGE, Ctl, field
from other_user import NEEDS_ROOT
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


@pytest.fixture(name="server")
def server_with_a_policy():
    rule = {"name": "test", "who": {"users": [ALICE, BOB]}, "targets": ["null"], "devices": 2, "size": "1GiB", "ids": "5-6"}
    with tempfile.TemporaryDirectory(prefix="ublkd-ctl-") as directory:
        os.chmod(directory, 0o755)
        yield from running(directory, *write_policy(directory, rules=[rule]))


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
