# SPDX-License-Identifier: MIT
"""POST /devices/NAME/filesystem, with file systems that are made as the labels of the device say."""
import contextlib
import errno
import json
import tempfile
import time

import pytest
from api_server import DEADLINE, Server, check_problem, spec
from api_tenants_test import ALICE, BOB, RULE, Tenants, asks, create
from other_user import NEEDS_ROOT
from server_fixture import write_policy

# enum filesystem_verdict
(MADE, MOUNTED, UNMOUNTED, NOT_MADE, NOT_MOUNTED, NOT_UNMOUNTED, OTHER_KIND, NOT_BLANK, UNFINISHED, LOST, NEWER, IN_USE, NO_DISK, NOT_READ, NOT_STORED, NOT_INSTALLED, NOT_CONFINED,
 PROGRAM_FAILED, TOO_LONG, OPEN_TO_USERS, NOT_BEGUN) = range(21)


def make(server, order=None, kind="ext4"):
    labels = {"labels": {"filesystem": order}} if order else {}
    assert server.ask("PUT", "/devices/data?wait=ready", spec(**labels)).status in (200, 201)
    return server.ask("POST", "/devices/data/filesystem", {"type": kind})


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_the_answer_is_the_device(server, kind):
    answer = make(server, kind=kind)
    assert answer.status == 200 and answer.json["name"] == "data"
    shown = answer.json["status"]["filesystem"]
    assert (shown["type"], shown["state"]) == (kind, "made")


def test_what_is_made_again_is_named_by_its_uuid(server):
    """The server of the tests has no unfinished one: it takes the UUID for that of the file system."""
    server.ask("POST", "/devices?wait=ready", spec())
    body = {"type": "ext4", "remake": "11111111-2222-4333-8444-555555555555"}
    made = server.ask("POST", "/devices/data/filesystem", body)
    assert made.status == 200 and made.json["status"]["filesystem"]["uuid"] == body["remake"]
    body["remake"] = body["remake"].replace("1", "9")
    check_problem(server.ask("POST", "/devices/data/filesystem", body), 409, "not-possible-now")


@pytest.mark.parametrize("body", [
    {}, {"type": 1}, {"type": "btrfs"}, {"type": "ext4", "force": True}, [], {"type": "ext4", "remake": True},
    {"type": "ext4", "remake": "11111111"}, {"type": "ext4", "remake": "1" * 36},
    {"type": "ext4", "remake": "AAAAAAAA-2222-4333-8444-555555555555"},
    {"remake": "11111111-2222-4333-8444-555555555555"}])
def test_a_body_without_a_type_is_refused(server, body):
    server.ask("POST", "/devices?wait=ready", spec())
    check_problem(server.ask("POST", "/devices/data/filesystem", body), 422, "invalid-request")


def test_a_device_that_is_not_there(server):
    check_problem(server.ask("POST", "/devices/data/filesystem", {"type": "ext4"}), 404, "no-such-device")


@pytest.mark.parametrize("error, status, problem", [
    (errno.ENODEV, 409, "not-possible-now"), (errno.EBUSY, 409, "not-possible-now"), (errno.EAGAIN, 409, "not-possible-now"),
    (errno.EMFILE, 500, "internal")])
def test_what_does_not_begin_is_a_problem(server, error, status, problem):
    check_problem(make(server, f"begin {error}"), status, problem)


@pytest.mark.parametrize("verdict, error, status, problem", [
    (OTHER_KIND, 0, 409, "not-possible-now"), (NOT_BLANK, 0, 409, "not-possible-now"), (UNFINISHED, 0, 409, "not-possible-now"),
    (LOST, 0, 409, "not-possible-now"), (NEWER, 0, 409, "not-possible-now"), (IN_USE, 0, 409, "in-use"),
    (NO_DISK, 0, 409, "not-possible-now"), (NOT_READ, errno.EIO, 409, "not-possible-now"),
    (NOT_STORED, errno.ENOSPC, 500, "internal"), (NOT_INSTALLED, 0, 409, "not-possible-now"),
    (NOT_CONFINED, errno.EPERM, 409, "not-possible-now"), (PROGRAM_FAILED, 0, 409, "not-possible-now"),
    (TOO_LONG, errno.ETIMEDOUT, 504, "timeout"), (NOT_BEGUN, 0, 409, "not-possible-now")])
def test_what_fails_is_a_problem(server, verdict, error, status, problem):
    check_problem(make(server, f"end {verdict} {error}"), status, problem)


