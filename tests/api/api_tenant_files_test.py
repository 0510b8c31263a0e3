# SPDX-License-Identifier: MIT
"""Files of tenants: which paths they may name. Who opens them, and how, is the worker's: tests/unit/targets/loop/user_path_test.c."""
import os
import tempfile

import pytest
from api_tenants_test import ALICE, BOB, MAPPED, RULE, Tenants, asks, mine
from other_user import NEEDS_ROOT

pytestmark = NEEDS_ROOT
DIRECTORY = "/srv/of-tenants"
FILE = f"{DIRECTORY}/a.img"


@pytest.fixture(name="tenants")
def _tenants():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Tenants(directory)
        tenants.set_rules({**RULE, "targets": ["loop"], "directories": [DIRECTORY]})
        assert tenants.server.tell("policy") == 0
        yield tenants
        tenants.server.stop()


def on(path, name="x", uid=ALICE, **more):
    return mine(name, uid, target={"type": "loop", "path": path}, **more)


def faults(problem):
    return [(fault["pointer"], fault["reason"]) for fault in problem["errors"]]


def test_a_file_below_a_directory_of_the_rule(tenants):
    ((status, device),) = tenants.values(asks(("POST", "/devices", on(FILE))))
    assert status == 201 and device["tenant"] == f"uid:{ALICE}" and device["spec"]["target"]["path"] == FILE


@pytest.mark.parametrize("path", [DIRECTORY, "/etc/shadow", f"{DIRECTORY}/../of-root", f"{DIRECTORY}-x/a", f"{DIRECTORY}//a", "/proc/self/fd/3",
                                  "/dev/sda"])
def test_another_path(tenants, path):
    ((status, problem),) = tenants.values(asks(("POST", "/devices", on(path))))
    assert status == 403 and faults(problem) == [("/target/path", "PolicyForbids")]


def test_a_path_does_not_move_out_of_the_directories(tenants):
    name = f"u{ALICE}-x"
    patch = {"target": {"path": "/etc/shadow"}}
    answers = tenants.values(asks(("POST", "/devices", on(FILE)), ("PATCH", f"/devices/{name}", patch),
                                  ("PUT", f"/devices/{name}", on("/etc/shadow")), ("PATCH", f"/devices/{name}", {"labels": {"a": "b"}})))
    assert [status for status, _ in answers] == [201, 403, 403, 200]


def test_the_rule_of_another_directory(tenants):
    """A device keeps its disk, but no change, once the rule has lost its directory."""
    tenants.values(asks(("POST", "/devices", on(FILE))))
    tenants.set_rules({**RULE, "targets": ["loop"], "directories": ["/srv/other"]})
    assert tenants.server.tell("policy") == 0
    name = f"u{ALICE}-x"
    (changed, _), (read, device) = tenants.values(asks(("PATCH", f"/devices/{name}", {"labels": {"a": "b"}}), ("GET", f"/devices/{name}", None)))
    assert (changed, read, device["generation"]) == (403, 200, 1)


def test_a_path_of_a_container_is_not_one_of_the_host(tenants):
    """The same text leads elsewhere there. A device of the user can be changed from there, if it keeps its path."""
    inside = {"container": MAPPED + "uid, groups = 1, []\n"}
    name = f"u{ALICE}-x"
    ((status, problem),) = tenants.values(asks(("POST", "/devices", on(FILE))), **inside)
    assert status == 403 and faults(problem) == [("/target/path", "PathOfContainer")]
    tenants.values(asks(("POST", "/devices", on(FILE))))
    (kept, _), (moved, problem) = tenants.values(asks(("PATCH", f"/devices/{name}", {"labels": {"a": "b"}}),
                                                      ("PATCH", f"/devices/{name}", {"target": {"path": FILE + "2"}})), **inside)
    assert (kept, moved) == (200, 403) and faults(problem) == [("/target/path", "PathOfContainer")]
    tenants.values(asks(("POST", "/devices", on(f"{DIRECTORY}/b.img", uid=BOB))), uid=BOB)
    ((status, problem),) = tenants.values(asks(("PUT", f"/devices/{name}", on(f"{DIRECTORY}/b.img"))), **inside)
    assert status == 403
