# SPDX-License-Identifier: MIT
"""Rules for groups, units and control groups: for which processes they count."""
import contextlib
import os
import pathlib

import pytest
from api_tenants_test import ALICE, GROUP, MAPPED, RULE, STRANGER, asks, create, mine, names_seen
from api_tenants_test import _tenants  # noqa: F401  pylint: disable=unused-import
from other_user import NEEDS_ROOT, user

pytestmark = NEEDS_ROOT


def test_a_subordinate_user_has_nothing_by_a_group(tenants):
    """A set-uid file of such a user makes a process of the host that keeps the groups of its user: 65,536 tenants, else."""
    first, other = 200000, 300000
    pathlib.Path(tenants.directory, "subuid").write_text(f"daemon:{first}:65536\n", encoding="ascii")
    containers = {**RULE, "name": "containers", "who": {"subuidsOf": ["daemon"]}, "devices": 2}
    for rules, expected in ([RULE, containers], [403, 403, 201]), ([containers, RULE], [201, 201, 201]):
        tenants.set_rules(*rules)
        assert tenants.server.tell("policy") == 0
        answers = [tenants.values(asks(("POST", "/devices", mine("x", uid))), uid=uid, groups=[GROUP])[0]
                   for uid in (first, first + 5, other)]
        assert [status for status, _ in answers] == expected
        other += 1
    ((_, problem),) = tenants.values(asks(("POST", "/devices", mine("x", first + 9))), uid=first + 9, groups=[GROUP])
    assert problem["errors"][0]["reason"] == "PolicyExceeded"  # two of one account are there
    tenants.set_rules(RULE)
    assert tenants.server.tell("policy") == 0
    ((_, problem),) = tenants.values(asks(("POST", "/devices", mine("x", first + 9))), uid=first + 9, groups=[GROUP])
    assert "subuidsOf" in problem["detail"]


def test_a_user_namespace_leaves_no_rule_that_refuses_a_group(tenants):
    """Each user can make itself one (`unshare --user --map-root-user`), with its uid and in no group of the host."""
    refuses = {"name": "refuses", "who": {"groups": [GROUP]}}
    gives = {**RULE, "name": "gives", "who": {"users": [ALICE]}}
    own = MAPPED + "uid, groups = 1, []\n"
    for rules, expected in ([refuses, gives], 403), ([gives, refuses], 201):
        tenants.set_rules(*rules)
        assert tenants.server.tell("policy") == 0
        (member, _), = tenants.values(asks(("POST", "/devices", mine("x"))), uid=ALICE, groups=[GROUP])
        (status, answer), = tenants.values(asks(("POST", "/devices", mine("y"))), container=own)
        assert (member, status) == (expected, expected), answer
        assert status == 201 or "subuidsOf" in answer["detail"]


def cgroup_mount():
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        points = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
    return next((point for point in points if os.access(point, os.W_OK)), None)


@pytest.mark.skipif(not cgroup_mount(), reason="no control group can be made here")
def test_a_rule_for_a_unit(tenants):
    """By the group of the process that asks, for any user. A group of the same name elsewhere does not count."""
    unit, own = "ublkd-api-test.slice/backup.service", "ublkd-api-test.scope/backup.service"
    groups = [pathlib.Path(cgroup_mount(), *unit_or_own.split("/")[:depth]) for unit_or_own in (unit, own) for depth in (1, 2)]
    tenants.set_rules({**RULE, "name": "unit", "who": {"units": ["backup.service"]}})
    assert tenants.server.tell("policy") == 0
    for group in groups:
        group.mkdir(exist_ok=True)
    try:
        for group, status in ((None, 403), (groups[0], 403), (groups[1], 201), (groups[3], 403)):
            join = f"open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n" if group else ""
            name = f"{len(group.parts) if group else 0}{status}"
            ((got, answer),) = tenants.values(asks(("POST", "/devices", mine(name, STRANGER))), uid=STRANGER, container=join)
            assert got == status, answer
    finally:
        for group in reversed(groups):
            group.rmdir()
    device = tenants.server.ask("GET", f"/devices/u{STRANGER}-{len(groups[1].parts)}201").json
    assert device["tenant"] == f"uid:{STRANGER}"


@contextlib.contextmanager
def too_deep_group():
    """A control group whose path is longer than the kernel prints: its descriptor."""
    name, folders = "ublkd-api-deep-".ljust(250, "x"), [os.open(cgroup_mount(), os.O_DIRECTORY)]
    try:
        for _ in range(4096 // len(name) + 1):
            os.mkdir(name, dir_fd=folders[-1])
            folders.append(os.open(name, os.O_DIRECTORY, dir_fd=folders[-1]))
        yield folders[-1]
    finally:
        os.close(folders.pop())
        for folder in reversed(folders):
            os.rmdir(name, dir_fd=folder)
            os.close(folder)


@pytest.mark.skipif(not cgroup_mount(), reason="no control group can be made here")
@pytest.mark.parametrize("container", ["", MAPPED + "uid, groups = 1, []\n"])
def test_a_group_that_is_too_deep_to_be_read(tenants, container):
    """A container could make it, to hide from a rule that refuses: no rule counts from the first one on that names groups."""
    tenants.set_rules({"name": "refuses", "who": {"units": ["backup.service"]}}, RULE)
    assert tenants.server.tell("policy") == 0
    create(tenants, "before")
    code = f"""
print(os.getpid(), flush=True)
sys.stdin.read()
answer = ask(UnixConnection(path), "POST", "/devices", {mine("deep")!r})
assert answer.status == 403, answer.json
"""
    with too_deep_group() as group, user(tenants.server, code, container=container, uid=ALICE) as child:
        file = os.open("cgroup.procs", os.O_WRONLY, dir_fd=group)
        os.write(file, child.stdout.readline().encode())
        os.close(file)
    assert names_seen(tenants) == [f"u{ALICE}-before"]


@pytest.mark.skipif(not cgroup_mount(), reason="no control group can be made here")
def test_a_process_that_has_left_the_unit(tenants):
    """Each change is asked of the group of then, also one without a spec, on a connection from before."""
    groups = [pathlib.Path(cgroup_mount(), "ublkd-api-left.slice", *below) for below in ((), ("backup.service",), ("other.service",))]
    tenants.set_rules({**RULE, "name": "unit", "who": {"units": ["backup.service"]}})
    assert tenants.server.tell("policy") == 0
    for group in groups:
        group.mkdir(exist_ok=True)
    join = f"open({str(groups[1] / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
    device = f"/devices/u{STRANGER}-data"
    code = f"""
connection = UnixConnection(path)
assert ask(connection, "POST", "/devices?wait=ready", {mine("data", STRANGER)!r}).status == 201
print("ready", flush=True)
sys.stdin.read()
for method, target in (("POST", "{device}/restart"), ("POST", "{device}/stop"), ("DELETE", "{device}")):
    answer = ask(connection, method, target)
    assert [answer.status, [error["reason"] for error in answer.json["errors"]]] == [403, ["NoPolicyRule"]], answer.json
"""
    try:
        with user(tenants.server, code, STRANGER, container=join) as child:
            assert child.stdout.readline() == "ready\n"
            (groups[2] / "cgroup.procs").write_text(str(child.pid))
    finally:
        for group in reversed(groups):
            group.rmdir()
    assert tenants.server.ask("GET", device).json["generation"] == 1