def wish(server, verb, order=None, body=None):
    labels = {"labels": {"filesystem": order}} if order else {}
    assert server.ask("PUT", "/devices/data?wait=ready", spec(**labels)).status in (200, 201)
    return server.ask("POST", f"/devices/data/{verb}", body)


def test_a_mount_and_its_end(server):
    mounted = wish(server, "mount", body={"noExec": True}).json
    assert mounted["status"]["mount"] == f"/mounts/{mounted['uid']}" and mounted["status"]["mountHolders"] == 0
    assert wish(server, "mount", body={}).json["status"]["mount"] == mounted["status"]["mount"]
    assert wish(server, "unmount", body={}).json["status"]["mount"] is None
    assert wish(server, "unmount", body={}).status == 200  # again


def holds(server, verb, body, status=200):
    answer = server.ask("POST", f"/devices/data/{verb}", body)
    assert answer.status == status
    shown = server.ask("GET", "/devices/data").json["status"]
    return shown["mount"] is not None, shown["mountHolders"]


@contextlib.contextmanager
def request_that_does_not_end(server, verb, body, has_begun):
    connection = server.connect()
    connection.request("POST", f"/devices/data/{verb}", body=json.dumps(body), headers={"Content-Type": "application/json"})
    deadline = time.monotonic() + DEADLINE
    while not has_begun():
        assert time.monotonic() < deadline
    yield
    connection.close()


def mount_that_does_not_end(server, body):
    return request_that_does_not_end(
        server, "mount", body, lambda: server.ask("GET", "/devices/data").json["status"]["mountHolders"] > 0)


def test_a_mount_stays_until_its_last_holder_ends_it(server):
    server.ask("POST", "/devices?wait=ready", spec())
    assert holds(server, "mount", {"holder": "a"}) == (True, 1)
    assert holds(server, "mount", {"holder": "a"}) == (True, 1)  # again
    assert holds(server, "mount", {"holder": "b"}) == (True, 2)
    assert holds(server, "unmount", {"holder": "a"}) == (True, 1)
    assert holds(server, "unmount", {"holder": "a"}) == (True, 1)
    assert holds(server, "unmount", {}, 409) == (True, 1)
    assert holds(server, "unmount", {"holder": "b"}) == (False, 0)
    assert holds(server, "unmount", {"holder": "b"}) == (False, 0)
    assert holds(server, "mount", {"holder": "a"}) == (True, 1)
    assert holds(server, "unmount", {"allHolders": True}) == (False, 0)


def test_containers_that_have_the_file_system_keep_it_as_holders_do(server):
    server.ask("POST", "/devices?wait=ready", spec(labels={"filesystem": "copies"}))
    assert holds(server, "mount", {"holder": "a"}) == (True, 1)
    assert holds(server, "unmount", {"holder": "a"}, 409) == (True, 0)
    check_problem(server.ask("POST", "/devices/data/unmount", {}), 409, "in-use")
    assert holds(server, "unmount", {"allHolders": True}) == (False, 0)


def test_a_device_with_holders_is_not_removed(server):
    """The mount may be under way, and nothing may use the disk yet."""
    server.ask("POST", "/devices?wait=ready", spec(labels={"filesystem": "never mount"}))
    with mount_that_does_not_end(server, {"holder": "a"}):
        for query in "", "?dryRun=true":
            check_problem(server.ask("DELETE", f"/devices/data{query}"), 409, "in-use")
    assert server.ask("DELETE", "/devices/data?force=true").status == 202


def test_nothing_of_a_device_that_is_removed_is_delivered(server):
    server.ask("POST", "/devices?wait=ready", spec())
    assert server.ask("POST", "/devices/data/filesystem", {"type": "ext4"}).status == 200
    assert holds(server, "mount", {}) == (True, 0)
    server.tell("auto off")
    assert server.ask("DELETE", "/devices/data?force=true").status == 202
    check_problem(server.ask("POST", "/devices/data/deliver", {"path": "/data", "mount": True}), 409, "being-removed")


def test_nothing_is_delivered_whose_unmount_is_under_way(server):
    server.ask("POST", "/devices?wait=ready", spec(labels={"filesystem": "never unmount"}))
    server.ask("POST", "/devices/data/filesystem", {"type": "ext4"})
    assert holds(server, "mount", {}) == (True, 0)
    body = {"path": "/data", "mount": True, "pid": 1}
    assert server.ask("POST", "/devices/data/deliver", body).status == 200
    with request_that_does_not_end(
            server, "unmount", {}, lambda: server.ask("POST", "/devices/data/deliver", body).status != 200):
        check_problem(server.ask("POST", "/devices/data/deliver", body), 409, "not-possible-now")


