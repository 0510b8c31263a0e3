# SPDX-License-Identifier: MIT
"""Devices over the API: create, read, list, replace, remove, restart; and the resources that can only be read."""
import contextlib
import datetime
import json
import re
import sqlite3
import threading
import urllib.parse

import pytest

from api_server import Server, check_problem, read_status, spec
from hostile_names import HOSTILE_NAMES


def test_create_gives_location_etag_and_the_device(server):
    answer = server.ask("POST", "/devices", spec(labels={"app": "db"}))
    assert answer.status == 201
    assert answer.headers["Location"] == "/devices/data"
    assert answer.headers["ETag"].startswith('"1.')
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.type == "application/json"
    device = answer.json
    assert device["name"] == "data" and device["generation"] == 1
    assert device["spec"] == spec(labels={"app": "db"})
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", device["uid"])
    assert device["status"]["phase"] == "Pending"
    assert device["status"]["device"] is None and device["status"]["worker"] is None
    assert server.ask("GET", "/devices/data").json["uid"] == device["uid"]


def test_created_at_is_the_time_of_the_creation(server):
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(milliseconds=1)
    created = server.ask("POST", "/devices", spec()).json["createdAt"]
    assert before <= datetime.datetime.fromisoformat(created) <= datetime.datetime.now(datetime.timezone.utc)
    assert server.ask("PUT", "/devices/data", spec(size="2M")).json["createdAt"] == created
    assert server.ask("GET", "/devices").json["items"][0]["createdAt"] == created


def test_short_units_are_those_of_1024(server):
    stored = server.ask("POST", "/devices", spec(size="1G", maxIoSize="512K")).json["spec"]
    assert (stored["size"], stored["maxIoSize"]) == ("1G", "512K")
    assert server.ask("POST", "/devices", spec(size="1GiB", maxIoSize=512 << 10)).status == 200, "the same spec"
    check_problem(server.ask("POST", "/devices", spec("other", size="1GB")), 422, "invalid-spec")


def test_integers_stay_integers(server):
    """A whole number of JSON has no exponent, in a spec, a list or an event; any other number is not a valid size."""
    assert b'"size":1000000000000000,' in server.ask("POST", "/devices", spec(size=10**15, queueDepth=2)).body
    for path in ("/devices", "/devices/data"):
        body = server.ask("GET", path).body
        assert b'"size":1000000000000000' in body and not re.search(rb"[0-9]e\+[0-9]", body), body
    for size, words in ((1000.5, "1000.5"), (2**53 + 2, "9007199254740994"), (72057594021167100, "72057594021167104"),
                        (-512, "-512"), (4096 * 2**40 + 512, "4503599627371008"), (1e300, "1e+300")):
        (error,) = check_problem(server.ask("PUT", "/devices/data", spec(size=size)), 422, "invalid-spec")["errors"]
        assert error["pointer"] == "/size" and words in error["detail"], error


def test_create_again_is_safe(server):
    first = server.ask("POST", "/devices", spec())
    again = server.ask("POST", "/devices", spec(size=1048576, queueDepth=128))
    assert again.status == 200, "the same wish, written in another way"
    assert again.json["uid"] == first.json["uid"] and again.json["generation"] == 1
    check_problem(server.ask("POST", "/devices", spec(size="2MiB")), 409, "name-taken")
    assert server.ask("GET", "/devices/data").json["spec"]["size"] == "1MiB"


def test_two_creates_at_once_make_one_device(server):
    answers = []

    def create():
        answers.append(server.ask("POST", "/devices?wait=ready", spec()))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert len({answer.json["uid"] for answer in answers}) == 1


def test_a_bad_spec_names_every_fault_and_stores_nothing(server):
    answer = server.ask("POST", "/devices", {"name": "No", "target": {"type": "null"}, "size": "1MiB", "queueDepth": 0,
                                             "colour": "red"})
    problem = check_problem(answer, 422, "invalid-spec")
    assert {"/name", "/queueDepth", "/colour"} <= {error["pointer"] for error in problem["errors"]}
    assert all(error["detail"] for error in problem["errors"])
    assert server.ask("GET", "/devices").json["items"] == []


