# SPDX-License-Identifier: MIT
"""Devices whose image ublkd makes in a pool: the path is chosen once, and kept."""
import re

import pytest
from api_server import Server, check_problem
from server_fixture import write_policy

MERGE = {"Content-Type": "application/merge-patch+json"}
POOL = {"type": "loop", "pool": "fast"}
SPEC = {"name": "data", "target": POOL, "size": "1MiB"}
OTHER = "slow"


def start(directory, *names):
    """A server whose policy has pools of these names."""
    pools = {name: {"directory": f"/srv/{name}"} for name in names}
    server = Server(directory, "--sqlite", *write_policy(directory, pools=pools))
    assert server.started
    return server


@pytest.fixture
def server(tmp_path):
    server = start(tmp_path, "fast", OTHER)
    yield server
    server.stop()


def faults(problem):
    return [(fault["pointer"], fault["reason"]) for fault in problem["errors"]]


def path_of(server, name="data"):
    return server.ask("GET", f"/devices/{name}").json["spec"]["target"]["path"]


def test_a_new_device_gets_the_path_of_its_image(server):
    answer = server.ask("POST", "/devices", SPEC)
    assert answer.status == 201
    target = answer.json["spec"]["target"]
    assert re.fullmatch(r"/srv/fast/data-[0-9a-f]{16}\.img", target.pop("path")) and target == POOL


def test_a_repeated_request_changes_nothing(server):
    first = server.ask("POST", "/devices", SPEC).json
    for answer in (server.ask("POST", "/devices", SPEC), server.ask("PUT", "/devices/data", SPEC),
                   server.ask("PUT", "/devices/data", first["spec"]), server.ask("PATCH", "/devices/data", {}, MERGE)):
        assert answer.status == 200
        assert (answer.json["generation"], answer.json["spec"]["target"]["path"]) == (1, first["spec"]["target"]["path"])


def test_a_patch_keeps_the_path(server):
    server.ask("PUT", "/devices/data", SPEC)
    path = path_of(server)
    for patch in ({"labels": {"a": "b"}}, {"target": {"keep": True}}, {"target": {"path": None}}, {"size": "2MiB"}):
        assert server.ask("PATCH", "/devices/data", patch, MERGE).status == 200
        assert path_of(server) == path


@pytest.mark.parametrize(("target", "fault"), [
    ({**POOL, "path": "/srv/fast/mine.img"}, ("/target/path", "PathOfPool")),
    ({**POOL, "pool": "other"}, ("/target/pool", "UnknownPool")),
    ({**POOL, "offset": 512}, ("/target/offset", "OffsetInPool")),
], ids=["path", "unknown", "offset"])
def test_a_new_device_cannot_choose(server, target, fault):
    for method, path in (("POST", "/devices"), ("PUT", "/devices/data")):
        problem = check_problem(server.ask(method, path, {**SPEC, "target": target}), 422, "invalid-spec")
        assert faults(problem) == [fault]
        assert OTHER not in problem["errors"][0]["detail"]  # which pools there are is not for everyone
    assert server.ask("GET", "/devices").json["items"] == []


@pytest.mark.parametrize("target", [{"type": "loop", "pool": "slow"}, {"type": "loop", "path": "/srv/f"}, {"type": "null"}],
                         ids=["another pool", "a path", "another target"])
def test_no_change_leaves_an_image_behind(server, target):
    server.ask("POST", "/devices", SPEC)
    changed = {**SPEC, "target": target}
    problem = check_problem(server.ask("PUT", "/devices/data", changed), 409, "not-possible-now")
    assert faults(problem) == [("/target/pool", "ImageLeftBehind")]
    check_problem(server.ask("POST", "/devices", changed), 409, "name-taken")


def test_the_path_of_the_image_cannot_be_changed(server):
    server.ask("POST", "/devices", SPEC)
    problem = check_problem(server.ask("PATCH", "/devices/data", {"target": {"path": "/srv/fast/x.img"}}, MERGE), 422, "invalid-spec")
    assert faults(problem) == [("/target/path", "PathOfPool")]


def test_a_file_of_a_client_does_not_become_an_image(server):
    server.ask("POST", "/devices", {"name": "data", "target": {"type": "loop", "path": "/srv/f"}})
    for target in (POOL, {**POOL, "path": "/srv/f"}):
        problem = check_problem(server.ask("PUT", "/devices/data", {**SPEC, "target": target}), 409, "not-possible-now")
        assert faults(problem) == [("/target/pool", "NoImage")]


def test_a_device_outlives_the_name_of_its_pool(tmp_path):
    server = start(tmp_path, "fast")
    server.ask("POST", "/devices", SPEC)
    path = path_of(server)
    server.stop()
    server = start(tmp_path)
    assert server.ask("PUT", "/devices/data", {**SPEC, "labels": {"a": "b"}}).status == 200
    assert path_of(server) == path
    check_problem(server.ask("POST", "/devices", {**SPEC, "name": "other"}), 422, "invalid-spec")
    server.stop()
