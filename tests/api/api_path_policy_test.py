# SPDX-License-Identifier: MIT
"""Paths that may lead elsewhere after a reboot: --unstable-paths warn and refuse."""
from api_server import Server, check_problem

MERGE = {"Content-Type": "application/merge-patch+json"}
UNSTABLE = {"type": "loop", "path": "/dev//./sdb1"}


def test_a_path_that_may_change_is_allowed_by_default(server):
    assert server.ask("POST", "/devices", {"name": "data", "target": UNSTABLE}).status == 201
    assert server.ask("GET", "/host").json["policy"] == {"unstablePaths": "warn", "readers": "group", "readersGroup": None, "polkit": False, "administrators": None, "sandbox": "required", "socketGroup": None}


def test_a_strict_policy_refuses_a_path_that_may_change(tmp_path):
    server = Server(tmp_path, "--unstable-paths", "refuse")
    assert server.ask("GET", "/host").json["policy"] == {"unstablePaths": "refuse", "readers": "group", "readersGroup": None, "polkit": False, "administrators": None, "sandbox": "required", "socketGroup": None}
    stays = {"type": "loop", "path": "/dev/disk/by-id/wwn-1"}
    assert server.ask("POST", "/devices", {"name": "good", "target": stays}).status == 201
    for method, path, body in (("POST", "/devices", {"name": "data", "target": UNSTABLE}),
                               ("PUT", "/devices/data", {"name": "data", "target": UNSTABLE}),
                               ("PUT", "/devices/good", {"name": "good", "target": UNSTABLE}),
                               ("PATCH", "/devices/good", {"target": {"path": UNSTABLE["path"]}})):
        problem = check_problem(server.ask(method, path, body, MERGE if method == "PATCH" else None), 422, "invalid-spec")
        (fault,) = problem["errors"]
        assert (fault["pointer"], fault["reason"]) == ("/target/path", "UnstablePath")
        assert "/dev/disk/by-id" in fault["detail"]
    assert [item["name"] for item in server.ask("GET", "/devices").json["items"]] == ["good"]
    server.stop()


def test_a_device_whose_path_may_change_stays_when_the_policy_becomes_strict(tmp_path):
    """Its labels can be changed, it can be posted again, and it can get a better path."""
    stored = {"name": "data", "target": UNSTABLE, "id": 3}
    server = Server(tmp_path, "--sqlite")
    assert server.ask("POST", "/devices", stored).status == 201
    server.stop()
    server = Server(tmp_path, "--sqlite", "--unstable-paths", "refuse")
    assert server.ask("POST", "/devices", stored).status == 200
    assert server.ask("PATCH", "/devices/data", {"labels": {"a": "b"}}, MERGE).status == 200
    check_problem(server.ask("PATCH", "/devices/data", {"target": {"path": "/dev/sdc"}}, MERGE), 422, "invalid-spec")
    assert server.ask("PATCH", "/devices/data", {"target": {"path": "/dev/mapper/x"}}, MERGE).status == 200
    check_problem(server.ask("PATCH", "/devices/data", {"target": {"path": UNSTABLE["path"]}}, MERGE), 422, "invalid-spec")
    server.stop()