def test_there_are_not_more_holders_than_the_record_has_room_for(server):
    server.ask("POST", "/devices?wait=ready", spec())
    for number in range(32):
        assert holds(server, "mount", {"holder": f"h{number}"}) == (True, number + 1)
    check_problem(server.ask("POST", "/devices/data/mount", {"holder": "one more"}), 409, "not-possible-now")
    assert holds(server, "unmount", {"holder": "h7"}) == (True, 31)
    assert holds(server, "mount", {"holder": "one more"}) == (True, 32)


@pytest.mark.parametrize("order", [f"end {NOT_MOUNTED} {errno.EUCLEAN}", "begin 16"])
def test_a_mount_that_fails_has_no_holder(server, order):
    server.ask("POST", "/devices?wait=ready", spec(labels={"filesystem": order}))
    assert holds(server, "mount", {"holder": "a"}, 409) == (False, 0)


@pytest.mark.parametrize("order", [f"end {NOT_MOUNTED} {errno.EUCLEAN}", "begin 16"])
def test_a_holder_of_a_mount_that_was_good_stays(server, order):
    server.ask("POST", "/devices?wait=ready", spec())
    assert holds(server, "mount", {"holder": "a"}) == (True, 1)
    assert server.ask("PUT", "/devices/data?wait=ready", spec(labels={"filesystem": order})).status == 200
    assert holds(server, "mount", {"holder": "a"}, 409) == (True, 1)
    assert holds(server, "mount", {"holder": "b"}, 409) == (True, 1)


def test_holders_are_in_the_database():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        server = Server(directory, "--sqlite")
        server.ask("POST", "/devices?wait=ready", spec())
        assert holds(server, "mount", {"holder": "a"}) == (True, 1)
        server.stop()
        server = Server(directory, "--sqlite")
        assert holds(server, "unmount", {"holder": "b"})[1] == 1
        assert holds(server, "unmount", {"holder": "a"})[1] == 0
        server.stop()


@pytest.mark.parametrize("verb, body", [
    ("mount", {"noExec": 1}), ("mount", {"noexec": True}), ("mount", {"noExec": True, "more": 1}), ("mount", []),
    ("mount", {"holder": ""}), ("mount", {"holder": "x" * 256}), ("mount", {"holder": 1}), ("mount", {"allHolders": True}),
    ("unmount", {"noExec": True}), ("unmount", {"allHolders": "yes"}), ("unmount", [])])
def test_the_body_of_a_mount_is_checked(server, verb, body):
    server.ask("POST", "/devices?wait=ready", spec())
    check_problem(server.ask("POST", f"/devices/data/{verb}", body), 422, "invalid-request")


@pytest.mark.parametrize("owner, status", [
    ({"uid": 1000}, 409), ({"mode": "0666"}, 409), ({"gid": 1000}, 409), ({"gid": 1000, "mode": "0640"}, 200),
    ({"gid": 0}, 200), ({"mode": "0644"}, 200), ({"uid": 0}, 200)])
def test_a_disk_that_users_write_to_is_not_mounted(server, owner, status):
    server.ask("POST", "/devices?wait=ready", spec(owner=owner))
    assert holds(server, "mount", {"holder": "a"}, status) == ((True, 1) if status == 200 else (False, 0))


def test_a_disk_over_several_stores_is_not_mounted(server):
    """A user may own the second one."""
    children = [{"type": "loop", "path": f"/srv/{name}.img"} for name in "ab"]
    assert server.ask("PUT", "/devices/data?wait=ready", {"target": {"type": "stripe", "children": children}}).status in (200, 201)
    check_problem(server.ask("POST", "/devices/data/mount", {}), 409, "not-possible-now")


def test_a_copy_that_an_unmount_has_left_is_over_with_its_disk(server):
    """Until an unmount has found that: users must not get a disk that a container may have mounted."""
    server.ask("POST", "/devices?wait=ready", spec(labels={"filesystem": "left"}))
    assert holds(server, "mount", {}) == (True, 0)
    assert holds(server, "unmount", {}, 409) == (False, 0)
    owner = {"owner": {"uid": 1000}}
    check_problem(server.ask("PATCH", "/devices/data", owner), 409, "in-use")
    assert server.ask("POST", "/devices/data/stop?wait").status == 200
    check_problem(server.ask("PATCH", "/devices/data", owner), 409, "in-use")
    assert holds(server, "unmount", {}) == (False, 0)
    assert server.ask("PATCH", "/devices/data", owner).status == 200


