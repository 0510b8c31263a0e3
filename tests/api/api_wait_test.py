# SPDX-License-Identifier: MIT
"""?wait: the answer is held until the device is ready or gone, or until it is clear that it will not be."""
import json
import threading
import time

import pytest

from api_server import DEADLINE, Answer, check_problem, read_all, send, spec


@pytest.fixture
def manual(server):
    server.tell("auto off")
    return server


def begin(server, method, path, body=None):
    """Send a request that will wait, and return its connection once the server holds it."""
    before = server.tell("waits")
    connection = server.connect()
    send(connection, method, path, body)
    server.until("waits", before + 1)
    return connection


def end(connection):
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def test_a_timeout_alone_says_to_wait(server):
    assert server.ask("POST", "/devices?timeout=20s", spec()).json["status"]["phase"] == "Live"
    assert server.ask("PUT", "/devices/data?timeout=20s", spec(size="2MiB")).json["status"]["phase"] == "Live"
    server.tell("auto off")
    for method, path, body in (("PUT", "", spec(size="3MiB")), ("PATCH", "", {"size": "4MiB"}), ("POST", "/restart", None), ("POST", "/recover", None),
                               ("DELETE", "", None)):
        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None
        answer = server.ask(method, f"/devices/data{path}?timeout=0", body, headers)
        check_problem(answer, 504, "timeout")


@pytest.mark.parametrize("wait", ["wait", "wait=", "wait=ready"])
def test_each_spelling_on_each_route(manual, wait):
    """All routes that change a device wait with any of them, so no client has to look up which one takes which."""
    def ready(connection):
        manual.tell("status data Live Live It serves.")
        return end(connection).status

    assert ready(begin(manual, "POST", f"/devices?{wait}", spec())) == 201
    for method, path, body in (("PUT", "", spec(size="2MiB")), ("PATCH", "", {"size": "3MiB"}), ("POST", "/restart", None)):
        assert ready(begin(manual, method, f"/devices/data{path}?{wait}", body)) == 200
    connection = begin(manual, "DELETE", f"/devices/data?{wait}")
    manual.tell("remove data")
    assert end(connection).status == 204


def test_a_removal_waits_until_the_device_is_gone(manual):
    manual.ask("POST", "/devices", spec())
    connection = begin(manual, "DELETE", "/devices/data?wait=gone")
    manual.tell("remove data")
    assert end(connection).status == 204
    assert manual.ask("GET", "/devices/data").status == 404


def test_ready(manual):
    connection = begin(manual, "POST", "/devices?wait=ready&timeout=10m", spec())
    assert manual.ask("GET", "/devices/data").json["status"]["phase"] == "Pending", "others are served meanwhile"
    manual.tell("status data Starting Starting It starts.")
    manual.tell("status data Live Live It serves.")
    answer = end(connection)
    assert answer.status == 201 and answer.headers["ETag"].startswith('"1.') and answer.headers["Location"] == "/devices/data"
    status = answer.json["status"]
    assert status["phase"] == "Live" and status["observedGeneration"] == 1 and status["device"] == "/dev/ublkb0"
    assert status["links"] == ["/dev/ublk/by-name/data"] and status["conditions"][0]["status"] == "True"
    assert manual.tell("waits") == 0
    assert manual.ask("POST", "/devices?wait=ready", spec()).status == 200, "ready already"


def test_ready_for_the_new_generation_only(manual):
    manual.ask("POST", "/devices", spec())
    manual.tell("status data Live Live It serves.")
    connection = begin(manual, "PUT", "/devices/data?wait=ready", spec(size="2MiB"))
    manual.tell("status data Live Live It serves.")
    answer = end(connection)
    assert answer.status == 200 and answer.json["status"]["observedGeneration"] == 2


@pytest.mark.parametrize("phase", ["Backoff", "Failed"])
def test_a_fault_that_only_opening_shows(manual, phase):
    connection = begin(manual, "POST", "/devices?wait=ready", spec())
    cause = "The file /x is missing."
    manual.tell(f"status data {phase} BackingFileMissing {cause} | The next try is in 4 s.")
    problem = check_problem(end(connection), 422, "cannot-start")
    assert problem["reason"] == "BackingFileMissing" and cause in problem["detail"]
    status = problem["device"]["status"]
    assert (status["cause"], status["attempts"]) == (cause, 2)
    assert status["nextTryAt"] == "2023-11-14T22:13:20.123Z"
    assert manual.ask("GET", "/devices/data").status == 200, "the record stays"
    manual.tell("status data Live Live It serves.")
    assert manual.ask("POST", "/devices?wait=ready", spec()).status == 200


