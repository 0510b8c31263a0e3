# SPDX-License-Identifier: MIT
"""A process of its own searches for the openers of a disk, while the server continues. Here that process stops itself
(SIGSTOP) at its start, until the test resumes it."""
import contextlib
import os
import pathlib
import re
import signal
import time

import pytest

from api_server import DEADLINE, Answer, Server, check_problem, send, spec

MERGE = {"Content-Type": "application/merge-patch+json"}
HARMLESS = {"onCrash": "none"}  # with it a restart is a removal

# Requests that need the openers of the disk: method, path, body.
OPTION = "force"  # takes a disk from its users: no answer advises it
QUESTIONS = {
    "delete": ("DELETE", "/devices/data", None),
    "replace": ("PUT", "/devices/data", spec(id=5, recovery=HARMLESS, size="2MiB")),
    "disable": ("PATCH", "/devices/data", {"enabled": False}),
    "restart": ("POST", "/devices/data/restart", None),
    "stop": ("POST", "/devices/data/stop", None),
}


def stopped_search(server):
    """The pid of the search process, once it has stopped."""
    children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        for pid in children.read_text().split():
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T":
                    return int(pid)
    raise AssertionError("no search stops")


def resume(server):
    os.kill(stopped_search(server), signal.SIGCONT)


def begin(server, method, path, body=None, headers=None):
    """Send a request whose answer needs a search, and return its connection."""
    connection = server.connect()
    send(connection, method, path, body, {**(MERGE if method == "PATCH" else {}), **(headers or {})})
    return connection


def begin_search(server, method="DELETE", path="/devices/data", body=None, headers=None):
    """The same, after the search for it has stopped."""
    before = server.tell("searches")
    connection = begin(server, method, path, body, headers)
    server.until("searches", before + 1)
    stopped_search(server)
    return connection


def end(connection):
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


@pytest.fixture
def held(server):
    """A live device with disk 5, and searches that stop."""
    server.ask("POST", "/devices?wait=ready", spec(id=5, recovery=HARMLESS))
    server.tell("stop on")
    return server


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_other_clients_are_served_during_a_search(held, question, used):
    if used:
        held.tell("busy 5 process 4211 (fio)")
    connection = begin_search(held, *QUESTIONS[question])
    assert held.ask("GET", "/healthz").status == 200
    assert held.ask("POST", "/devices?wait=ready", spec("other", id=6)).status == 201
    assert held.ask("DELETE", "/devices/other?force=true&wait").status == 204
    assert held.ask("GET", "/devices/data").json["generation"] == 1, "nothing was done yet"
    resume(held)
    answer = end(connection)
    if used:
        assert "process 4211 (fio)" in check_problem(answer, 409, "in-use")["detail"]
    else:
        assert answer.status == (202 if question in ("delete", "restart", "stop") else 200)
    assert held.tell("searches") == 1


def test_few_searches_for_many_removals(server):
    count = 64
    for number in range(count):
        assert server.ask("POST", "/devices?wait=ready", spec(f"disk{number}", id=number)).status == 201
    server.tell("busy 7 process 7 (dd)")
    server.tell("stop on")
    first = begin_search(server, path="/devices/disk0")
    others = [begin(server, "DELETE", f"/devices/disk{number}") for number in range(1, count)]
    server.until("connections", count)
    assert server.ask("GET", "/healthz").status == 200, "by then all have asked"
    server.tell("stop off")
    resume(server)
    assert end(first).status == 202
    assert [end(connection).status for connection in others] == [409 if number == 7 else 202 for number in range(1, count)]
    assert server.tell("searches") == 2
    assert [item["name"] for item in server.ask("GET", "/devices").json["items"]] == ["disk7"]


def test_an_answer_is_not_older_than_its_question(held):
    early = begin_search(held)
    held.tell("busy 5 process 8 (later)")
    late = begin(held, "DELETE", "/devices/data", headers={"If-Match": '"1"'})
    held.until("connections", 2)
    held.tell("auto off")
    resume(held)
    assert end(early).status == 202, "it was asked before"
    resume(held)
    assert end(late).status == 202, "it is being removed already"
    assert held.tell("searches") == 2


def test_the_request_of_a_client_that_left_does_nothing(held):
    connection = begin_search(held)
    connection.close()
    held.until("connections", 0)
    resume(held)
    assert held.ask("GET", "/devices/data").json["status"]["phase"] == "Live"
    held.tell("stop off")
    assert held.ask("DELETE", "/devices/data?wait").status == 204, "the next question is answered as ever"


