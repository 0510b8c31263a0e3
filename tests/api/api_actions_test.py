# SPDX-License-Identifier: MIT
"""/devices/NAME/actions: start, list, show, cancel. The worker's side is in tests/target and tests/kernel."""
import pytest
from api_server import check_problem, spec

LOOP = {"target": {"type": "loop", "path": "/nowhere.img"}}


def create(server, name="data", **fields):
    assert server.ask("POST", "/devices?wait=ready", {**spec(name), **LOOP, **fields}).status == 201


def start(server, body=None, name="data"):
    answer = server.ask("POST", f"/devices/{name}/actions/scrub", body)
    assert answer.status == 202, answer.body
    return answer


def items(server, name="data"):
    answer = server.ask("GET", f"/devices/{name}/actions")
    assert answer.status == 200
    return answer.json["items"]


def reasons(server):
    return [event["reason"] for event in server.ask("GET", "/events", headers={"Accept": "application/json"}).json["items"]]


def test_from_its_beginning_to_its_end(server):
    create(server)
    assert items(server) == []
    answer = start(server, {"rate": "1MiB"})
    action = answer.json
    path = answer.headers["Location"]
    assert path == f"/devices/data/actions/{action['id']}"
    assert action["state"] == "Pending" and action["verb"] == "scrub" and action["arguments"] == {"rate": "1MiB"}
    assert action["result"] is None and action["reason"] is None and action["startedAt"] is None
    assert items(server) == [action] and server.ask("GET", path).json == action
    assert reasons(server)[0] == "ActionStarted"
    server.tell("act data run")
    assert server.ask("GET", path).json["state"] == "Running"
    server.tell("act data succeed")
    action = server.ask("GET", path).json
    assert action["state"] == "Succeeded" and action["reason"] == "ActionSucceeded" and action["endedAt"]
    assert action["result"] == {"bytesRead": 4096} and action["progress"] == {"done": 4096, "total": 1 << 20}
    assert reasons(server)[0] == "ActionSucceeded"


def test_no_body_is_an_empty_object(server):
    create(server)
    assert start(server).json["arguments"] == {}


def test_one_at_a_time(server):
    create(server)
    first = start(server).json
    check_problem(server.ask("POST", "/devices/data/actions/scrub", {}), 409, "not-possible-now")
    server.tell("act data fail")
    second = start(server).json
    assert second["id"] > first["id"]
    assert [action["state"] for action in items(server)] == ["Failed", "Pending"]


def test_cancel(server):
    create(server)
    path = start(server).headers["Location"]
    answer = server.ask("DELETE", path)
    assert answer.status == 202 and answer.json["cancelRequested"]
    assert server.ask("DELETE", path).status == 202
    server.tell("act data fail")
    answer = server.ask("DELETE", path)
    assert answer.status == 200 and answer.json["state"] == "Failed"


@pytest.mark.parametrize("body, pointer", [
    ({"rate": 1}, "/rate"), ({"rate": "fast"}, "/rate"), ({"speed": 1 << 20}, "/speed"), ([], ""),
])
def test_bad_arguments(server, body, pointer):
    create(server)
    problem = check_problem(server.ask("POST", "/devices/data/actions/scrub", body), 422, "invalid-request")
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert items(server) == []


def test_unknown_actions_answer_404(server):
    create(server)
    check_problem(server.ask("GET", "/devices/none/actions"), 404, "no-such-device")
    check_problem(server.ask("POST", "/devices/none/actions/scrub"), 404, "no-such-device")
    check_problem(server.ask("POST", "/devices/data/actions/polish"), 404, "no-such-action")
    for item in ("17", "scrub", "00000000000000000000000000000000000001"):
        check_problem(server.ask("GET", f"/devices/data/actions/{item}"), 404, "no-such-action")
        check_problem(server.ask("DELETE", f"/devices/data/actions/{item}"), 404, "no-such-action")
    check_problem(server.ask("PUT", "/devices/data/actions/scrub", {}), 405, "method-not-allowed")