@pytest.mark.parametrize("method, path", [("POST", "/devices?wait=ready"), ("PUT", "/devices/data?wait=ready")])
@pytest.mark.parametrize("phase, reason", [("Backoff", "BackingFileMissing"), ("Live", "CannotGrow")])
def test_a_repeated_request_waits_for_the_next_attempt(manual, method, path, phase, reason):
    """The same spec again: the result of the last attempt is known, and the client asks for that of this one."""
    manual.ask("POST", "/devices", spec())
    manual.tell(f"status data {phase} {reason} As it was.")
    before = manual.ask("GET", "/devices/data").json
    connection = begin(manual, method, path, spec())
    assert manual.tell("waits") == 1
    manual.tell("status data Live Live It serves.")
    answer = end(connection)
    assert answer.status == 200 and answer.json["generation"] == before["generation"]
    manual.tell(f"status data {phase} {reason} As it was.")
    connection = begin(manual, method, path, spec())
    assert manual.tell("waits") == 1
    message = "It was tried again."
    manual.tell(f"status data {phase} {reason} {message}")
    assert message in check_problem(end(connection), 422, "cannot-start")["detail"]


def test_a_wait_for_a_recovery_ignores_earlier_failures(manual):
    manual.ask("POST", "/devices", spec())
    for phase, reason in (("Failed", "WaitsForRecover"), ("Backoff", "BackingFileMissing"), ("Quiesced", "WaitsForRecover")):
        manual.tell(f"status data {phase} {reason} It waits.")
        connection = begin(manual, "POST", "/devices/data/recover?wait=ready")
        manual.tell("status data Backoff BackingFileMissing It is still missing.")
        assert manual.tell("waits") == 1
        manual.tell("status data Live Live It serves.")
        answer = end(connection)
        assert answer.status == 200 and answer.json["status"]["phase"] == "Live"
    assert manual.ask("POST", "/devices/data/recover?wait=ready").status == 200
    manual.tell("status data Live CannotGrow It serves as before.")
    assert manual.ask("POST", "/devices/data/recover?wait=ready").status == 200
    message = "It is missing again."
    manual.tell(f"status data Backoff BackingFileMissing {message}")
    problem = check_problem(manual.ask("POST", "/devices/data/recover?wait=ready&timeout=10ms"), 504, "timeout")
    assert message in problem["detail"]


def test_a_disk_in_service_does_not_fail_the_wait(manual):
    connection = begin(manual, "POST", "/devices?wait=ready", spec())
    sentence = "Serving as before; the file ends at 1 MiB."
    manual.tell(f"status data Live CannotGrow {sentence}")
    assert check_problem(end(connection), 422, "cannot-start")["detail"] == sentence


def test_a_transient_failure_does_not_end_the_wait(manual):
    connection = begin(manual, "POST", "/devices?wait=ready", spec())
    manual.tell("status data Backoff WorkerDied The worker died.")
    assert manual.tell("waits") == 1
    manual.tell("status data Live Live It serves.")
    assert end(connection).status == 201


def test_timeout_says_why(manual):
    problem = check_problem(manual.ask("POST", "/devices?wait=ready&timeout=10ms", spec()), 504, "timeout")
    assert problem["reason"] == "Pending" and "Pending" in problem["detail"]
    message = "The worker died."
    manual.tell(f"status data Backoff WorkerDied {message}")
    problem = check_problem(manual.ask("POST", "/devices?wait=ready&timeout=0", spec()), 504, "timeout")
    assert problem["reason"] == "WorkerDied" and message in problem["detail"]
    assert manual.ask("GET", "/devices/data").status == 200, "the request stays in force"
    check_problem(manual.ask("DELETE", "/devices/data?wait&timeout=1ms"), 504, "timeout")
    check_problem(manual.ask("POST", "/devices", spec()), 409, "being-removed")


def test_gone(manual):
    manual.ask("POST", "/devices", spec())
    connection = begin(manual, "DELETE", "/devices/data?wait")
    second = begin(manual, "DELETE", "/devices/data?wait=&timeout=1min")
    manual.tell("status data Stopping Deleting It is being removed.")
    assert manual.tell("waits") == 2
    manual.tell("remove data")
    for waiting in (connection, second):
        answer = end(waiting)
        assert answer.status == 204 and answer.body == b""


def test_removed_while_waited_for(manual):
    connection = begin(manual, "POST", "/devices?wait=ready", spec())
    manual.ask("DELETE", "/devices/data")
    check_problem(end(connection), 409, "being-removed")


def test_a_new_device_of_the_same_name_is_another_one(manual):
    manual.ask("POST", "/devices", spec())
    connection = begin(manual, "DELETE", "/devices/data?wait")
    manual.tell("remove data")
    manual.ask("POST", "/devices", spec())
    assert end(connection).status == 204


def test_disabled_is_ready_when_it_is_disabled(manual):
    connection = begin(manual, "POST", "/devices?wait=ready", spec(enabled=False))
    manual.tell("status data Disabled Disabled It is disabled.")
    answer = end(connection)
    assert answer.status == 201 and answer.json["status"]["phase"] == "Disabled"
    assert answer.json["status"]["device"] is None and answer.json["status"]["links"] == []


