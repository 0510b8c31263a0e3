# SPDX-License-Identifier: MIT
"""HTTP itself: methods, headers, and bodies that are wrong, too large, too slow or endless."""
import itertools
import json
import os
import re
import signal
import time

import pytest

from api_server import Answer, Server, ask, check_problem, read_all, read_status, send, spec
from other_user import NEEDS_ROOT, user

BODY_MAX = 1024 * 1024


def padded(size):
    """A valid spec of exactly `size` bytes."""
    text = json.dumps(spec())
    return text[:-1] + " " * (size - len(text)) + "}"


@pytest.mark.parametrize("method,path,allow", [
    ("DELETE", "/devices", "GET, HEAD, POST, OPTIONS"), ("PATCH", "/devices", "GET, HEAD, POST, OPTIONS"),
    ("BREW", "/devices/data", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"), ("get", "/host", "GET, HEAD, OPTIONS"),
    ("GET", "/devices/data/recover", "POST, OPTIONS"), ("POST", "/host", "GET, HEAD, OPTIONS"),
    ("TRACE", "/healthz", "GET, HEAD, OPTIONS"), ("BREW", "/targets", "GET, HEAD, OPTIONS"),
])
def test_wrong_method(server, method, path, allow):
    answer = server.ask(method, path)
    check_problem(answer, 405, "method-not-allowed")
    assert answer.headers["Allow"] == allow


@pytest.mark.parametrize("data", [
    b"GARBAGE\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(32)) + b"\r\n\r\n",  # TLS
    b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    b"GET /\r\n\r\n",
])
def test_bytes_that_are_not_http_end_the_connection(server, data):
    """As docs/api.md says: with the library's answer or without; versions of the library differ."""
    raw = server.socket()
    raw.sendall(data)
    answer = read_all(raw)
    raw.close()
    assert answer == b"" or int(answer.split(b" ", 2)[1]) in (400, 505)
    assert server.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("path", [
    "/", "/nothing", "/devices/", "/devices/data/", "/devices/data/restart/x", "/devices//recover", "/devices/../host",
    "/HOST", "/host/", "/schemas/", "/schemas/device/", "/devices/%zz", "/devices/a%00b", "/devices/" + "x" * 300,
    "/devices/a%2Frecover", "/openapi.json/", "/openapi",
])
def test_no_such_path(server, path):
    assert server.ask("GET", path).status == 404
    assert server.ask("GET", path).json["status"] == 404


@pytest.mark.parametrize("method, path", [
    ("GET", "/devices/"), ("DELETE", "/devices/data/"), ("POST", "/devices/data/recover/"), ("GET", "/host/"),
    ("POST", "/host/"), ("GET", "/openapi.json/"),
])
def test_a_trailing_slash_is_named(server, method, path):
    """The answer says what to type; the device need not exist."""
    problem = check_problem(server.ask(method, path), 404, "no-such-resource")
    assert path[:-1] + "." in problem["detail"].split()


def test_a_path_that_is_wrong_also_without_its_slash_is_not_named(server):
    assert "/nothing" not in check_problem(server.ask("GET", "/nothing/"), 404, "no-such-resource")["detail"]


@pytest.mark.parametrize("method, path, body", [
    ("GET", "/healthz", None), ("GET", "/readyz", None), ("GET", "/host", None), ("GET", "/devices", None), ("GET", "/metrics", None),
    ("GET", "/openapi.json", None), ("GET", "/schemas/device", None), ("GET", "/nothing", None), ("POST", "/devices", "{"),
    ("POST", "/devices", "{}"), ("POST", "/devices", spec()),
])
def test_answers_end_with_one_newline(server, method, path, body):
    """The prompt of a shell begins a line of its own."""
    answer = server.ask(method, path, body)
    assert answer.body.endswith(b"\n") and not answer.body.endswith(b"\n\n")
    assert int(answer.headers["Content-Length"]) == len(answer.body)


@pytest.mark.parametrize("content_type, status", [("application/json", 200), ("application/merge-patch+json", 200), ("application/json-patch+json", 415)])
def test_a_patch_is_json(server, content_type, status):
    """A helper that always sends application/json can patch as well."""
    server.ask("POST", "/devices", spec())
    answer = server.ask("PATCH", "/devices/data", {"labels": {"a": "b"}}, {"Content-Type": content_type})
    assert answer.status == status
    assert server.ask("GET", "/devices/data").json["spec"].get("labels") == ({"a": "b"} if status == 200 else None)


def test_options(server):
    answer = server.ask("OPTIONS", "/devices/data")
    assert answer.status == 204 and answer.body == b""
    assert answer.headers["Allow"] == "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"
    assert answer.headers["Accept-Patch"] == "application/merge-patch+json"
    answer = server.ask("OPTIONS", "/healthz")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS" and answer.headers["Accept-Patch"] is None
    check_problem(server.ask("OPTIONS", "/nothing"), 404, "no-such-resource")


def test_head(server):
    server.ask("POST", "/devices", spec())
    for path in ("/devices/data", "/devices", "/host", "/healthz"):
        get, head = server.ask("GET", path), server.ask("HEAD", path)
        assert head.status == 200 and head.body == b""
        assert head.type == get.type and head.headers["Cache-Control"] == "no-store"
    assert server.ask("HEAD", "/devices/other").status == 404


@pytest.mark.parametrize("accept,status", [
    ("application/json", 200), ("*/*", 200), ("application/*", 200), ("text/html, application/json;q=0.5", 200),
    ("", 200), ("application/problem+json", 200), ("APPLICATION/JSON", 200), ("text/html", 406), ("image/*", 406),
    ("application/json;q=0", 406), ("application/json;q=0.0, text/plain", 406), ("application/jsonp", 406),
    ("application/json; q=0", 406), ("application/json ;\tQ=0.000", 406), ("application/json;q=0, */*", 406),
    ("application/*;q=0, application/json", 200), ("application/json;v=1;q=0.001", 200), ("*/*;q=0", 406),
    ("application/json;q=0, application/json;q=0.1", 200),
])
def test_accept(server, accept, status):
    answer = server.ask("GET", "/host", headers={"Accept": accept})
    assert answer.status == status
    if status == 406:
        check_problem(answer, 406, "not-acceptable")


def test_accept_in_several_lines(server):
    with server.socket() as raw:
        raw.sendall(b"GET /host HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nAccept: application/json\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("content_type,status", [
    ("application/json", 201), ("application/json; charset=utf-8", 201), ("Application/JSON", 201),
    ("text/plain", 415), ("application/x-www-form-urlencoded", 415), ("application/merge-patch+json", 415), ("", 415),
])
def test_content_type(server, content_type, status):
    answer = server.ask("POST", "/devices", spec(), {"Content-Type": content_type})
    assert answer.status == status
    if status == 415:
        check_problem(answer, 415, "not-json")
        assert server.ask("GET", "/devices").json["items"] == []