def test_only_a_live_device(server):
    create(server)
    server.tell("auto off")
    server.tell("status data Backoff WorkerDied It died.")
    check_problem(server.ask("POST", "/devices/data/actions/scrub"), 409, "not-possible-now")


def test_an_action_of_an_earlier_device_of_the_name(server):
    create(server)
    path = start(server).headers["Location"]
    server.tell("act data fail")
    assert server.ask("DELETE", "/devices/data?wait").status == 204
    check_problem(server.ask("GET", path), 404, "no-such-device")
    create(server)
    check_problem(server.ask("GET", path), 404, "no-such-action")
    check_problem(server.ask("DELETE", path), 404, "no-such-action")


def test_the_last_eight_are_kept(server):
    create(server)
    paths = []
    for _ in range(9):
        paths.append(start(server).headers["Location"])
        server.tell("act data succeed")
    assert [f"/devices/data/actions/{item['id']}" for item in items(server)] == paths[1:]
    check_problem(server.ask("GET", paths[0]), 404, "no-such-action")


def test_a_target_without(server):
    assert server.ask("POST", "/devices?wait=ready", spec("empty")).status == 201
    check_problem(server.ask("POST", "/devices/empty/actions/scrub"), 404, "no-such-action")


LINEAR = {"type": "linear", "child": LOOP["target"]}
MIXED = {"type": "stripe", "children": [{"type": "loop", "path": "/mixed.img"}, {"type": "linear", "child": {"type": "null"}}]}


def test_a_tree_has_what_all_of_its_targets_have(server):
    create(server, "tree", target=LINEAR)
    assert start(server, {"rate": "1MiB"}, "tree").json["verb"] == "scrub"
    create(server, "mixed", target=MIXED, size="1MiB")
    problem = check_problem(server.ask("POST", "/devices/mixed/actions/scrub"), 404, "no-such-action")
    assert "/target/children/1/child" in problem["detail"]
    check_problem(server.ask("POST", "/devices/tree/actions/powercut"), 404, "no-such-action")


def fault(**fields):
    return {"type": "fault", "child": LOOP["target"], **fields}


def test_powercut_needs_a_volatile_cache(server):
    server.tell("fault-targets allow")
    create(server, target=fault())
    problem = check_problem(server.ask("POST", "/devices/data/actions/powercut"), 404, "no-such-action")
    assert "volatileCache" in problem["detail"]


def test_powercut_of_a_target_for_tests_needs_the_setting(server):
    server.tell("fault-targets allow")
    create(server, target=fault(volatileCache=True))
    server.tell("fault-targets refuse")
    problem = check_problem(server.ask("POST", "/devices/data/actions/powercut"), 422, "invalid-request")
    assert [error["reason"] for error in problem["errors"]] == ["TestTargetNotAllowed"]
    assert items(server) == []
    server.tell("fault-targets allow")
    check_problem(server.ask("POST", "/devices/data/actions/powercut", {"seed": 0}), 422, "invalid-request")
    answer = server.ask("POST", "/devices/data/actions/powercut", {"seed": 7})
    assert answer.status == 202 and answer.json["arguments"] == {"seed": 7}


def test_the_schema_has_them(server):
    targets = {target["name"]: target for target in server.ask("GET", "/targets").json["items"]}
    names = {name: [action["name"] for action in target["actions"]] for name, target in targets.items()}
    assert names == {"fault": ["powercut", "scrub"], "linear": ["scrub"], "loop": ["scrub"], "null": [], "stripe": ["scrub"]}
    for name, actions in names.items():
        schema = server.ask("GET", f"/schemas/targets/{name}").json
        assert list(schema.get("actions", {})) == actions
    assert "rate" in schema["$defs"]["scrub"]["properties"]


def test_a_full_disk_changes_nothing(server):
    create(server)
    server.tell("full on")
    check_problem(server.ask("POST", "/devices/data/actions/scrub"), 507, "store-full")
    assert items(server) == []
    server.tell("full off")
    start(server)