def test_a_fault_at_a_name_of_two_lines(server):
    problem = check_problem(server.ask("POST", "/devices", spec(labels={"a\nb\n": ""})), 422, "invalid-spec")
    assert [error["pointer"] for error in problem["errors"]] == ["/labels/a\nb\n"]


def test_no_device_and_no_label_has_a_name_that_could_confuse_a_program(server):
    for name in HOSTILE_NAMES:
        for answer in (server.ask("POST", "/devices", spec(name)), server.ask("PUT", f"/devices/{urllib.parse.quote(name)}", spec(name)),
                       server.ask("POST", "/devices", spec(labels={name: "x"}))):
            problem = check_problem(answer, 422, "invalid-spec")
            pointers = {error["pointer"] for error in problem["errors"]}
            assert pointers and pointers <= {"/name", "/labels/" + name.replace("~", "~0")}, problem
    assert names(server.ask("GET", "/devices")) == []


def test_the_value_of_a_label_is_data(server):
    """It comes back as it was sent, in the device and in its events, and finds the device."""
    labels = {f"l{number}": value for number, value in enumerate(HOSTILE_NAMES)}
    assert server.ask("POST", "/devices?wait=ready", spec(labels=labels)).json["spec"]["labels"] == labels
    events = server.ask("GET", "/events?after=0", headers={"Accept": "application/json"}).json["items"]
    assert events and all(event["device"]["labels"] == labels for event in events)
    for name, value in labels.items():
        assert names(server.ask("GET", f"/devices?label={name}={urllib.parse.quote(value)}")) == ["data"], value


def test_get_of_an_unknown_device(server):
    check_problem(server.ask("GET", "/devices/nothing"), 404, "no-such-device")
    check_problem(server.ask("GET", "/devices/No_Such%20Name"), 404, "no-such-device")


def test_put_creates_and_replaces(server):
    body = {key: value for key, value in spec().items() if key != "name"}
    answer = server.ask("PUT", "/devices/data", body)
    assert answer.status == 201 and answer.headers["Location"] == "/devices/data"
    assert answer.json["spec"]["name"] == "data"
    answer = server.ask("PUT", "/devices/data", dict(body, labels={"a": "b"}))
    assert answer.status == 200 and answer.headers["ETag"].startswith('"2.') and answer.json["generation"] == 2
    answer = server.ask("PUT", "/devices/data", dict(body, labels={"a": "b"}))
    assert answer.status == 200 and answer.json["generation"] == 2
    problem = check_problem(server.ask("PUT", "/devices/data", spec("other")), 422, "invalid-spec")
    assert problem["errors"][0]["pointer"] == "/name"
    problem = check_problem(server.ask("PUT", "/devices/..%2fetc", body), 422, "invalid-spec")
    assert problem["errors"][0]["pointer"] == "/name"


