# SPDX-License-Identifier: MIT
"""POST /devices/NAME/filesystem, with file systems that are made as the labels of the device say."""
import errno
import tempfile

import pytest
from api_server import Server, check_problem, spec
from api_tenants_test import ALICE, Tenants, asks, create
from other_user import NEEDS_ROOT

# enum filesystem_verdict
(MADE, MOUNTED, UNMOUNTED, NOT_MADE, NOT_MOUNTED, NOT_UNMOUNTED, OTHER_KIND, NOT_BLANK, UNFINISHED, LOST, NEWER, IN_USE, NO_DISK, NOT_READ, NOT_STORED, NOT_INSTALLED, NOT_CONFINED,
 PROGRAM_FAILED, TOO_LONG) = range(19)


def make(server, order=None, kind="ext4"):
    labels = {"labels": {"filesystem": order}} if order else {}
    assert server.ask("PUT", "/devices/data?wait=ready", spec(**labels)).status in (200, 201)
    return server.ask("POST", "/devices/data/filesystem", {"type": kind})


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_the_answer_is_the_device(server, kind):
    answer = make(server, kind=kind)
    assert answer.status == 200 and answer.json["name"] == "data" and answer.json["status"]["filesystem"] is None


@pytest.mark.parametrize("body", [{}, {"type": 1}, {"type": "btrfs"}, {"type": "ext4", "force": True}, []])
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
    (TOO_LONG, errno.ETIMEDOUT, 504, "timeout")])
def test_what_fails_is_a_problem(server, verdict, error, status, problem):
    check_problem(make(server, f"end {verdict} {error}"), status, problem)


def wish(server, verb, order=None, body=None):
    labels = {"labels": {"filesystem": order}} if order else {}
    assert server.ask("PUT", "/devices/data?wait=ready", spec(**labels)).status in (200, 201)
    return server.ask("POST", f"/devices/data/{verb}", body)


@pytest.mark.parametrize("verb, body", [("mount", {}), ("mount", {"noExec": True}), ("unmount", None)])
def test_a_mount_and_its_end(server, verb, body):
    answer = wish(server, verb, body=body)
    assert answer.status == 200 and answer.json["status"]["mount"] is None


@pytest.mark.parametrize("body", [{"noExec": 1}, {"noexec": True}, {"noExec": True, "more": 1}, []])
def test_the_body_of_a_mount_is_checked(server, body):
    server.ask("POST", "/devices?wait=ready", spec())
    check_problem(server.ask("POST", "/devices/data/mount", body), 422, "invalid-request")


@pytest.mark.parametrize("verb, verdict, error, problem", [
    ("mount", NOT_MADE, 0, "not-possible-now"), ("mount", NOT_MOUNTED, errno.EUCLEAN, "not-possible-now"),
    ("mount", LOST, 0, "not-possible-now"), ("unmount", NOT_UNMOUNTED, errno.EBUSY, "in-use"),
    ("unmount", NOT_UNMOUNTED, errno.EIO, "not-possible-now")])
def test_a_mount_that_fails_is_a_problem(server, verb, verdict, error, problem):
    check_problem(wish(server, verb, f"end {verdict} {error}", {} if verb == "mount" else None), 409, problem)


def test_what_the_program_printed_is_one_printable_line(server):
    detail = make(server, f"end {PROGRAM_FAILED} 0").json["detail"]
    assert "the first line and the second;" in detail


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
def test_a_tenant_makes_its_own():
    """On the node; ublkd makes none for it."""
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Tenants(directory)
        create(tenants, "data")
        ((status, _),) = tenants.values(asks(("POST", f"/devices/u{ALICE}-data/filesystem", {"type": "ext4"})))
        assert status == 403
        tenants.server.stop()