@pytest.mark.parametrize("owner", [{"uid": 1000}, {"gid": 1000}, {"mode": "0666"}])
def test_a_mounted_disk_is_not_given_to_users(server, owner):
    server.ask("POST", "/devices?wait=ready", spec())
    assert holds(server, "mount", {"holder": "a"}) == (True, 1)
    check_problem(server.ask("PATCH", "/devices/data", {"owner": owner}), 409, "in-use")
    check_problem(server.ask("PUT", "/devices/data", spec(owner=owner)), 409, "in-use")
    assert server.ask("PATCH", "/devices/data", {"owner": {"mode": "0640"}}).status == 200
    assert holds(server, "unmount", {"holder": "a"}) == (False, 0)
    assert server.ask("PATCH", "/devices/data", {"owner": owner}).status == 200


@pytest.mark.parametrize("verb, verdict, error, problem", [
    ("mount", NOT_MADE, 0, "not-possible-now"), ("mount", NOT_MOUNTED, errno.EUCLEAN, "not-possible-now"),
    ("mount", LOST, 0, "not-possible-now"), ("mount", OPEN_TO_USERS, 0, "not-possible-now"), ("mount", NOT_MOUNTED, errno.EEXIST, "in-use"), ("unmount", NOT_UNMOUNTED, errno.EBUSY, "in-use"),
    ("unmount", NOT_UNMOUNTED, errno.EEXIST, "in-use"), ("unmount", NOT_UNMOUNTED, errno.ETIMEDOUT, "in-use"),
    ("unmount", NOT_UNMOUNTED, errno.EIO, "not-possible-now")])
def test_a_mount_that_fails_is_a_problem(server, verb, verdict, error, problem):
    check_problem(wish(server, verb, f"end {verdict} {error}", {}), 409, problem)


def test_what_the_program_printed_is_one_printable_line(server):
    printed = "the first line and the second"  # without the control characters that are in the order of the test server
    detail = make(server, f"end {PROGRAM_FAILED} 0").json["detail"]
    assert printed in detail and detail.isprintable()


def test_a_client_that_leaves_is_abandoned(server):
    make(server)
    assert server.ask("PUT", "/devices/data?wait=ready", spec(labels={"filesystem": "never"})).status == 200
    connection = server.connect()
    connection.request("POST", "/devices/data/filesystem", body='{"type": "ext4"}', headers={"Content-Type": "application/json"})
    connection.close()
    assert make(server).status == 200


def test_a_server_that_stops_ends_the_request():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        server = Server(directory)
        assert server.ask("PUT", "/devices/data?wait=ready", spec(labels={"filesystem": "never"})).status == 201
        connection = server.connect()
        connection.request("POST", "/devices/data/filesystem", body='{"type": "ext4"}', headers={"Content-Type": "application/json"})
        server.stop()
        connection.close()


@NEEDS_ROOT
def test_a_tenant_with_a_node_makes_and_mounts_its_own():
    """On the node; ublkd makes none for it, and the kernel of the host reads none that a tenant can write past."""
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Tenants(directory)
        create(tenants, "data")
        create(tenants, "null", privateNode=False)  # of a target whose bytes ublkd does not have
        name = f"/devices/u{ALICE}-data"
        answers = tenants.values(asks(
            ("POST", f"{name}/filesystem", {"type": "ext4"}), ("POST", f"/devices/u{ALICE}-null/filesystem", {"type": "ext4"})))
        assert [status for status, _ in answers] == [409, 409]
        assert tenants.server.ask("POST", f"{name}/filesystem", {"type": "ext4"}).status == 200  # root
        check_problem(tenants.server.ask("POST", f"{name}/mount", {"holder": "a"}), 409, "not-possible-now")
        assert tenants.server.ask("GET", name).json["status"]["mountHolders"] == 0
        tenants.server.stop()


class Volumes(Tenants):
    """Tenants with a pool."""

    def set_rules(self, *rules):
        pools = {"fast": {"directory": "/srv/fast"}}
        return write_policy(self.directory, pools=pools, rules=[{"mount": True, **rule, "targets": ["loop"], "pools": ["fast"]} for rule in rules])


