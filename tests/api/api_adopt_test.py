# SPDX-License-Identifier: MIT
"""POST /devices/adopt: records that the database lost, or has in an older form, come from the runtime directory."""
import json
import os
import pathlib
import select
import shutil
import signal
import uuid

import pytest
from api_server import Server, ask, check_problem, send, spec


class Place:
    """A directory, and the servers that run there one after the other."""

    def __init__(self, directory):
        self.directory = directory
        self.server = None

    def start(self, *arguments):
        self.server = Server(self.directory, *arguments)
        assert self.server.started, self.server.process.stderr.read()
        return self.server

    def stop(self):
        if self.server:
            self.server.stop()
        self.server = None

    def restart(self, *arguments):
        self.stop()
        return self.start(*arguments)

    def records(self):
        return sorted(pathlib.Path(self.directory, "run", "workers").glob("*.record"))

    def ask(self, *arguments, status=200, **more):
        answer = self.server.ask(*arguments, **more)
        assert answer.status == status, answer.body
        return answer.json

    def adopt(self, **body):
        answer = self.ask("POST", "/devices/adopt", body)
        assert answer["remaining"] == 0
        return {item["uid"]: item for item in answer["items"]}

    def adoptable(self):
        return self.ask("GET", "/host")["adoptable"]


@pytest.fixture
def place(tmp_path):
    place = Place(str(tmp_path))
    place.start()
    yield place
    place.stop()


def create(place, *names, **more):
    return {name: place.ask("POST", "/devices", spec(name, **more), status=201)["uid"] for name in names}


def test_by_uid(place):
    uids = create(place, "a", "b", labels={"k": "v"})
    place.ask("PATCH", "/devices/a", {"queueDepth": 64}, {"Content-Type": "application/merge-patch+json"})
    before = place.ask("GET", "/devices/a")
    assert place.adoptable() == []
    place.restart()  # its store is in memory
    assert place.ask("GET", "/devices")["items"] == []
    found = {item["name"]: item for item in place.adoptable()}
    assert {name: item["uid"] for name, item in found.items()} == uids
    assert all(item["reason"] is None and not item["outdated"] and not item["served"] for item in found.values())
    unknown = str(uuid.uuid4())
    came = place.adopt(uids=[uids["a"], unknown])
    assert (came[uids["a"]]["name"], came[uids["a"]]["adopted"], came[uids["a"]]["reason"]) == ("a", True, "Adopted")
    assert (came[unknown]["name"], came[unknown]["adopted"], came[unknown]["reason"]) == (None, False, "Unknown")
    assert unknown in came[unknown]["detail"]
    after = place.ask("GET", "/devices/a")
    assert all(after[key] == before[key] for key in ("name", "uid", "generation", "spec"))
    assert [item["name"] for item in place.adoptable()] == ["b"]
    assert place.adopt(uids=[uids["a"]])[uids["a"]]["reason"] == "Unchanged"  # a retry is safe
    (event,) = [event for event in place.ask("GET", "/events", headers={"Accept": "application/json"})["items"]
                if event["reason"] == "Adopted"]
    assert event["device"] == {"name": "a", "uid": uids["a"]} or event["device"]["name"] == "a"


def test_adopt_all_takes_256_at_a_time(place):
    uids = create(place, *(f"d{i}" for i in range(300)))
    place.restart()
    create(place, "d7")
    first = place.ask("POST", "/devices/adopt", {"all": True})
    assert first["remaining"] == 300 - 256 - 1 or first["remaining"] == 300 - 256
    came = first["items"] + place.ask("POST", "/devices/adopt", {"all": True})["items"]
    by_name = {item["name"]: item for item in came}
    assert by_name["d7"]["reason"] == "NameTaken" and "--name" in by_name["d7"]["detail"]
    assert all(item["adopted"] for name, item in by_name.items() if name != "d7") and len(by_name) == 300
    assert place.adopt(uids=[uids["d7"]], name="other")[uids["d7"]]["adopted"]
    other = place.ask("GET", "/devices/other")
    assert other["uid"] == uids["d7"] and other["spec"]["name"] == "other" and other["generation"] == 2
    assert place.adopt(all=True) == {} and place.adoptable() == []


@pytest.mark.parametrize("listed", [True, False])
def test_the_server_answers_others_while_it_adopts_many(place, listed):
    """Each adoption is a transaction, so the loop must serve other clients in between."""
    uids = create(place, *(f"d{i}" for i in range(200)))
    place.restart("--sqlite")
    body = {"uids": list(uids.values())} if listed else {"all": True}
    before, adopting, after = (place.server.connect() for _ in range(3))
    for connection in (before, adopting, after):
        assert ask(connection, "GET", "/healthz").status == 200
    os.kill(place.server.process.pid, signal.SIGSTOP)
    send(before, "GET", "/healthz")
    send(adopting, "POST", "/devices/adopt", body)
    send(after, "GET", "/healthz")
    os.kill(place.server.process.pid, signal.SIGCONT)
    assert before.getresponse().status == 200 and after.getresponse().status == 200
    assert select.select([adopting.sock], [], [], 0)[0] == []
    items = json.loads(adopting.getresponse().read())["items"]
    assert len(items) == 200 and all(item["adopted"] for item in items)