def test_the_server_ends_during_a_search(held):
    connection = begin_search(held)
    search = stopped_search(held)
    held.process.stdin.close()
    assert held.process.wait(DEADLINE) == 0
    with pytest.raises((ConnectionError, OSError)):
        connection.getresponse()
    end_by = time.monotonic() + DEADLINE
    while pathlib.Path(f"/proc/{search}/fd/3").exists():
        assert time.monotonic() < end_by, "the search outlives its server"


def test_preconditions_are_checked_after_the_search(held):
    connection = begin_search(held, headers={"If-Match": '"1"'})
    assert held.ask("PATCH", "/devices/data", {"labels": {"a": "b"}}, MERGE).status == 200
    resume(held)
    check_problem(end(connection), 412, "precondition-failed")
    assert held.ask("GET", "/devices/data").status == 200


def test_a_changed_device_needs_another_search(held):
    connection = begin_search(held)
    assert held.ask("PATCH", "/devices/data", {"labels": {"a": "b"}}, MERGE).status == 200
    resume(held)
    held.until("searches", 2)
    resume(held)
    assert end(connection).status == 202


def test_a_patch_is_merged_after_the_search(held):
    connection = begin_search(held, *QUESTIONS["disable"])
    assert held.ask("PATCH", "/devices/data", {"labels": {"a": "b"}}, MERGE).status == 200
    held.tell("stop off")
    resume(held)
    answer = end(connection)
    assert answer.status == 200
    assert answer.json["spec"]["labels"] == {"a": "b"} and answer.json["spec"]["enabled"] is False


def test_a_device_that_is_removed_during_the_search(held):
    connection = begin_search(held)
    assert held.ask("DELETE", "/devices/data?force=true&wait").status == 204
    resume(held)
    check_problem(end(connection), 404, "no-such-device")


def test_another_device_of_the_same_name(held):
    """The search of the old disk says nothing about the new disk."""
    connection = begin_search(held)
    assert held.ask("DELETE", "/devices/data?force=true&wait").status == 204
    assert held.ask("POST", "/devices?wait=ready", spec(id=6)).status == 201
    held.tell("busy 6 process 4211 (fio)")
    resume(held)
    held.until("searches", 2)
    resume(held)
    assert "/dev/ublkb6" in check_problem(end(connection), 409, "in-use")["detail"]


def test_a_removal_with_wait_searches_first_and_then_waits(held):
    held.tell("auto off")
    connection = begin_search(held, path="/devices/data?wait")
    resume(held)
    held.until("waits", 1)
    held.tell("remove data")
    assert end(connection).status == 204


def test_pipelined_requests_keep_their_order(held):
    raw = held.socket()
    raw.sendall(b"DELETE /devices/data HTTP/1.1\r\nHost: x\r\n\r\n" b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    held.until("searches", 1)
    resume(held)
    answers = b""
    while piece := raw.recv(65536):
        answers += piece
    raw.close()
    assert re.findall(rb"HTTP/1\.1 (\d+)", answers) == [b"202", b"200"]


def remove(server):
    """On a busy machine a search may take longer than the server waits for it."""
    end = time.monotonic() + DEADLINE
    while server.ask("DELETE", "/devices/data?wait").status != 204:
        assert time.monotonic() < end, "every search takes too long"


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_search_that_takes_too_long(tmp_path, question):
    server = Server(tmp_path, "--patience", "100")
    server.ask("POST", "/devices?wait=ready", spec(id=5, recovery=HARMLESS))
    server.tell("stop on")
    method, path, body = QUESTIONS[question]
    answer = server.ask(method, path, body, MERGE if method == "PATCH" else None)
    detail = check_problem(answer, 409, "in-use")["detail"]
    assert "/dev/ublkb5" in detail and "0.1 s" in detail
    assert OPTION not in detail, "no advice that takes the disk from its users"
    if method == "DELETE":
        check_problem(server.ask(method, path + "?dryRun=true"), 409, "in-use")
        foreseen = server.ask(method, path + f"?dryRun=true&{OPTION}=true").json
        assert foreseen["use"] == "unknown" and "0.1 s" in foreseen["users"]
    assert server.ask("GET", "/devices/data").json["generation"] == 1
    server.tell("stop off")
    remove(server)
    server.stop()


def test_a_wait_that_is_over_does_not_wait_for_a_search(held):
    held.tell("auto off")
    began = time.monotonic()
    answer = held.ask("DELETE", "/devices/data?wait&force=true&timeout=50ms")
    check_problem(answer, 504, "timeout")
    assert time.monotonic() - began < 8, "the search would be given up after 10 s"
    resume(held)
    assert held.ask("GET", "/healthz").status == 200


def test_a_device_that_is_removed_while_a_late_wait_looks_for_its_users(held):
    held.tell("auto off")
    connection = begin_search(held, path="/devices/data?wait&force=true&timeout=50ms")
    held.tell("remove data")
    assert end(connection).status == 204
    resume(held)