def test_a_waiting_client_that_leaves_is_freed(manual):
    connections = [begin(manual, "PUT", f"/devices/d{i}?wait=ready", spec(f"d{i}")) for i in range(10)]
    for connection in connections:
        connection.close()
    manual.until("waits", 0)
    manual.until("connections", 0)
    assert len(manual.ask("GET", "/devices").json["items"]) == 10


def test_a_client_that_half_closes_gets_its_answer(manual):
    body = json.dumps(spec()).encode()
    raw = manual.socket()
    raw.sendall(b"POST /devices?wait=ready HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
    raw.shutdown(1)
    manual.until("waits", 1)
    manual.tell("status data Live Live It serves.")
    assert read_all(raw).startswith(b"HTTP/1.1 201")


def test_many_wait_for_one(manual):
    connections = [begin(manual, "POST", "/devices?wait=ready", spec()) for _ in range(50)]
    manual.tell("status data Live Live It serves.")
    assert sorted(end(connection).status for connection in connections) == [200] * 49 + [201]


def test_the_server_ends_while_some_wait(manual):
    connections = [begin(manual, "PUT", f"/devices/d{i}?wait=ready", spec(f"d{i}")) for i in range(5)]
    manual.stop()  # the sanitizers look for what is left
    for connection in connections:
        connection.close()


def test_many_threads_create_and_remove(server):
    failures = []

    def work(index):
        for turn in range(10):
            for method, path, body, status in (
                    ("PUT", f"/devices/d{index}?wait=ready", spec(f"d{index}"), 201),
                    ("PUT", f"/devices/d{index}?wait=ready", spec(f"d{index}", size=f"{turn + 2}MiB"), 200),
                    ("DELETE", f"/devices/d{index}?wait", None, 204)):
                answer = server.ask(method, path, body)
                if answer.status != status:
                    failures.append((method, path, answer.status, answer.body))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert server.ask("GET", "/devices").json["items"] == []


def test_a_slow_forced_removal_names_the_openers(server):
    assert server.ask("POST", "/devices?wait=ready", spec(id=0)).status == 201
    server.tell("auto off")
    users = "fio (pid 7)"
    server.tell(f"busy 0 {users}")

    def detail():
        answer = server.ask("DELETE", "/devices/data?wait&force=true&timeout=50ms")
        return check_problem(answer, 504, "timeout")["detail"]

    end_by = time.monotonic() + DEADLINE
    while users not in (found := detail()):  # on a busy machine the search takes longer than the answer waits for it
        assert time.monotonic() < end_by, found
    assert "/dev/ublkb0" in found
    server.tell("idle")
    assert users not in detail()


@pytest.fixture
def slow_host(server):
    """The look at the host does not end by itself, as if the driver did not answer."""
    server.tell("look slow")
    assert server.ask("POST", "/devices?wait=ready", spec()).status == 201
    return server


def test_a_slow_look_at_the_host_does_not_end_the_manager_that_has_a_device(slow_host):
    answer = end(begin(slow_host, "GET", "/host"))
    assert answer.status == 200 and answer.json["limits"]["devices"] > 0
    assert slow_host.tell("waits") == 0
    assert slow_host.ask("GET", "/devices/data").json["status"]["phase"] == "Live"


def begin_to_look(server, count):
    """Clients that wait for the look at the host. The server answers after two seconds in any case."""
    before = server.tell("waits")
    connections = [server.connect() for _ in range(count)]
    for connection in connections:
        send(connection, "GET", "/host")
    server.until("waits", before + count)
    return connections


def test_a_slow_look_at_the_host_is_answered_when_it_ends(slow_host):
    slow_host.tell("auto off")
    removal = begin(slow_host, "DELETE", "/devices/data?wait")
    connections = begin_to_look(slow_host, 3)
    slow_host.tell("status data Stopping Deleting It is being removed.")
    assert slow_host.tell("waits") == 4
    slow_host.tell("remove data")
    assert slow_host.tell("waits") == 3, "other waits end meanwhile"
    slow_host.tell("looked")
    assert [end(connection).status for connection in connections] == [200] * 3
    assert end(removal).status == 204


def test_a_slow_look_at_the_host_beside_waits_of_every_kind(slow_host):
    slow_host.tell("auto off")
    host = begin(slow_host, "GET", "/host")
    for method, path, body in (("PUT", "?wait=ready&timeout=1ms", spec(size="2MiB")), ("POST", "/recover?timeout=1ms", None),
                               ("DELETE", "?wait&timeout=1ms", None)):
        check_problem(slow_host.ask(method, f"/devices/data{path}", body), 504, "timeout")
    assert end(host).status == 200


def test_clients_that_leave_during_a_slow_look_at_the_host(slow_host):
    for connection in begin_to_look(slow_host, 3):
        connection.close()
    slow_host.until("waits", 0)
    slow_host.tell("looked")
    slow_host.until("connections", 0)


def test_the_server_ends_during_a_slow_look_at_the_host(slow_host):
    connection = begin(slow_host, "GET", "/host")
    slow_host.stop()
    connection.close()