@pytest.fixture(name="volumes", scope="module")
def tenants_with_a_pool():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Volumes(directory, "--sqlite")
        yield tenants
        tenants.server.stop()


def statuses(tenants, *requests, uid=ALICE):
    return [status for status, _ in tenants.values(asks(*requests), uid=uid)]


POOL = {"type": "loop", "pool": "fast"}


@NEEDS_ROOT
def test_a_tenant_without_a_node_has_its_file_system_made_mounted_and_delivered(volumes):
    device = create(volumes, "data", target=POOL, privateNode=False)
    name = f"/devices/{device['name']}"
    requests = (
        ("POST", f"{name}/filesystem", {"type": "ext4"}), ("POST", f"{name}/deliver", {"path": "/data", "mount": True}),
        ("POST", f"{name}/mount", {}), ("POST", f"{name}/deliver", {"path": "/data", "mount": True}),
        ("POST", f"{name}/deliver", {"path": "/dev/data"}), ("POST", f"{name}/unmount", {}))
    assert statuses(volumes, *requests, uid=BOB) == [404] * 6
    assert statuses(volumes, *requests) == [200, 409, 200, 200, 409, 200]
    assert statuses(volumes, ("DELETE", f"{name}?wait", None)) == [204]


@NEEDS_ROOT
def test_a_tenant_who_has_had_a_node_has_nothing_mounted(volumes):
    """What is on the disk may be his, also after the node has gone."""
    name = f"/devices/{create(volumes, 'data', target=POOL)['name']}"
    patch = ("PATCH", name, {"privateNode": False})
    assert statuses(volumes, patch) == [422]
    answer = volumes.server.ask("PATCH", name, {"privateNode": False})  # as root
    check_problem(answer, 422, "invalid-spec")
    assert answer.json["errors"][0]["reason"] == "NodeWasGiven"
    assert statuses(volumes, ("DELETE", f"{name}?wait", None)) == [204]
    create(volumes, "data", target=POOL, privateNode=False)
    assert statuses(volumes, ("PATCH", name, {"privateNode": True}), ("POST", f"{name}/filesystem", {"type": "ext4"}),
                    patch, ("PATCH", name, {"owner": {"gid": ALICE, "mode": "0660"}}),
                    ("DELETE", f"{name}?wait", None)) == [200, 409, 422, 403, 204]


@NEEDS_ROOT
def test_a_tenant_who_has_had_a_file_system_gets_no_node(volumes):
    """A container may still have it mounted, out of the sight of ublkd, also after the unmount."""
    name = f"/devices/{create(volumes, 'data', target=POOL, privateNode=False)['name']}"
    patch = ("PATCH", name, {"privateNode": True})
    assert statuses(volumes, ("POST", f"{name}/filesystem", {"type": "ext4"}), patch, ("POST", f"{name}/mount", {}), patch,
                    ("POST", f"{name}/unmount", {}), patch) == [200, 422, 200, 422, 200, 422]
    for change in {"privateNode": True}, {"owner": {"gid": ALICE, "mode": "0660"}}:
        answer = volumes.server.ask("PATCH", name, change)  # as root
        check_problem(answer, 422, "invalid-spec")
        assert answer.json["errors"][0]["reason"] == "FileSystemWasMade"
    assert statuses(volumes, ("PATCH", name, {"labels": {"a": "b"}}), ("DELETE", f"{name}?wait", None)) == [200, 204]


@NEEDS_ROOT
def test_a_rule_has_to_allow_what_the_kernel_of_the_host_mounts():
    """A pool was enough for a disk before there were file systems of tenants. What is mounted ends without a rule."""
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        volumes = Volumes(directory, "--sqlite")
        name = f"/devices/{create(volumes, 'data', target=POOL, privateNode=False)['name']}"
        wanted = (("POST", f"{name}/filesystem", {"type": "ext4"}), ("POST", f"{name}/mount", {}),
                  ("POST", f"{name}/deliver", {"path": "/data", "mount": True}))
        assert statuses(volumes, *wanted) == [200] * 3
        volumes.set_rules({**RULE, "mount": False})
        assert volumes.server.tell("policy") == 0
        answers = volumes.values(asks(*wanted))
        assert [status for status, _ in answers] == [403] * 3
        assert {fault["reason"] for _, answer in answers for fault in answer["errors"]} == {"PolicyForbids"}
        assert statuses(volumes, ("POST", f"{name}/unmount", {})) == [200]
        volumes.server.stop()