def test_if_match_and_if_none_match(server):
    def put(status, headers, **more):
        answer = server.ask("PUT", "/devices/data", spec(**more), headers)
        assert answer.status == status, answer.body
        if status == 412:
            check_problem(answer, 412, "precondition-failed")

    put(412, {"If-Match": "*"})
    put(412, {"If-Match": '"1"'})
    put(201, {"If-None-Match": "*"})
    put(412, {"If-None-Match": "*"})
    put(412, {"If-None-Match": '"7", "1"'})
    put(200, {"If-Match": '"1"'}, labels={"n": "1"})
    put(412, {"If-Match": '"1"'}, labels={"n": "2"})
    put(412, {"If-Match": 'W/"2"'}, labels={"n": "2"})
    put(200, {"If-Match": '"9", "2"'}, labels={"n": "2"})
    put(200, {"If-Match": "*"}, labels={"n": "3"})
    put(200, {"If-None-Match": '"1"'}, labels={"n": "4"})
    put(400, {"If-Match": "2"})
    put(400, {"If-Match": '"2'})
    put(400, {"If-Match": '*, "2"'})
    put(400, {"If-None-Match": '"2" "3"'})
    put(400, {"If-None-Match": ""})
    put(200, {"If-Match": '"5",,'}, labels={"n": "4"})
    tag = server.ask("GET", "/devices/data").headers["ETag"]
    assert tag.startswith('"5.')
    put(412, {"If-Match": '"50", "5.", "05", "", "5.01234567.0"'})
    server.tell("status data Backoff WorkerDied It died.")
    assert server.ask("GET", "/devices/data").headers["ETag"] != tag
    put(200, {"If-Match": tag}, labels={"n": "4"})
    check_problem(server.ask("DELETE", "/devices/data", headers={"If-Match": '"1"'}), 412, "precondition-failed")
    assert server.ask("DELETE", "/devices/data", headers={"If-Match": '"5"'}).status == 202


