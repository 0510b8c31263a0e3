# SPDX-License-Identifier: MIT
"""Stop and start: a disk that is away until the next boot, without a change of the spec."""
from api_server import check_problem, spec

MERGE = {"Content-Type": "application/merge-patch+json"}


def test_stop_and_start(server):
    """Without a change of the spec; the device has no disk meanwhile."""
    before = server.ask("POST", "/devices?wait=ready", spec(id=5)).json
    server.tell("busy 5 mounted at /mnt")
    check_problem(server.ask("POST", "/devices/data/stop"), 409, "in-use")
    server.tell("idle")
    stopped = server.ask("POST", "/devices/data/stop?wait=ready")
    assert stopped.status == 200 and stopped.json["generation"] == before["generation"]
    assert stopped.json["status"]["phase"] == "Disabled" and stopped.json["spec"].get("enabled", True)
    assert [condition["reason"] for condition in stopped.json["status"]["conditions"]][:1] == ["Stopped"]
    assert server.ask("POST", "/devices/data/stop").status == 202  # again
    check_problem(server.ask("POST", "/devices/data/restart"), 409, "not-possible-now")
    assert server.ask("PUT", "/devices/data?wait=ready", spec(id=5, labels={"a": "b"})).json["status"]["phase"] == "Disabled"
    started = server.ask("POST", "/devices/data/start?wait=ready")
    assert started.status == 200 and started.json["status"]["phase"] == "Live"
    assert server.ask("POST", "/devices/data/start").status == 202  # changes nothing
    check_problem(server.ask("POST", "/devices/other/stop"), 404, "no-such-device")
    check_problem(server.ask("POST", "/devices/other/start"), 404, "no-such-device")
    check_problem(server.ask("POST", "/devices/data/start", {}), 400, "bad-request")


def test_who_enables_a_stopped_device_wants_its_disk(server):
    server.ask("POST", "/devices?wait=ready", spec())
    assert server.ask("POST", "/devices/data/stop?wait=ready").status == 200
    assert server.ask("PATCH", "/devices/data?wait=ready", {"enabled": False}, MERGE).status == 200
    for verb in ("stop", "start"):
        check_problem(server.ask("POST", f"/devices/data/{verb}"), 409, "not-possible-now")
    assert server.ask("PATCH", "/devices/data?wait=ready", {"enabled": True}, MERGE).json["status"]["phase"] == "Live"
