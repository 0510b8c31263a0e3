# SPDX-License-Identifier: MIT
"""GET /devices/NAME/stats: from a real region, filled as a worker does it."""
from api_server import check_problem, spec

READ, WRITE, FLUSH = 0, 1, 2
OPS = {"read", "write", "flush", "discard", "writeZeroes", "other"}


def create(server, name="data"):
    assert server.ask("POST", "/devices", spec(name)).status == 201


def stats(server, name="data"):
    answer = server.ask("GET", f"/devices/{name}/stats")
    assert answer.status == 200, answer.body
    return answer.json


def test_never_served_is_all_zero(server):
    create(server)
    answer = stats(server)
    assert answer["name"] == "data" and answer["queues"] == []
    assert answer["uid"] == server.ask("GET", "/devices/data").json["uid"]
    assert set(answer["total"]["ops"]) == OPS
    for op in answer["total"]["ops"].values():
        assert op["requests"] == op["bytes"] == op["latencyNs"]["max"] == 0 and op["latencyNs"]["histogram"] == []


def test_queues_and_their_sum(server):
    create(server)
    server.tell(f"count data 0 {READ} 98 4096 10000")
    server.tell(f"count data 1 {READ} 2 8192 5000000")
    server.tell(f"count data 1 {FLUSH} 7 0 100")
    answer = stats(server)
    first, second = answer["queues"]
    assert first["ops"]["read"]["requests"] == 98 and second["ops"]["read"]["requests"] == 2
    assert (first["rounds"], second["rounds"], answer["total"]["rounds"]) == (1, 2, 3)
    assert (first["unregistered"], second["unregistered"], answer["total"]["unregistered"]) == (2, 4, 6)
    assert (first["nudges"], second["nudges"], answer["total"]["nudges"]) == (3, 6, 9)
    read = answer["total"]["ops"]["read"]
    assert read["requests"] == 100 and read["bytes"] == 98 * 4096 + 2 * 8192 and read["errors"] == 0
    latency = read["latencyNs"]
    assert latency["sum"] == 98 * 10000 + 2 * 5000000
    assert abs(latency["p50"] - 10000) < 330 and abs(latency["p999"] - 5000000) < 165000
    assert [count for _, _, count in latency["histogram"]] == [98, 2]
    for (start, end, _), ns in zip(latency["histogram"], (10000, 5000000)):
        assert start <= ns < end <= start * 17 // 16 + 64
    assert answer["total"]["ops"]["flush"]["requests"] == 7
    assert answer["total"]["ops"]["write"]["requests"] == 0


def test_other_devices_have_their_own(server):
    create(server)
    create(server, "other")
    server.tell(f"count data 0 {WRITE} 1 512 1000")
    assert stats(server, "other")["queues"] == []


def test_no_such_device(server):
    check_problem(server.ask("GET", "/devices/none/stats"), 404, "no-such-device")


def test_counters_of_another_version(server):
    create(server)
    server.tell(f"count data 0 {WRITE} 1 512 1000")
    server.tell("stats-error 71")  # EPROTO
    problem = check_problem(server.ask("GET", "/devices/data/stats"), 409, "not-possible-now")
    assert "POST /devices/data/restart" in problem["detail"]


def test_unreadable_counters(server):
    create(server)
    server.tell(f"count data 0 {WRITE} 1 512 1000")
    server.tell("stats-error 5")
    check_problem(server.ask("GET", "/devices/data/stats"), 500, "internal")


def test_io_errors_in_the_status(server):
    server.ask("POST", "/devices?wait=ready", spec())
    assert server.ask("GET", "/devices/data").json["status"]["ioErrors"] == []
    server.tell("failed data 1 28 17 1048576 4096")
    assert server.ask("GET", "/devices/data").json["status"]["ioErrors"] == [
        {"op": "write", "count": 17, "errno": "ENOSPC", "at": "2023-11-14T22:13:20.123Z", "offset": 1048576, "length": 4096}]