def test_a_client_that_leaves_ends_its_adoption(place):
    create(place, *(f"d{i}" for i in range(200)))
    place.restart()
    adopting = place.server.connect()
    send(adopting, "POST", "/devices/adopt", {"all": True})
    adopting.close()
    assert place.ask("GET", "/healthz") is not None
    place.ask("POST", "/devices/adopt", {"all": True})
    assert place.adoptable() == []


@pytest.mark.parametrize("body, pointers", [
    ({}, [""]),
    ([], [""]),
    ({"all": False}, ["/all"]),
    ({"all": True, "uids": [str(uuid.uuid4())]}, [""]),
    ({"all": True, "name": "x"}, ["/name"]),
    ({"uids": []}, ["/uids"]),
    ({"uids": "x"}, ["/uids"]),
    ({"uids": [str(uuid.uuid4())] * 257}, ["/uids"]),
    ({"uids": [str(uuid.uuid4()), "../../etc", 7]}, ["/uids/1", "/uids/2"]),
    ({"uids": [str(uuid.uuid4())], "name": "No Name"}, ["/name"]),
    ({"uids": [str(uuid.uuid4()), str(uuid.uuid4())], "name": "x"}, ["/name"]),
    ({"uids": [str(uuid.uuid4())], "force": True}, [""]),
])
def test_an_invalid_body_is_refused(place, body, pointers):
    problem = check_problem(place.server.ask("POST", "/devices/adopt", body), 422, "invalid-request")
    assert [error["pointer"] for error in problem["errors"]] == pointers


def test_before_the_first_pass(place):
    place.server.tell("settled off")
    check_problem(place.server.ask("POST", "/devices/adopt", {"all": True}), 503, "not-ready")


def test_a_record_that_cannot_be_read(place):
    (uid,) = create(place, "data").values()
    place.stop()
    (record,) = place.records()
    text = record.read_text()
    record.write_text(text.replace('"version":1', '"version":2'))
    place.start()
    (item,) = place.adoptable()
    assert item["uid"] == uid and item["name"] is None and item["reason"] == "BadRecord"
    assert place.adopt(all=True)[uid]["reason"] == "BadRecord"
    assert place.ask("GET", "/devices")["items"] == [] and record.exists()
    record.write_text(text)
    assert place.adopt(all=True)[uid]["adopted"]


def test_a_device_may_be_called_adopt(place):
    place.ask("PUT", "/devices/adopt", spec("adopt"), status=201)
    assert place.ask("GET", "/devices/adopt")["name"] == "adopt"
    place.ask("DELETE", "/devices/adopt", status=202)


def test_an_older_database(place):
    database = pathlib.Path(place.directory, "ublkd.db")
    place.restart("--sqlite")
    uids = create(place, "changed", "removed", "same")
    place.stop()
    shutil.copy(database, database.with_name("backup"))
    place.start("--sqlite")
    place.ask("PUT", "/devices/changed", spec("changed", queueDepth=64))
    assert place.server.ask("DELETE", "/devices/removed?wait").status == 204
    place.stop()
    shutil.copy(database.with_name("backup"), database)
    place.start("--sqlite")
    reasons = {name: place.ask("GET", f"/devices/{name}")["status"]["conditions"][0]["reason"] for name in uids}
    assert reasons["changed"] == "RecordOutdated" and reasons["removed"] == "RecordRemoved"
    for method, path, body in (
        ("PUT", "/devices/changed", spec("changed")),
        ("POST", "/devices", spec("changed")),
        ("POST", "/devices/changed/restart", None),
        ("POST", "/devices/changed/recover", None),
        ("POST", "/devices/changed/filesystem", {"type": "ext4"}),
        ("POST", "/devices/changed/mount", {"holder": "a"}),
        ("POST", "/devices/changed/unmount", {"holder": "a"}),
        ("POST", "/devices/changed/unmount", {"allHolders": True}),
        ("POST", "/devices/changed/deliver", {"path": "/data", "mount": True}),
        ("DELETE", "/devices/changed?force=true", None),
        ("PUT", "/devices/removed", spec("removed")),
        ("POST", "/devices/removed/restart", None),
    ):
        problem = check_problem(place.server.ask(method, path, body), 409, "record-outdated")
        assert "ublkctl adopt" in problem["detail"]
    check_problem(place.server.ask("PATCH", "/devices/changed", {"labels": {"a": "b"}},
                                   {"Content-Type": "application/merge-patch+json"}), 409, "record-outdated")
    found = {item["name"]: item for item in place.adoptable()}
    assert set(found) == {"changed", "removed"} and all(item["outdated"] for item in found.values())
    assert found["changed"]["reason"] is None and found["removed"]["reason"] == "RecordRemoved"
    assert set(place.adopt(all=True)) == {uids["changed"]}
    changed = place.ask("GET", "/devices/changed")
    assert changed["generation"] == 2 and changed["spec"]["queueDepth"] == 64 and changed["uid"] == uids["changed"]
    assert place.adopt(uids=[uids["removed"]])[uids["removed"]]["adopted"]
    assert place.adoptable() == []
    place.ask("PUT", "/devices/removed", spec("removed", labels={"a": "b"}))


def test_only_privileged_clients_may_adopt(place):
    assert place.server.ask("GET", "/openapi.json").json["paths"]["/devices/adopt"]["post"]["responses"]["403"]