@pytest.mark.parametrize("body", [
    "", " ", "{", "{}}", "{} {}", "nul", "{\"a\":1,}", "{'a':1}", "[1,]", "{\"a\":01}", "{\"a\":+1}", "{\"a\":.5}",
    "{\"a\":1.}", "{\"a\":1e}", "{\"a\":1e999}", "{\"a\":NaN}", "{\"a\":\"\t\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u00\"}",
    "{\"a\":\"\\u0000\"}", "{\"name\":\"data\\u0000x\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\udc00\"}", "{\"a\":\"",
    b"{\"a\":\"\xff\"}", b"{\"a\":\"\xc0\x80\"}", b"\xef\xbb\xbf{}", b"{}\x00", b"{\"a\":\"\x00\"}",
    b"\x00" + json.dumps(spec()).encode(), json.dumps(spec()).encode() + b"\x00", json.dumps(spec()) + "x",
    "[" * 100 + "]" * 100, "{\"a\":" * 100000, "//\n{}", "{\"a\" 1}", "{1:2}",
], ids=itertools.count())
def test_malformed_json(server, body):
    problem = check_problem(server.ask("POST", "/devices", body), 400, "malformed-json")
    assert body == "" or re.search(r"[0-9]+", problem["detail"]), "it has the place"
    assert server.ask("GET", "/devices").json["items"] == []


