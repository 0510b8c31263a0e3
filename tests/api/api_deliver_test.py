# SPDX-License-Identifier: MIT
"""POST /devices/NAME/deliver, with deliveries that end as the path says. tests/kernel/test_private_nodes.py has real ones."""
import errno
import re
import tempfile

import pytest
from api_server import check_problem, spec
from api_tenants_test import ALICE, BOB, Tenants, asks, create
from other_user import NEEDS_ROOT

pytestmark = NEEDS_ROOT

# enum delivery_outcome
(AT_HOME, OF_ROOT, ENDED, NOT_ENTERED, NO_FILE, SHARED, NOT_MOUNTED, LATE, TAKEN_BACK, NO_MOUNT, NOT_CLONED) = range(1, 12)


@pytest.fixture(name="tenants", scope="module")
def _tenants():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Tenants(directory, "--sqlite")
        create(tenants, "data")
        yield tenants
        tenants.server.stop()


def deliver(tenants, path, body=None):
    """As root, which may do it for a tenant."""
    return tenants.server.ask("POST", f"/devices/u{ALICE}-data/deliver", body or {"path": path})


def test_the_tenant_has_it_delivered(tenants):
    ((status, answer),) = tenants.values(asks(("POST", f"/devices/u{ALICE}-data/deliver", {"path": "/dev/data"})))
    assert status == 200 and answer == {"path": "/dev/data"}


def test_the_device_of_another_tenant_is_like_none(tenants):
    name = f"u{ALICE}-data"
    answers = tenants.values(asks(
        ("POST", f"/devices/{name}/deliver", {"path": "/dev/data"}), ("POST", f"/devices/{name}-x/deliver", {"path": "/dev/data"})),
        uid=BOB)
    assert [status for status, _ in answers] == [404, 404]


@pytest.mark.parametrize("body", [
    {}, {"path": 1}, {"path": "/a", "more": 1}, [], {"path": "/a", "mount": 1}, {"path": "/a", "readOnly": True},
    {"path": "/a", "noExec": True, "mount": False}, {"path": "/a", "pid": 0}, {"path": "/a", "pid": "1"}, {"path": "/a", "pid": 1.5},
    {"path": "/a", "pid": (1 << 22) + 1}])
def test_a_body_without_a_path_is_refused(tenants, body):
    check_problem(tenants.server.ask("POST", f"/devices/u{ALICE}-data/deliver", body), 422, "invalid-request")


@pytest.mark.parametrize("error, status, problem", [
    (errno.EINVAL, 422, "invalid-request"), (errno.ENAMETOOLONG, 422, "invalid-request"),
    (errno.ENOENT, 409, "not-possible-now"), (errno.EOPNOTSUPP, 409, "not-possible-now"), (errno.EBUSY, 409, "not-possible-now"),
    (errno.EAGAIN, 409, "not-possible-now"), (errno.ESRCH, 409, "not-possible-now"), (errno.E2BIG, 409, "not-possible-now"),
    (errno.EMFILE, 500, "internal")])
def test_a_delivery_that_does_not_begin_is_a_problem(tenants, error, status, problem):
    check_problem(deliver(tenants, f"/begin/{error}"), status, problem)


@pytest.mark.parametrize("outcome, error, reason", [
    (AT_HOME, 0, "AtHome"), (OF_ROOT, 0, "NoUserNamespace"), (ENDED, 0, "ClientEnded"), (SHARED, 0, "SharedMount"),
    (TAKEN_BACK, 0, "TakenBack"), (NO_MOUNT, errno.ENXIO, "NotMounted"), (NO_MOUNT, errno.ESTALE, "NotMounted"),
    (NO_MOUNT, errno.ENOENT, "NotMounted"), (NO_MOUNT, errno.ENOSPC, "SystemError"), (NOT_CLONED, errno.EINVAL, "NoTranslation"),
    (NOT_CLONED, errno.EPERM, "SystemError"), (NO_FILE, errno.EROFS, "ReadOnly"), (NO_FILE, errno.EEXIST, "Occupied"),
    (NO_FILE, errno.ENOENT, "NoDirectory"), (NO_FILE, errno.ENOTDIR, "NoDirectory"), (NO_FILE, errno.ELOOP, "LinkInPath"),
    (NO_FILE, errno.EACCES, "NoRight"), (NO_FILE, errno.EPERM, "NoSockets"), (NO_FILE, errno.EIO, "SystemError"),
    (NOT_MOUNTED, errno.EPERM, "NotOwner"), (NOT_MOUNTED, errno.EACCES, "SecurityModule"),
    (NOT_MOUNTED, errno.ENOSPC, "TooManyMounts"), (NOT_MOUNTED, errno.EIO, "SystemError"),
    (NOT_ENTERED, errno.EPERM, "SecurityModule"), (NOT_ENTERED, errno.EACCES, "SecurityModule"),
    (NOT_ENTERED, errno.EPIPE, "SystemError")])