def test_if_match_on_several_lines_is_one_list(server):
    server.ask("POST", "/devices", spec())
    for lines, status in ((b'If-Match: "7"\r\nIf-Match: "1"', 200), (b'If-Match: "7"\r\nif-match: "8"', 412),
                          (b'If-Match: "1"\r\nIf-Match: *', 400)):
        raw = server.socket()
        body = json.dumps(spec()).encode()
        raw.sendall(b"PUT /devices/data HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + lines +
                    b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert read_status(raw) == status, lines


def test_a_later_device_of_the_name_has_another_tag(server):
    tag = server.ask("POST", "/devices?wait=ready", spec()).headers["ETag"]
    server.ask("DELETE", "/devices/data?wait")
    server.ask("POST", "/devices?wait=ready", spec())
    check_problem(server.ask("DELETE", "/devices/data", headers={"If-Match": tag}), 412, "precondition-failed")
    check_problem(server.ask("POST", "/devices/data/recover", headers={"If-Match": tag}), 412, "precondition-failed")


def test_create_with_preconditions(server):
    check_problem(server.ask("POST", "/devices", spec(), {"If-Match": "*"}), 412, "precondition-failed")
    assert server.ask("POST", "/devices", spec(), {"If-None-Match": "*"}).status == 201
    check_problem(server.ask("POST", "/devices", spec(), {"If-None-Match": "*"}), 412, "precondition-failed")
    assert server.ask("POST", "/devices", spec(), {"If-Match": '"1"'}).status == 200


@pytest.mark.parametrize("path", ["/devices/data", "/devices", "/devices?limit=1", "/host", "/targets", "/schemas",
                                  "/schemas/device", "/healthz"])
def test_an_unchanged_resource_is_not_sent_again(server, path):
    server.ask("POST", "/devices?wait=ready", spec())
    server.ask("POST", "/devices?wait=ready", spec("other"))
    first = server.ask("GET", path)
    tag = first.headers["ETag"]
    assert re.fullmatch(r'"[0-9a-f.]+"', tag)
    for given in (tag, "W/" + tag, '"0", ' + tag, "*"):
        for method in ("GET", "HEAD"):
            again = server.ask(method, path, headers={"If-None-Match": given})
            assert again.status == 304 and again.body == b"" and again.headers["ETag"] == tag
    assert server.ask("GET", path, headers={"If-None-Match": '"0"'}).body == first.body
    assert server.ask("GET", path, headers={"If-Match": tag}).body == first.body
    check_problem(server.ask("GET", path, headers={"If-Match": "W/" + tag}), 412, "precondition-failed")
    check_problem(server.ask("GET", path, headers={"If-None-Match": "x"}), 400, "bad-request")
    server.tell("status data Backoff WorkerDied It died.")
    changed = server.ask("GET", path, headers={"If-None-Match": tag})
    assert changed.status == (200 if path.startswith("/devices") else 304)


MERGE = {"Content-Type": "application/merge-patch+json"}


def test_patch(server):
    check_problem(server.ask("PATCH", "/devices/data", {}, MERGE), 404, "no-such-device")
    server.ask("POST", "/devices?wait=ready", spec(labels={"a": "b", "c": "d"}, queueDepth=64))
    answer = server.ask("PATCH", "/devices/data?wait=ready", {"labels": {"a": None, "e": "f"}, "queueDepth": None}, MERGE)
    assert answer.status == 200 and answer.headers["ETag"].startswith('"2.')
    assert answer.json["spec"] == spec(labels={"c": "d", "e": "f"}) and answer.json["status"]["phase"] == "Live"
    for nothing in ({}, {"name": "data"}, {"readOnly": None}, {"size": 1048576}, {"queueDepth": 128}):
        answer = server.ask("PATCH", "/devices/data", nothing, MERGE)
        assert answer.status == 200 and answer.json["generation"] == 2, nothing
    assert server.ask("PATCH", "/devices/data", {"size": "2MiB"}, {"Content-Type": "Application/Merge-Patch+JSON; charset=utf-8"}).json["generation"] == 3


def test_a_bad_patch_changes_nothing(server):
    server.ask("POST", "/devices?wait=ready", spec())
    for patch, pointer in (({"colour": "red"}, "/colour"), ({"target": None}, "/target"), ({"size": None}, "/size"),
                           ({"target": {"type": "loop"}}, "/target"), ({"name": "other"}, "/name"), ({"name": None}, "/name"),
                           ({"labels": {"a": 7}}, "/labels/a"), ([], ""), ("x", ""), (None, ""), ({"owner": []}, "/owner")):
        problem = check_problem(server.ask("PATCH", "/devices/data", json.dumps(patch), MERGE), 422, "invalid-spec")
        assert pointer in [error["pointer"] for error in problem["errors"]], (patch, problem)
    problem = check_problem(server.ask("PATCH", "/devices/data", '{"owner": {"uid": 1, "uid": 2}}', MERGE), 422, "invalid-spec")
    assert problem["errors"][0]["pointer"] == "/owner/uid"
    check_problem(server.ask("PATCH", "/devices/data", "{", MERGE), 400, "malformed-json")
    check_problem(server.ask("PATCH", "/devices/data", "", MERGE), 400, "malformed-json")
    answer = server.ask("PATCH", "/devices/data", {}, {"Content-Type": "application/json-patch+json"})
    check_problem(answer, 415, "not-json")
    assert answer.headers["Accept-Patch"] == "application/merge-patch+json"
    check_problem(server.ask("PATCH", "/devices/data", {}, dict(MERGE, **{"If-Match": '"7"'})), 412, "precondition-failed")
    check_problem(server.ask("PATCH", "/devices/data", {}, dict(MERGE, **{"If-None-Match": "*"})), 412, "precondition-failed")
    assert server.ask("GET", "/devices/data").json["generation"] == 1


def test_two_patches_that_read_the_same_device(server):
    """If two clients change what they have read, only one of them succeeds."""
    tag = server.ask("POST", "/devices?wait=ready", spec()).headers["ETag"]
    headers = dict(MERGE, **{"If-Match": tag})
    assert server.ask("PATCH", "/devices/data", {"labels": {"n": "1"}}, headers).status == 200
    check_problem(server.ask("PATCH", "/devices/data", {"labels": {"n": "2"}}, headers), 412, "precondition-failed")


def test_patch_of_a_device_that_is_being_removed(server):
    server.tell("auto off")
    server.ask("POST", "/devices", spec())
    server.ask("DELETE", "/devices/data")
    check_problem(server.ask("PATCH", "/devices/data", {"size": "2MiB"}, MERGE), 409, "being-removed")


def test_delete(server):
    server.tell("auto off")
    server.ask("POST", "/devices", spec())
    answer = server.ask("DELETE", "/devices/data")
    assert answer.status == 202 and answer.json["name"] == "data"
    assert server.ask("DELETE", "/devices/data").status == 202, "once more is fine"
    check_problem(server.ask("POST", "/devices", spec()), 409, "being-removed")
    check_problem(server.ask("PUT", "/devices/data", spec(size="2MiB")), 409, "being-removed")
    check_problem(server.ask("POST", "/devices/data/recover"), 409, "not-possible-now")
    server.tell("remove data")
    check_problem(server.ask("DELETE", "/devices/data"), 404, "no-such-device")


def test_a_disk_in_use_stays(server):
    before = server.ask("POST", "/devices?wait=ready", spec(id=5)).json
    server.tell("busy 5 process 4211 (fio), mounted at /mnt")
    option = "force"
    for method, path, body in [
            ("DELETE", "/devices/data", None),
            ("DELETE", f"/devices/data?{option}=false", None),
            ("PUT", "/devices/data", spec(id=5, size="2MiB")),
            ("PUT", "/devices/data", spec(id=5, enabled=False)),
            ("PATCH", "/devices/data", {"size": "2MiB"}),
    ]:
        headers = MERGE if method == "PATCH" else None
        problem = check_problem(server.ask(method, path, body, headers), 409, "in-use")
        assert "4211 (fio)" in problem["detail"] and "/mnt" in problem["detail"]
        assert option not in problem["detail"], "no advice that takes the disk from its users"
    after = server.ask("GET", "/devices/data").json
    assert after == before
    assert server.ask("PUT", "/devices/data", spec(id=5, labels={"a": "b"})).status == 200, "needs no new disk"
    server.tell("idle")
    assert server.ask("PUT", "/devices/data?wait=ready", spec(id=5, size="2MiB")).status == 200
    server.tell("busy 5 process 7 (dd)")
    assert server.ask("DELETE", "/devices/data?force=true&wait").status == 204


def test_a_dry_run_of_a_removal_names_the_users_and_removes_nothing(server):
    before = server.ask("POST", "/devices?wait=ready", spec(id=5)).json
    foreseen = {"name": "data", "uid": before["uid"], "disk": "/dev/ublkb5", "use": "unused", "users": "", "lastCopy": False}
    for query in ("dryRun=true", "dryRun=true&force=true", "dryRun=true&wait&timeout=1s"):
        answer = server.ask("DELETE", f"/devices/data?{query}")
        assert answer.status == 200 and answer.json == foreseen
    server.tell("busy 5 process 4211 (fio), mounted at /mnt")
    used = {**foreseen, "use": "used", "users": "process 4211 (fio), mounted at /mnt"}
    problem = check_problem(server.ask("DELETE", "/devices/data?dryRun=true"), 409, "in-use")
    assert used["users"] in problem["detail"]
    answer = server.ask("DELETE", "/devices/data?dryRun=true&force=true")
    assert answer.status == 200 and answer.json == used
    assert server.ask("GET", "/devices/data").json == before
    check_problem(server.ask("DELETE", "/devices/data?dryRun=true", headers={"If-Match": '"7"'}), 412, "precondition-failed")
    check_problem(server.ask("DELETE", "/devices/none?dryRun=true"), 404, "no-such-device")
    assert server.ask("DELETE", "/devices/data?dryRun=false&force=true&wait").status == 204


def test_a_dry_run_of_the_removal_of_a_device_without_a_disk(server):
    server.ask("POST", "/devices?wait=ready", spec(id=5, enabled=False))
    server.tell("busy 5 the disk of another server")
    answer = server.ask("DELETE", "/devices/data?dryRun=true")
    assert answer.status == 200 and (answer.json["disk"], answer.json["use"]) == (None, "unused")


@pytest.mark.parametrize("usable", [True, False])
def test_a_disk_in_use_stays_before_the_first_look(tmp_path, usable):
    """After a start, and for a record that cannot be used, the status does not show the disk."""
    server = Server(tmp_path, "--sqlite")
    server.ask("POST", "/devices?wait=ready", spec(id=5))
    server.stop()
    if not usable:
        with contextlib.closing(sqlite3.connect(tmp_path / "ublkd.db")) as database:
            database.execute("UPDATE device SET spec = '{}'")
            database.commit()
    server = Server(tmp_path, "--sqlite")
    server.tell("auto off")
    server.tell("busy 5 mounted at /mnt")
    check_problem(server.ask("DELETE", "/devices/data"), 409, "in-use")
    check_problem(server.ask("PUT", "/devices/data", spec(id=5, size="2MiB")), 409, "in-use")
    check_problem(server.ask("PATCH", "/devices/data", {"size": "2MiB"}, MERGE), 409, "in-use" if usable else "not-possible-now")
    server.tell("idle")
    assert server.ask("DELETE", "/devices/data").status == 202
    server.stop()


def test_a_number_belongs_to_one_device(server):
    holder = "has-seven"
    assert server.ask("POST", "/devices", spec(holder, id=7)).status == 201
    problem = check_problem(server.ask("POST", "/devices", spec("two", id=7)), 409, "number-taken")
    assert holder in problem["detail"] and problem["errors"][0]["pointer"] == "/id"
    check_problem(server.ask("GET", "/devices/two"), 404, "no-such-device")
    assert server.ask("POST", "/devices", spec("two", id=8)).status == 201


def test_restart(server):
    before = server.ask("POST", "/devices?wait=ready", spec()).json
    answer = server.ask("POST", "/devices/data/restart")
    assert answer.status == 202 and answer.json["generation"] == before["generation"]
    answer = server.ask("POST", "/devices/data/restart?wait=ready")
    assert answer.status == 200 and answer.json["status"]["phase"] == "Live"
    check_problem(server.ask("POST", "/devices/other/restart"), 404, "no-such-device")
    check_problem(server.ask("POST", "/devices/data/restart", {}), 400, "bad-request")
    check_problem(server.ask("POST", "/devices/data/restart?wait=gone"), 400, "bad-request")
    server.ask("PUT", "/devices/data?wait=ready", spec(enabled=False))
    check_problem(server.ask("POST", "/devices/data/restart"), 409, "not-possible-now")


def test_a_worker_of_another_version_needs_a_restart(server):
    status = server.ask("POST", "/devices?wait=ready", spec()).json["status"]
    assert status["needsRestart"] is False
    server.tell("condition data NeedsRestart True OtherVersion The worker has version 1.")
    status = server.ask("GET", "/devices/data").json["status"]
    assert status["needsRestart"] is True and status["phase"] == "Live"
    assert status["conditions"][-1]["type"] == "NeedsRestart"


def test_restart_waits_for_another_worker(server):
    server.ask("POST", "/devices?wait=ready", spec())
    server.tell("auto off")
    check_problem(server.ask("POST", "/devices/data/restart?wait=ready&timeout=100ms"), 504, "timeout")


@pytest.mark.parametrize("on_crash", ["queue", "fail", "none"])
def test_a_restart_that_users_would_notice_is_refused(server, on_crash):
    server.ask("POST", "/devices?wait=ready", spec(id=5, recovery={"onCrash": on_crash}))
    server.tell("busy 5 process 4211 (fio)")
    problem = check_problem(server.ask("POST", "/devices/data/restart"), 409, "in-use")
    assert on_crash in problem["detail"] and "4211 (fio)" in problem["detail"]
    server.tell("idle")
    assert server.ask("POST", "/devices/data/restart").status == 202


def names(answer):
    assert answer.status == 200, answer.body
    return [item["name"] for item in answer.json["items"]]


def test_list_is_paged_and_filtered(server):
    assert server.ask("GET", "/devices").json == {"items": [], "revision": 0}
    for i in range(7):
        server.ask("PUT", f"/devices/d{i}", spec(f"d{i}", labels={"odd": str(i % 2), "n": str(i)}))
    everything = server.ask("GET", "/devices")
    assert names(everything) == [f"d{i}" for i in range(7)]
    assert "continue" not in everything.json and everything.json["revision"] >= 7
    page = server.ask("GET", "/devices?limit=3")
    assert names(page) == ["d0", "d1", "d2"]
    server.ask("DELETE", "/devices/d2?wait")
    page = server.ask("GET", "/devices?limit=3&continue=" + page.json["continue"])
    assert names(page) == ["d3", "d4", "d5"]
    page = server.ask("GET", "/devices?limit=3&continue=" + page.json["continue"])
    assert names(page) == ["d6"] and "continue" not in page.json
    assert names(server.ask("GET", "/devices?limit=6")) == ["d0", "d1", "d3", "d4", "d5", "d6"]
    assert "continue" not in server.ask("GET", "/devices?limit=6").json
    assert names(server.ask("GET", "/devices?label=odd=1")) == ["d1", "d3", "d5"]
    assert names(server.ask("GET", "/devices?label=odd%3D1&label=n=3")) == ["d3"]
    assert names(server.ask("GET", "/devices?label=odd=")) == []
    page = server.ask("GET", "/devices?label=odd=1&limit=1")
    assert names(page) == ["d1"]
    assert names(server.ask("GET", "/devices?label=odd=1&limit=2&continue=" + page.json["continue"])) == ["d3", "d5"]


@pytest.mark.parametrize("path", [
    "/devices?colour=red", "/devices?limit=0", "/devices?limit=1001", "/devices?limit=x", "/devices?limit=-1",
    "/devices?limit=", "/devices?limit", "/devices?limit=1&limit=2", "/devices?continue=", "/devices?continue=A",
    "/devices?label=a", "/devices?label==b", "/devices?wait=ready", "/devices?limit=%zz", "/devices?limit=%00",
    "/devices?%00=1", "/devices?limit=" + "1" * 2000, "/devices/data?wait", "/host?verbose=1", "/healthz?x",
])
def test_unknown_or_bad_parameters(server, path):
    check_problem(server.ask("GET", path), 400, "bad-request")


@pytest.mark.parametrize("method,query", [
    ("POST", "wait=gone"), ("POST", "force=true"), ("POST", "timeout=5M"),
    ("POST", "wait=ready&timeout=11min"), ("POST", "wait=ready&timeout=soon"), ("POST", "wait=ready&timeout="),
    ("PUT", "wait=yes"), ("DELETE", "wait=live"), ("DELETE", "force"), ("DELETE", "force=1"), ("DELETE", "dryRun"), ("DELETE", "dryRun=1"), ("DELETE", "timeout=1s&timeout=2s"),
])
def test_bad_parameters_change_nothing(server, method, query):
    server.ask("PUT", "/devices/data?wait=ready", spec())
    path = "/devices" if method == "POST" else "/devices/data"
    body = None if method == "DELETE" else spec("new" if method == "POST" else "data", size="4MiB")
    check_problem(server.ask(method, f"{path}?{query}", body), 400, "bad-request")
    assert [(item["name"], item["generation"]) for item in server.ask("GET", "/devices").json["items"]] == [("data", 1)]


def test_all_bad_parameters_are_named(server):
    problem = check_problem(server.ask("GET", "/devices?a=1&b=2&limit=x"), 400, "bad-request")
    assert len(problem["errors"]) == 3


def test_targets_and_schemas(server):
    targets = server.ask("GET", "/targets").json["items"]
    assert {"loop", "null"} <= {target["name"] for target in targets}
    for target in targets:
        assert target["summary"] and isinstance(target["features"], list)
        schema = server.ask("GET", target["schema"])
        assert schema.status == 200 and schema.type == "application/schema+json"
        assert schema.json["type"] == "object"
    listed = server.ask("GET", "/schemas").json["items"]
    assert "/schemas/device" in [item["path"] for item in listed]
    for item in listed:
        assert server.ask("GET", item["path"]).status == 200
    check_problem(server.ask("GET", "/schemas/targets/nothing"), 404, "no-such-resource")
    check_problem(server.ask("GET", "/schemas/..%2f..%2fetc%2fpasswd"), 404, "no-such-resource")


def test_health_and_readiness(server):
    assert server.ask("GET", "/healthz").status == 200
    assert server.ask("GET", "/readyz").status == 200
    server.tell("settled off")
    assert server.ask("GET", "/healthz").status == 200
    check_problem(server.ask("GET", "/readyz"), 503, "not-ready")


@pytest.mark.parametrize("how", ["change", "look"])
def test_a_ublkd_that_cannot_store_changes_is_not_ready(tmp_path, how):
    """The database was deleted: ublkd refused every change, and /readyz still answered 200."""
    server = Server(tmp_path, "--sqlite")
    server.ask("POST", "/devices", spec())
    assert server.ask("GET", "/readyz").status == 200
    for path in tmp_path.glob("ublkd.db*"):
        path.unlink()
    if how == "change":
        check_problem(server.ask("PUT", "/devices/data", spec(size="2MiB")), 503, "database-gone")
    else:
        server.ask("GET", "/host")
    checks = server.tell("checks")
    problem = check_problem(server.ask("GET", "/readyz"), 503, "database-gone")
    assert "ublkctl adopt --all" in problem["detail"]
    assert server.ask("GET", "/healthz").status == 200
    assert server.tell("checks") == checks  # a look can hang, and stop everything with it
    assert names(server.ask("GET", "/devices")) == ["data"]
    server.tell("settled off")
    check_problem(server.ask("GET", "/readyz"), 503, "not-ready")
    server.stop()


def test_a_full_disk_changes_nothing(server):
    server.ask("POST", "/devices?wait=ready", spec())
    before = server.ask("GET", "/devices/data").json
    server.tell("full on")
    check_problem(server.ask("POST", "/devices", spec("other")), 507, "store-full")
    check_problem(server.ask("PUT", "/devices/data", spec(size="2MiB")), 507, "store-full")
    check_problem(server.ask("DELETE", "/devices/data"), 507, "store-full")
    check_problem(server.ask("POST", "/devices/data/recover"), 507, "store-full")
    assert server.ask("GET", "/devices/data").json == before
    assert names(server.ask("GET", "/devices")) == ["data"]
    server.tell("full off")
    assert server.ask("DELETE", "/devices/data?wait").status == 204


def test_acknowledged_changes_survive_a_kill(tmp_path):
    server = Server(tmp_path, "--sqlite")
    server.ask("POST", "/devices?wait=ready", spec("one", id=3))
    server.ask("PUT", "/devices/one", spec("one", id=3, labels={"a": "b"}))
    server.ask("POST", "/devices", spec("two"))
    before = server.ask("GET", "/devices").json
    server.kill()
    server = Server(tmp_path, "--sqlite")
    assert server.started
    after = server.ask("GET", "/devices").json
    for old, new in zip(before["items"], after["items"]):
        assert [old[key] for key in ("name", "uid", "generation", "spec")] == \
               [new[key] for key in ("name", "uid", "generation", "spec")]
    assert len(after["items"]) == 2 and after["revision"] >= before["revision"]
    server.stop()


def test_texts_that_are_not_utf8_are_repaired(server):
    server.ask("POST", "/devices?wait=ready", spec(id=5))
    server.process.stdin.flush()
    server.process.stdin.buffer.write(b"busy 5 process 1 (\xff\xfe)\n")
    server.process.stdin.buffer.flush()
    assert server.process.stdout.readline() == "0\n"
    answer = server.ask("DELETE", "/devices/data")
    assert "process 1 (??)" in json.loads(answer.body.decode("utf-8"))["detail"]
