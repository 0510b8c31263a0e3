# SPDX-License-Identifier: MIT
"""What a tenant reads of messages that name what belongs to others: their processes, mounts and devices. An administrator, and
a tenant that may read everything, read them in full."""
import json
import pathlib
import shutil

import pytest
from api_tenants_test import ALICE, BOB, READERS, RULE, asks, create, mine
from api_tenants_test import _tenants  # noqa: F401  pylint: disable=unused-import
from other_user import NEEDS_ROOT

pytestmark = NEEDS_ROOT
HARMLESS = {"onCrash": "fail"}
OTHERS = "process 4211 (secret), mounted at /home/bob"


@pytest.fixture(name="disk")
def _disk(tenants):
    """A device of alice, whose disk others use; what a client with these groups is answered."""
    tenants.set_rules({**RULE, "ids": "5"})
    assert tenants.server.tell("policy") == 0
    name = create(tenants, "data", id=5, recovery=HARMLESS)["name"]
    tenants.server.tell(f"busy 5 {OTHERS}")

    def answers(method, target="", body=None, **as_whom):
        ((status, answer),) = tenants.values(asks((method, f"/devices/{name}{target}", body)), **as_whom)
        return status, json.dumps(answer)
    answers.name = name
    return answers


def names_others(text):
    return "4211" in text or "bob" in text


@pytest.mark.parametrize("method, target, body", [
    ("DELETE", "", None), ("DELETE", "?dryRun=true", None), ("DELETE", "?dryRun=true&force=true", None),
    ("PATCH", "", {"enabled": False}), ("POST", "/stop", None)])
def test_who_uses_the_disk(disk, method, target, body):
    """In the same order for both: nothing is removed."""
    for groups, shown in (([], False), ([READERS], True)):
        status, text = disk(method, target, body, groups=groups)
        assert status == (200 if "force" in target else 409), text
        assert names_others(text) is shown, text


@pytest.mark.parametrize("owner, named", [(ALICE, True), (BOB, False)])
def test_own_processes_are_named(tenants, disk, owner, named):
    """So that a tenant knows which of its own processes to end."""
    tenants.server.tell(f"own {owner}")
    for target in ("", "?dryRun=true", "?drop-last-copy=false"):
        status, text = disk("DELETE", target)
        assert status == 409 and ("process 1 (own)" in text) is named and not names_others(text), text
    status, text = disk("DELETE", groups=[READERS])
    assert status == 409 and "process 1 (own)" in text and names_others(text)


def test_the_last_copy(tenants, disk):
    tenants.server.tell("reach 3")  # BACKING_REACH_UNNAMED
    for groups, shown in (([], False), ([READERS], True)):
        status, text = disk("DELETE", "?drop-last-copy=false", groups=groups)
        assert status == 409 and "last-copy" in text and names_others(text) is shown


def test_a_removal_that_takes_too_long(tenants, disk):
    tenants.server.tell("auto off")
    for groups, shown in (([], False), ([READERS], True)):
        status, text = disk("DELETE", "?force=true&wait&timeout=1s", groups=groups)
        assert status == 504 and names_others(text) is shown, text


def test_a_preflight(tenants, disk):
    tenants.server.tell(f"preflight The store is in use by {OTHERS}.")
    tenants.server.tell("idle")
    for groups, shown in (([], False), ([READERS], True)):
        status, text = disk("PUT", "", mine("data", id=5, recovery=HARMLESS, blockSize=4096), groups=groups)
        assert status == 422 and "cannot-start" in text and names_others(text) is shown, text


@pytest.mark.parametrize("phase, reason", [("Backoff", "BackingInUse"), ("Stopping", "InUse"), ("Stopping", "StillHeld")])
def test_statuses_and_events(tenants, disk, phase, reason):
    tenants.server.tell("auto off")
    tenants.server.tell(f"status {disk.name} {phase} {reason} It is in use by {OTHERS}. | Next attempt soon.")
    tenants.server.tell(f"condition {disk.name} Space False {reason} It is in use by {OTHERS}.")
    tenants.server.tell(f"note {disk.name} WaitsForRecover It is in use by {OTHERS}.")
    requests = [("GET", f"/devices/{disk.name}", None), ("GET", "/devices", None), ("GET", "/events", None)]
    for groups, shown in (([], False), ([READERS], True)):
        code = asks(*requests).replace("method, target, body)", 'method, target, body, {"Accept": "application/json"})')
        for status, answer in tenants.values(code, groups=groups):
            assert status == 200 and names_others(json.dumps(answer)) is shown, answer
    ready = tenants.values(asks(requests[0]))[0][1]["status"]["conditions"][0]
    assert ready["reason"] == reason and ready["message"]


def test_a_stream_of_events(tenants, disk):
    tenants.server.tell(f"note {disk.name} InUse It is in use by {OTHERS}.")
    code = """
connection = UnixConnection(path)
connection.request("GET", "/events?after=0", headers={"Accept": "text/event-stream"})
print(next(line for line in connection.getresponse() if b"InUse" in line))
"""
    for groups, shown in (([], False), ([READERS], True)):
        assert names_others(tenants.run(code, ALICE, groups)) is shown


def test_a_wait_for_a_device_that_cannot_start(tenants, disk):
    tenants.server.tell("auto off")
    tenants.server.tell("idle")
    tenants.server.tell(f"status {disk.name} Backoff BackingInUse It is in use by {OTHERS}. | Next attempt soon.")
    for groups, shown in (([], False), ([READERS], True)):
        status, text = disk("PUT", "?wait=ready&timeout=1s", mine("data", id=5, recovery=HARMLESS), groups=groups)
        assert status == 504 and names_others(text) is shown, text


def test_a_delivery_from_a_record_of_an_older_database(tenants, disk):
    database = pathlib.Path(tenants.directory, "ublkd.db")
    tenants.server.stop()
    shutil.copy(database, database.with_name("backup"))
    tenants.start()
    assert disk("PUT", "", mine("data", id=5, recovery=HARMLESS, queueDepth=64))[0] == 200
    tenants.server.stop()
    shutil.copy(database.with_name("backup"), database)
    tenants.start()
    tenants.server.tell(f"status {disk.name} Backoff BackingInUse It is in use by {OTHERS}. | Next attempt soon.")
    for groups, shown in (([], False), ([READERS], True)):
        status, text = disk("POST", "/deliver", {"path": "/data"}, groups=groups)
        assert status == 409 and "record-outdated" in text and names_others(text) is shown, text