def test_a_delivery_that_fails_is_a_problem_with_a_reason(tenants, outcome, error, reason):
    answer = deliver(tenants, f"/end/{outcome}/{error}")
    check_problem(answer, 409, "not-possible-now")
    assert [(fault["pointer"], fault["reason"]) for fault in answer.json["errors"]] == [("/path", reason)]
    assert all(re.search(r"[;:] \w", fault["detail"]) for fault in answer.json["errors"])  # what to do comes last


def test_a_delivery_that_is_late_is_a_problem(tenants):
    check_problem(deliver(tenants, f"/end/{LATE}/{errno.ETIMEDOUT}"), 504, "timeout")


def test_a_client_that_leaves_cancels_its_delivery(tenants):
    connection = tenants.server.connect()
    connection.request("POST", f"/devices/u{ALICE}-data/deliver", body='{"path": "/never"}',
                       headers={"Content-Type": "application/json"})
    connection.close()
    assert deliver(tenants, "/dev/data").status == 200


def test_a_device_of_the_administrators_has_no_node(tenants):
    assert tenants.server.ask("POST", "/devices?wait=ready", spec("host")).status == 201
    check_problem(tenants.server.ask("POST", "/devices/host/deliver", {"path": "/dev/data"}), 409, "not-possible-now")


def test_a_server_that_stops_ends_a_delivery():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Tenants(directory)
        name = create(tenants, "data")["name"]
        connection = tenants.server.connect()
        connection.request("POST", f"/devices/{name}/deliver", body='{"path": "/never"}', headers={"Content-Type": "application/json"})
        tenants.server.stop()
        connection.close()


def test_a_file_system_is_delivered_while_it_is_mounted(tenants):
    ask = tenants.server.ask
    assert ask("POST", "/devices?wait=ready", spec("volume")).status == 201
    check_problem(ask("POST", "/devices/volume/deliver", {"path": "/data"}), 409, "not-possible-now")  # no tenant's
    body = {"path": "/data", "mount": True, "readOnly": True, "noExec": True, "pid": 1}
    check_problem(ask("POST", "/devices/volume/deliver", body), 409, "not-possible-now")
    assert ask("POST", "/devices/volume/filesystem", {"type": "ext4"}).status == 200
    assert ask("POST", "/devices/volume/mount", {}).status == 200
    answer = ask("POST", "/devices/volume/deliver", body)
    assert answer.status == 200 and answer.json == {"path": "/data"}
    check_problem(ask("POST", "/devices/volume/deliver", {**body, "pid": 1 << 22}), 409, "not-possible-now")
    assert ask("POST", "/devices/volume/unmount", {}).status == 200


def test_a_tenant_names_no_process_and_gets_no_volume_of_root(tenants):
    """With the process of another user, ublkd would act with the rights of that user."""
    name = f"u{ALICE}-data"
    answers = tenants.values(asks(
        ("POST", f"/devices/{name}/deliver", {"path": "/dev/data", "pid": 1}),
        ("POST", f"/devices/{name}/deliver", {"path": "/data", "mount": True}),
        ("POST", "/devices/volume/deliver", {"path": "/data", "mount": True})))
    assert [status for status, _ in answers] == [403, 409, 404]
    assert deliver(tenants, None, {"path": "/dev/data", "pid": 1}).status == 200  # root may
