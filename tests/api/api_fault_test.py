# SPDX-License-Identifier: MIT
"""The target for tests: refused unless a setting of ublkd allows it, and its rules change under a disk."""
from api_server import Server, check_problem, spec

MERGE = {"Content-Type": "application/merge-patch+json"}
FAULT = {"type": "fault", "child": {"type": "null"}}


def _of(target):
    return {"name": "data", "size": "1MiB", "target": target}


def test_it_is_refused_by_default_wherever_it_is_in_a_tree(server):
    assert server.ask("POST", "/devices", spec("good")).status == 201
    below = {"type": "linear", "child": FAULT}
    for target, pointer in ((FAULT, "/target/type"), (below, "/target/child/type")):
        for method, path, body in (("POST", "/devices", _of(target)),
                                   ("PUT", "/devices/data", _of(target)),
                                   ("PATCH", "/devices/good", {"target": {"path": None, **target}})):
            problem = check_problem(server.ask(method, path, body, MERGE if method == "PATCH" else None), 422, "invalid-spec")
            assert [(fault["pointer"], fault["reason"]) for fault in problem["errors"]] == [(pointer, "TestTargetNotAllowed")]
    assert [item["name"] for item in server.ask("GET", "/devices").json["items"]] == ["good"]


def test_targets_say_which_are_for_tests(server):
    tests = {item["name"]: item["forTests"] for item in server.ask("GET", "/targets").json["items"]}
    assert tests == {"fault": True, "linear": False, "loop": False, "null": False, "stripe": False}


def test_rules_change_and_are_in_the_statistics(tmp_path):
    server = Server(tmp_path, "--allow-fault-target", "yes")
    rules = [{"action": "error", "op": "write", "nth": 3}, {"action": "die", "times": 1, "moment": "after"}]
    assert server.ask("POST", "/devices", _of({**FAULT, "rules": rules})).status == 201
    seen = server.ask("GET", "/devices/data/stats").json["fault"]
    assert seen == {"seed": 0, "rules": [{"action": action, "matched": 0, "fired": 0} for action in ("error", "die")]}
    assert server.ask("PATCH", "/devices/data", {"target": {"rules": rules[:1]}}, MERGE).status == 200
    assert [rule["action"] for rule in server.ask("GET", "/devices/data/stats").json["fault"]["rules"]] == ["error"]
    server.stop()


def test_without_the_setting_the_rules_of_a_device_that_is_there_can_end(tmp_path):
    """A request that hangs keeps its disk from being stopped until the rules change."""
    server = Server(tmp_path, "--sqlite", "--allow-fault-target", "yes")
    assert server.ask("POST", "/devices", _of({**FAULT, "rules": [{"action": "hang"}]})).status == 201
    server.stop()
    server = Server(tmp_path, "--sqlite")
    assert server.ask("PATCH", "/devices/data", {"target": {"rules": []}}, MERGE).status == 200
    assert server.ask("GET", "/devices/data").json["spec"]["target"]["rules"] == []
    check_problem(server.ask("POST", "/devices", {**_of(FAULT), "name": "other"}), 422, "invalid-spec")
    for change in ({"volatileCache": True}, {"child": {"type": "linear", "child": {"type": "null"}}}):
        check_problem(server.ask("PATCH", "/devices/data", {"target": change}, MERGE), 422, "invalid-spec")
    assert server.ask("GET", "/devices/data").json["spec"]["target"]["child"] == {"type": "null"}
    server.stop()


def test_each_fault_of_the_rules_is_named(tmp_path):
    server = Server(tmp_path, "--allow-fault-target", "yes")
    rules = [{"op": "read"}, {"action": "short", "op": "flush"}, {"action": "error", "delay": "1s"},
             {"action": "die", "moment": "after", "await": 2}]
    fields = [("MissingField", "action"), ("ActionWithoutData", "op"), ("FieldOfAnotherAction", "delay"), ("FieldOfAnotherAction", "await")]
    for rule, (reason, field) in zip(rules, fields):
        problem = check_problem(server.ask("POST", "/devices", _of({**FAULT, "rules": [rule]})), 422, "invalid-spec")
        assert [(fault["pointer"], fault["reason"]) for fault in problem["errors"]] == [(f"/target/rules/0/{field}", reason)]
    server.stop()


def test_a_volatile_cache_may_be_below_other_targets(tmp_path):
    server = Server(tmp_path, "--allow-fault-target", "yes")
    cached = {**FAULT, "volatileCache": True}
    for target in ({"type": "linear", "child": cached}, {"type": "stripe", "children": [{"type": "null"}, cached]}):
        assert server.ask("POST", "/devices", _of(target)).status == 201
        assert server.ask("DELETE", "/devices/data?wait&timeout=60s").status == 204
    problem = check_problem(server.ask("POST", "/devices", _of({"type": "stripe", "children": [FAULT, cached]})), 422, "invalid-spec")
    assert [(fault["pointer"], fault["reason"]) for fault in problem["errors"]] == [("/target/children/1/type", "SecondFaultTarget")]
    server.stop()