@pytest.mark.parametrize("body", ["[]", "1", "\"text\"", "null", "true", "{}", "\n{ }\r\n\t"])
def test_json_that_is_not_a_spec(server, body):
    check_problem(server.ask("POST", "/devices", body), 422, "invalid-spec")


def test_the_same_field_twice(server):
    text = json.dumps(spec())
    check_problem(server.ask("POST", "/devices", text[:-1] + ", \"size\": \"9GiB\"}"), 422, "invalid-spec")


def test_body_of_the_largest_size(server):
    assert server.ask("POST", "/devices", padded(BODY_MAX)).status == 201


@pytest.mark.parametrize("size", [BODY_MAX + 1, 5 * BODY_MAX])
def test_body_too_large(server, size):
    answer = server.ask("POST", "/devices", padded(size))
    check_problem(answer, 413, "body-too-large")
    assert server.ask("GET", "/devices").json["items"] == []


def test_body_too_large_is_refused_before_it_is_sent(server):
    raw = server.socket()
    raw.sendall(b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n")
    data = read_all(raw)
    assert data.startswith(b"HTTP/1.1 413") and b"body-too-large" in data


def test_chunked_body(server):
    text = json.dumps(spec()).encode()
    connection = server.connect()
    connection.request("POST", "/devices", iter([text[:10], text[10:]]), {"Content-Type": "application/json"},
                       encode_chunked=True)
    assert Answer(connection.getresponse()).status == 201


def test_chunked_body_that_never_ends(server):
    raw = server.socket()
    raw.sendall(b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    sent = 0
    try:
        while sent < 64 * BODY_MAX:
            raw.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            sent += 65536
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert sent < 32 * BODY_MAX, "the server took it all"
    data = read_all(raw)
    assert data.startswith(b"HTTP/1.1 413") and b"body-too-large" in data
    server.until("connections", 0)


def test_body_that_is_never_sent(server):
    raw = server.socket()
    raw.sendall(b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    server.until("connections", 1)
    assert server.ask("GET", "/healthz").status == 200, "others are served"
    raw.close()
    server.until("connections", 0)
    assert server.ask("GET", "/devices").json["items"] == []


def test_a_request_that_comes_while_the_server_is_held_up(tmp_path):
    """The loop stands still while an idle connection's time ends and a request comes on it: it is answered."""
    idle = 1  # second: far longer than from the first answer to the stop, also on a busy machine
    server = Server(tmp_path, "--times", f"{idle * 1000},60000,60000,60000")
    connection = server.connect()
    connection.request("GET", "/healthz")
    assert Answer(connection.getresponse()).status == 200
    since = time.monotonic()
    os.kill(server.process.pid, signal.SIGSTOP)
    server.process.stdin.write("hold\n")
    server.process.stdin.flush()
    time.sleep(max(0, since + 2 * idle - time.monotonic()))  # the deadline is a time
    os.kill(server.process.pid, signal.SIGCONT)
    assert server.process.stdout.readline() == "0\n"
    connection.request("GET", "/healthz")
    server.tell("go on")
    assert Answer(connection.getresponse()).status == 200
    server.stop()


def test_a_request_line_that_comes_in_drips_has_an_end(tmp_path):
    server = Server(tmp_path, "--times", "300,300,60000,60000")
    raw = server.socket()
    dripped = 0
    try:
        for dripped in range(1000):
            raw.sendall(b"G")
            time.sleep(0.02)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert dripped < 500
    server.until("connections", 0)
    server.stop()


@pytest.mark.parametrize("text", [
    b"hello\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"GET /host HTTP/1.1\r\n\r\n", b"GET /host HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200000 + b"\r\n\r\n",
    b"GET /" + b"y" * 200000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST /devices HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
], ids=itertools.count())
def test_text_that_is_not_http(server, text):
    raw = server.socket()
    try:
        raw.sendall(text)
        raw.shutdown(1)
    except (BrokenPipeError, ConnectionResetError):
        pass
    data = read_all(raw)
    assert data == b"" or 400 <= int(data.split(b" ", 2)[1]) < 600
    assert server.ask("GET", "/healthz").status == 200
    server.until("connections", 0)


def test_several_requests_on_one_connection(server):
    connection = server.connect()
    for i in range(20):
        assert ask(connection, "PUT", f"/devices/d{i}", spec(f"d{i}")).status == 201
        assert ask(connection, "PUT", "/devices/bad", "{").status == 400
        assert ask(connection, "GET", f"/devices/d{i}").status == 200
        assert ask(connection, "GET", "/nothing").status == 404
    assert server.tell("connections") == 1


def test_refused_requests_leave_the_connection_usable(server):
    connection = server.connect()
    assert ask(connection, "POST", "/nothing", padded(BODY_MAX)).status == 404
    assert ask(connection, "POST", "/devices", padded(1000), {"Content-Type": "text/plain"}).status == 415
    assert ask(connection, "GET", "/healthz").status == 200
    assert server.tell("connections") == 1


def test_pipelined_requests(server):
    body = json.dumps(spec()).encode()
    raw = server.socket()
    raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                b"POST /devices?wait=ready HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body +
                b"GET /devices/data HTTP/1.1\r\nHost: x\r\n\r\n"
                b"DELETE /devices/data?wait HTTP/1.1\r\nHost: x\r\n\r\n"
                b"GET /devices/data HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    data = read_all(raw)
    lines = [line for line in data.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert [int(line.split(b"HTTP/1.1 ")[1][:3]) for line in lines] == [200, 201, 200, 204, 404]


def test_http_1_0(server):
    raw = server.socket()
    raw.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
    assert read_status(raw) == 200


def test_a_hundred_idle_connections(server):
    idle = [server.socket() for _ in range(100)]
    server.until("connections", 100)
    assert server.ask("GET", "/healthz").status == 200
    for raw in idle:
        raw.close()
    server.until("connections", 0)


def test_at_the_connection_limit_clients_wait(server):
    busy = []
    for _ in range(512):  # each is busy before the next one comes, or the server might take it for idle
        busy.append(server.socket())
        busy[-1].sendall(b"GET /healthz HTTP/1.1\r\n")
    server.until("connections", 512)
    late = server.connect()
    send(late, "GET", "/healthz")
    busy.pop().close()
    assert late.getresponse().status == 200
    for raw in busy:
        raw.close()


def test_at_the_connection_limit_an_idle_client_makes_room(server):
    idle = [server.socket() for _ in range(520)]
    server.until("connections", 511)
    assert server.ask("GET", "/healthz").status == 200
    assert read_all(idle[0]) == b"", "who has been idle for longest"
    for raw in idle:
        raw.close()


AS_OTHER_USER = """
assert ask(UnixConnection(path), "GET", "/devices").status == 200
assert ask(UnixConnection(path), "GET", "/host").status == 200
for method, target, body in (("POST", "/devices", spec()), ("PUT", "/devices/data", spec()),
                             ("DELETE", "/devices/data", None), ("POST", "/devices/data/recover", None)):
    problem = check_problem(ask(UnixConnection(path), method, target, body), 403, "forbidden")
    assert "65534" in problem["detail"]
watchers, answers = [UnixConnection(path) for _ in range(9)], []
for watcher in watchers:
    watcher.request("GET", "/events")
    answers.append(watcher.getresponse().status)
assert answers == 8 * [200] + [503], answers
for watcher in watchers:
    watcher.close()
idle = [UnixConnection(path) for _ in range(600)]
for connection in idle:
    connection.connect()
print("done", flush=True)
sys.stdin.read()
"""


@NEEDS_ROOT
def test_other_users_may_only_read_and_cannot_lock_out_root(open_server):
    server = open_server
    with user(server, AS_OTHER_USER) as child:
        assert child.stdout.readline() == "done\n"
        server.until("connections", 16)
        assert server.ask("GET", "/devices").json["items"] == []
        assert server.ask("POST", "/devices", spec()).status == 201
