# SPDX-License-Identifier: MIT
"""Hostile clients: requests that have two readings, that never end, that are too large or too many. The server answers
them or disconnects them, changes nothing, and continues to serve others. Server.stop() fails on a sanitizer's report.

UBLKD_SEED=N repeats the random part."""
import errno
import json
import os
import pathlib
import random
import re
import resource
import select
import socket
import time

import pytest

from api_server import DEADLINE, Server, check_problem, read_all, spec

SEED = int(os.environ.get("UBLKD_SEED", random.SystemRandom().randrange(1 << 32)))
BODY = json.dumps(spec("evil")).encode()
HOST = b"Host: x\r\n"
BODY_MAX = 1 << 20
JSON = b"Content-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)


def exchange(server, data, half_close=True):
    """What the client receives until the server closes."""
    raw = server.socket()
    try:
        raw.sendall(data)
        if half_close:
            raw.shutdown(socket.SHUT_WR)
    except (BrokenPipeError, ConnectionResetError):
        pass
    answer = read_all(raw)
    raw.close()
    return answer


def statuses(data):
    """The statuses of all answers received; those that the HTTP library sends in HTML count too."""
    return [int(piece[:3]) for piece in data.split(b"HTTP/1.1 ")[1:] if piece[:3].isdigit()]


def post(headers, body=BODY, version=b"1.1"):
    return b"POST /devices HTTP/" + version + b"\r\n" + HOST + headers + b"\r\n" + body


NEXT = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize("data", [
    pytest.param(post(LENGTH + b"Transfer-Encoding: chunked\r\n", CHUNKED), id="length and chunked"),
    pytest.param(post(b"Transfer-Encoding: chunked\r\n" + LENGTH, CHUNKED), id="chunked and length"),
    pytest.param(post(LENGTH + LENGTH), id="the same length twice"),
    pytest.param(post(LENGTH + b"Content-Length: 0\r\n"), id="two lengths"),
    pytest.param(post(b"Content-Length: %d, %d\r\n" % (len(BODY), len(BODY))), id="a list of lengths"),
    pytest.param(post(b"Content-Length: +%d\r\n" % len(BODY)), id="length with a sign"),
    pytest.param(post(b"Content-Length: -1\r\n"), id="negative length"),
    pytest.param(post(b"Content-Length: 0x%x\r\n" % len(BODY)), id="hexadecimal length"),
    pytest.param(post(b"Content-Length: \r\n"), id="empty length"),
    pytest.param(post(b"Content-Length: 1\x000\r\n"), id="NUL in the length"),
    pytest.param(post(b"Content-Length: 99999999999999999999999999\r\n"), id="length beyond 64 bits"),
    pytest.param(post(b"Content-Length : %d\r\n" % len(BODY)), id="space before the colon"),
    pytest.param(post(b"Transfer-Encoding : chunked\r\n", CHUNKED), id="space before the colon of chunked"),
    pytest.param(post(b"Transfer-Encoding: xchunked\r\n", CHUNKED), id="unknown coding"),
    pytest.param(post(b"Transfer-Encoding: gzip, chunked\r\n", CHUNKED), id="two codings"),
    pytest.param(post(b"Transfer-Encoding: chunked, chunked\r\n", CHUNKED), id="chunked twice"),
    pytest.param(post(b"Transfer-Encoding: identity\r\n" + LENGTH), id="identity"),
    pytest.param(post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", CHUNKED), id="two headers of coding"),
    pytest.param(post(b"Transfer-Encoding: chunked\r\n", CHUNKED, b"1.0"), id="chunked in HTTP/1.0"),
    pytest.param(post(b"Transfer-Encoding:\x0bchunked\r\n", CHUNKED), id="vertical tab"),
    pytest.param(post(b"Transfer-Encoding: chunked\r\n", b"-1\r\n"), id="negative chunk"),
    pytest.param(post(b"Transfer-Encoding: chunked\r\n", b"fffffffffffffffff\r\n"), id="chunk beyond 64 bits"),
    pytest.param(post(b"Transfer-Encoding: chunked\r\n", b"1 1\r\n"), id="chunk with a space"),
    pytest.param(post(b"X: a\r\n b: c\r\n" + LENGTH), id="folded line"),
    pytest.param(post(b"X: a\r\n\tContent-Length: 0\r\n" + LENGTH), id="folded length"),
    pytest.param(b"POST /devices HTTP/1.1\r\n " + HOST + LENGTH + b"\r\n" + BODY, id="folded first line"),
    pytest.param(post(LENGTH).replace(b"\r\n", b"\n"), id="bare LF"),
    pytest.param(post(b"X: a\rContent-Length: 0\r\n" + LENGTH), id="bare CR"),
    pytest.param(post(b"X: a\x00b\r\n" + LENGTH), id="NUL in a value"),
    pytest.param(post(b"X\x00: a\r\n" + LENGTH), id="NUL in a name"),
    pytest.param(post(b"X: a\x07\r\n" + LENGTH), id="bell in a value"),
    pytest.param(post(b"X: a \r\n" + LENGTH), id="space after a value"),
    pytest.param(post(b"X: a\t\r\n" + LENGTH), id="tab after a value"),
    pytest.param(post(b"X(y): a\r\n" + LENGTH), id="a name that is not a token"),
    pytest.param(post(b": a\r\n" + LENGTH), id="no name"),
    pytest.param(post(b"colon\r\n" + LENGTH), id="no colon"),
    pytest.param(post(HOST + LENGTH), id="two hosts"),
    pytest.param(post(JSON + JSON + LENGTH), id="two types"),
    pytest.param(post(b"Expect: 100-continue\r\nExpect: x\r\n" + LENGTH), id="two expectations"),
    pytest.param(post(LENGTH).replace(b"POST /devices", b"POST /devices\x00/x"), id="NUL in the path"),
    pytest.param(post(LENGTH).replace(b"POST /devices", b"POST  /devices"), id="two spaces"),
    pytest.param(post(LENGTH).replace(b"POST /devices ", b"POST /devices /x "), id="space in the path"),
    pytest.param(post(LENGTH).replace(b"POST /devices ", b"POST\t/devices\t"), id="tabs"),
    pytest.param(post(LENGTH).replace(b"HTTP/1.1", b"HTTP/1.1\x00"), id="NUL in the version"),
    pytest.param(post(LENGTH).replace(b"HTTP/1.1", b"HTTP/2.0"), id="version 2"),
    pytest.param(post(LENGTH).replace(b"HTTP/1.1", b"http/1.1"), id="small letters"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
])
def test_a_request_with_two_readings_is_refused(server, data):
    """The server ignores what follows on the connection, because the start of the next request is unknown."""
    answer = exchange(server, data + NEXT)
    assert 200 not in statuses(answer) and 201 not in statuses(answer), answer
    assert all(400 <= status <= 505 for status in statuses(answer)), answer
    assert server.ask("GET", "/devices").json["items"] == []
    server.until("connections", 0)


# Headers without the space that is usual: bytes that a sum of sizes could take for others that are hidden.
TIGHT = b"".join(b"X%d:y\r\n" % i for i in range(20))


@pytest.mark.parametrize("data", [
    pytest.param(post(JSON + LENGTH + TIGHT).replace(b"y\r\n", b"y\n", 4), id="bare LF"),
    pytest.param(post(JSON + TIGHT + LENGTH).replace(b"1.1\r\n", b"1.1\n"), id="bare LF of the first line"),
    pytest.param(post(JSON + TIGHT + b"X: a\x00hidden\r\n" + LENGTH), id="NUL in a value"),
    pytest.param(post(JSON + TIGHT + b"X: a\r\n b: c\r\n" + LENGTH), id="folded line"),
    pytest.param(post(JSON + TIGHT + b"Content-Length:\r\n %d\r\n" % len(BODY)), id="length in a folded line"),
    pytest.param(post(JSON + TIGHT + b"Content-Length: 12\r\n 5\r\n"), id="folded length"),
    pytest.param(post(JSON + TIGHT + b"Transfer-Encoding:\r\n chunked\r\n", CHUNKED), id="coding in a folded line"),
    pytest.param(post(JSON + TIGHT + b"Transfer-Encoding: chun\r\n ked\r\n", CHUNKED), id="folded coding"),
    pytest.param(post(JSON + TIGHT + b"X:  a\r\n" + LENGTH), id="two spaces after a colon"),
])
def test_missing_spaces_do_not_offset_hidden_bytes(server, data):
    """Whatever the library does: one answer, and the rest of the bytes is not read as a request."""
    answer = exchange(server, data + NEXT)
    assert statuses(answer) == [400], answer
    assert server.ask("GET", "/devices").json["items"] == []


@pytest.mark.parametrize("data,status", [
    (post(JSON + LENGTH), 201),
    (post(JSON + b"Transfer-Encoding: chunked\r\n", CHUNKED), 201),
    (post(JSON + b"transfer-encoding: Chunked\r\n", CHUNKED), 201),
    (post(b"content-type:application/json\r\ncontent-length:%d\r\n" % len(BODY)), 201),
    (post(JSON + LENGTH + b"X: \xe4\xff\t.\r\n"), 201),
    (b"\r\n" + post(JSON + LENGTH), 201),
    (post(JSON + LENGTH).replace(b" /devices", b" http://localhost/devices"), 201),
    (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 204),
    (b"GET http://localhost HTTP/1.1\r\n" + HOST + b"\r\n", 404),
    (b"POST /nothing HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", 404),
    (post(b"Expect: everything\r\n" + LENGTH), 417),
    (b"GET /host?" + b"x" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    (b"GET /host HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 17000 + b"\r\n\r\n", 431),
    (b"GET /host HTTP/1.1\r\n" + HOST + b"".join(b"X%d: y\r\n" % i for i in range(70)) + b"\r\n", 431),
])
def test_unusual_requests(server, data, status):
    answer = exchange(server, data)
    assert statuses(answer) == [status], answer
    if status >= 400:
        assert b"application/problem+json" in answer


def test_a_missing_host_is_refused_once(server):
    """libmicrohttpd 1.0 refuses it itself, in HTML."""
    answer = exchange(server, b"GET /healthz HTTP/1.1\r\n\r\n" + NEXT)
    assert statuses(answer) == [400]
    assert b"Host" in answer and (b"application/problem+json" in answer or b"<html" in answer)
    assert statuses(exchange(server, b"GET /healthz HTTP/1.0\r\n\r\n")) == [200]


def test_a_chunk_extension_is_skipped_or_refused(server):
    """libmicrohttpd 0.9.75 skips it, 1.0.1 refuses it; neither takes it for data, and the connection ends."""
    chunked = CHUNKED.replace(b"\r\n", b";x=y\r\n", 1)
    answer = exchange(server, post(JSON + b"Transfer-Encoding: chunked\r\n", chunked) + NEXT)
    names = [item["name"] for item in server.ask("GET", "/devices").json["items"]]
    assert (statuses(answer), names) in [([201], ["evil"]), ([400], [])], answer


@pytest.mark.parametrize("chunks", [
    pytest.param(CHUNKED, id="well-formed"),
    pytest.param(CHUNKED.replace(b"\r\n", b"\n"), id="bare LF"),
    pytest.param(CHUNKED.replace(b"\r\n", b"\n", 1), id="bare LF after the size"),
    pytest.param(CHUNKED.replace(b"\r\n\r\n", b"\r\nX: a\r\n b\r\n\r\n"), id="folded trailer"),
    pytest.param(CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n"), id="a length as a trailer"),
    pytest.param(CHUNKED.replace(b"\r\n", b";x=\ny\r\n", 1), id="LF in an extension"),
])
def test_no_request_follows_chunks(server, chunks):
    """A proxy may see other ends of the chunks than the library. Nothing behind them is read as a request."""
    answer = exchange(server, post(JSON + b"Transfer-Encoding: chunked\r\n", chunks) + NEXT)
    assert statuses(answer) in ([201], [400]), answer
    assert b"Connection: close" in answer or 400 in statuses(answer), answer
    server.until("connections", 0)


@pytest.mark.parametrize("data", [
    b"GET /" + b"y" * 300000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /host HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 300000 + b"\r\n\r\n",
    b"GET /host HTTP/1.1\r\n" + HOST + b"".join(b"X%d: y\r\n" % i for i in range(30000)) + b"\r\n",
    b"GET /devices?" + b"&".join(b"label=a=%d" % i for i in range(30000)) + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"M" * 300000 + b" / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"\r\n" * 300000,
    b"\x00" * 300000,
], ids=["path", "header", "headers", "parameters", "method", "empty lines", "NUL"])
def test_heads_beyond_all_bounds(server, data):
    answer = exchange(server, data)
    assert all(400 <= status < 500 for status in statuses(answer)), answer
    server.until("connections", 0)


@pytest.mark.parametrize("path", [
    "/schemas/../../etc/passwd", "/schemas/%2e%2e/%2e%2e/etc/passwd", "/schemas/..%2f..%2fetc%2fpasswd", "/schemas/.",
    "/schemas/device%00.json", "/schemas/%00", "/schemas//device", "/schemas/device/", "/schemas/targets/../device",
    "/devices/%2e%2e", "/devices/..", "/devices/%2e", "/devices/a%00", "/devices/%2fetc%2fpasswd", "/devices/..%5c..",
    "/devices/%c0%ae%c0%ae", "/devices/%ff", "/devices/data%0d%0aX:%20y", "/devices/" + "a" * 7000, "/devices/%", "/devices/%4",
    "//devices", "/./devices", "/devices/./data", "/%64evices/../host", "/devices;/x", "/devices%3fx",
])
def test_paths_that_lead_elsewhere(server, path):
    server.ask("POST", "/devices?wait=ready", spec())
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        answer = server.ask(method, path, "{}" if method in ("PUT", "PATCH") else None,
                            {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else None)
        assert answer.status in (404, 405, 422), answer.body
        assert "X" not in answer.headers
    assert [item["name"] for item in server.ask("GET", "/devices").json["items"]] == ["data"]


@pytest.mark.parametrize("query", [
    "label=%ff=x", "label=a=%c0%80", "label=a=%00", "%00=x", "label=%", "limit=1&limit=2", "limit=0x10", "limit=1e3", "limit=-1",
    "limit=%20" + "1", "limit=99999999999999999999", "limit=0", "limit=", "limit", "continue=..", "continue=" + "a" * 64, "=", "&=",
    "label=" + "k" * 400 + "=v", "&".join(f"label=k={i}" for i in range(17)), "colour=red", "Limit=1", "limit=1;x", "label[]=a=b",
])
def test_parameters_that_are_wrong(server, query):
    check_problem(server.ask("GET", f"/devices?{query}"), 400, "bad-request")


def nested(depth, opening="[", closing="]"):
    return '{"name": "evil", "size": 512, "target": {"type": "null", "x": ' + opening * depth + "1" + closing * depth + "}}"


@pytest.mark.parametrize("body", [
    nested(40), nested(500), nested(300000), nested(1000, '{"a":', "}"), "[" * 900000, '{"a":' * 150000,
    '{"size": 1' + "0" * 300000 + "}", '{"size": 1e308}', '{"size": 1e-400}', '{"size": -1e400}', '{"size": 512.0000000000001}',
    '{"size": 18446744073709551616}', '{"size": 9007199254740993}', '{"size": "99999999999999999999TiB"}', '{"queueDepth": 1e10}',
    '{"size": 512, "size": 1024}', '{"target": {"type": "null", "type": "loop"}}', '{"labels": {"a": "1", "a": "2"}}',
    '{"labels": {"a": "1", "\\u0061": "2"}}', '{"name": "evil\\u0000"}', '{"labels": {"\\ud800": ""}}', b'{"name": "\xff"}', b'{"\xc3": 1}',
    b'{"labels": {"a": "\xed\xa0\x80"}}', '{"labels": {' + ",".join(f'"k{i}": ""' for i in range(257)) + "}}",
    '{"labels": {' + ",".join(f'"k{i}": ""' for i in range(65)) + "}}", "{" + ",".join(f'"k{i}": 1' for i in range(50000)) + "}",
    '{"name": "' + "a" * 1000000 + '"}', '{"cpus": "' + "0," * 500 + '"}', '{"cpus": "' + "1" * 900000 + '"}',
    '{"recovery": {"giveUpAfter": "99999999999999999h"}}', '{"id": 1e300}', '{"owner": {"uid": 4294967295}}', '{"a": ' + "[" * 64 + "]" * 64 + "}",
], ids=range(34))
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_hostile_json_is_refused_quickly(server, method, body):
    """None of them is ever a spec or a valid change of one, and the server refuses all of them quickly."""
    before = server.ask("POST", "/devices?wait=ready", spec()).json
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    began = time.monotonic()
    answer = server.ask(method, "/devices" if method == "POST" else "/devices/data", body, {"Content-Type": kind})
    assert answer.status in (400, 422), answer.body[:500]
    assert len(answer.body) < 100000
    assert time.monotonic() - began < DEADLINE / 2
    assert server.ask("GET", "/devices").json["items"] == [before]


def trickle(raw, data):
    """Send a byte whenever the server has had time for it, until it closes. Return its answer."""
    sent = b""
    for byte in data:
        try:
            raw.send(bytes([byte]))
        except OSError:
            return sent + read_all(raw)
        if select.select([raw], [], [], 0.02)[0]:
            piece = raw.recv(65536)
            if not piece:
                return sent
            sent += piece
    raise AssertionError("the server took it all")


def endless(data):
    yield from data
    while True:
        yield from b"x"


@pytest.fixture
def impatient(tmp_path):
    server = Server(tmp_path, "--times", "400,400,400,400")
    assert server.started, server.process.stderr.read()
    yield server
    server.stop()


@pytest.mark.parametrize("data,sent", [
    (b"", b""), (b"GET /", b""), (b"\r\n", b""), (b"GET /host HTTP/1.1\r\nX: ", b""),
    (b"POST /devices HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 99999\r\n\r\n", b"HTTP/1.1 408 "),
    (b"POST /nothing HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 99999\r\n\r\n", b"HTTP/1.1 408 "),
], ids=["nothing", "request line", "empty line", "header", "body", "body of a bad request"])
@pytest.mark.parametrize("moving", [False, True], ids=["silent", "trickling"])
def test_requests_that_never_end(impatient, data, sent, moving):
    """Neither silence nor a byte now and then keeps a connection open."""
    raw = impatient.socket()
    raw.sendall(data)
    assert impatient.ask("GET", "/healthz").status == 200, "others are served meanwhile"
    answer = trickle(raw, endless(b"")) if moving else read_all(raw)
    assert answer[:len(sent)] == sent and (sent or not answer), answer
    assert not sent or b"body-too-slow" in answer
    impatient.until("connections", 0)


def test_an_answer_that_is_not_read(impatient):
    """The list is larger than a socket's buffer, and the client never reads the rest."""
    for i in range(100):
        impatient.ask("POST", "/devices", spec(f"d{i}", labels={f"k{j}": "v" * 250 for j in range(20)}))
    raw = impatient.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.sendall(b"GET /devices HTTP/1.1\r\n" + HOST + b"\r\n")
    assert impatient.ask("GET", "/healthz").status == 200
    impatient.until("connections", 0)
    raw.close()


def test_pipelined_requests_whose_answers_are_not_read(impatient):
    raw = impatient.socket()
    raw.setblocking(False)
    sent = 0
    with pytest.raises(OSError) as gone:
        while sent < 64 << 20:
            try:
                sent += raw.send(NEXT * 1000)
            except BlockingIOError:  # nothing is taken any more: the server has had enough
                assert impatient.ask("GET", "/healthz").status == 200
                select.select([], [raw], [], 0.05)
    assert gone.value.errno in (errno.EPIPE, errno.ECONNRESET)
    assert sent < 8 << 20
    impatient.until("connections", 0)


def test_a_wait_has_its_own_timeout(impatient):
    """None of these limits disconnects a client that waits for a device."""
    impatient.tell("auto off")
    answer = impatient.ask("POST", "/devices?wait=ready&timeout=1500ms", spec())
    check_problem(answer, 504, "timeout")


@pytest.mark.parametrize("greeting", [b"", b"GET /healthz HTTP/1.1\r\n"], ids=["silent", "half a request"])
def test_ten_thousand_connections(tmp_path, greeting):
    """The server serves the last client, drops none, and needs hardly any memory for them."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    server = Server(tmp_path, "--times", "1000,1000,1000,1000")
    assert server.started, server.process.stderr.read()
    before, most, held = server.memory(), 0, []
    for _ in range(10000):
        raw = server.socket()
        with_greeting = greeting and raw.send(greeting)
        held.append(raw)
        if len(held) > min(limit[0] // 2, 600) or with_greeting is None:
            held.pop(0).close()
    most = server.tell("connections")
    assert most <= 512
    assert server.ask("GET", "/healthz").status == 200
    assert server.memory() - before < 100 << 20
    server.until("connections", 0)
    for raw in held:
        raw.close()
    server.stop()


@pytest.mark.parametrize("head", [b"GET /devices", b"GET /nothing", b"DELETE /devices/data", b"POST /devices/data/recover"])
def test_a_body_that_no_route_takes_is_not_kept(server, head):
    """Each client sends all but the last byte: what the server keeps of that, it keeps until the client goes on."""
    size, clients = BODY_MAX, []
    server.ask("GET", "/devices")
    before = server.memory()
    for _ in range(64):
        raw = server.socket()
        raw.sendall(head + b" HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size + bytes(size - 1))
        clients.append(raw)
    assert server.ask("GET", "/healthz").status == 200
    for raw in clients:  # all that was sent has been read
        raw.sendall(b"x")
        assert 400 <= int(raw.recv(100).split(b" ", 2)[1]) < 500
        raw.close()
    assert server.most_memory() - before < 32 << 20


GOOD = [post(JSON + LENGTH), post(JSON + b"Transfer-Encoding: chunked\r\n", CHUNKED), NEXT,
        b"GET /devices?label=a%3Db&limit=3 HTTP/1.1\r\n" + HOST + b"If-None-Match: \"1\", W/\"2\"\r\nAccept: */*;q=0.1\r\n\r\n",
        b"DELETE /devices/evil?wait&timeout=0&force=true HTTP/1.1\r\n" + HOST + b"If-Match: *\r\n\r\n",
        b"PATCH /devices/evil HTTP/1.1\r\n" + HOST + b"Content-Type: application/merge-patch+json\r\nContent-Length: 2\r\n\r\n{}"]


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            data[at:at + rng.randint(1, 8)] = bytes(rng.choice(b"\0\r\n\t :/%?&=\"\x7f\xff09aAzZ") for _ in range(rng.randint(0, 8)))
        elif kind == 1:
            data[at:at] = data[rng.randrange(len(data) + 1):][:rng.randint(1, 40)]
        elif kind == 2:
            del data[at:at + rng.randint(1, 20)]
        elif kind == 3 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        else:
            data[at:at] = rng.choice([b"\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n",
                                      b"Connection: close\r\n", b"0\r\n\r\n", b"\0", b"Upgrade: x\r\nConnection: upgrade\r\n"])
    return bytes(data)


def test_random_requests(impatient):
    server = impatient  # which does not wait for the rest of half a request
    print(f"UBLKD_SEED={SEED}")
    rng = random.Random(SEED)
    for number in range(300):
        data = b"".join(mutate(rng, rng.choice(GOOD)) for _ in range(rng.randint(1, 3)))
        answer = exchange(server, data)
        assert not any(status in (500, 503) for status in statuses(answer)), (SEED, number, data, answer)
    assert server.ask("GET", "/healthz").status == 200
    server.until("connections", 0)


def documented_limits():
    """The table in docs/api.md: name → number."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/api.md").read_text()
    table = text.split("\n## Limits\n")[1].split("\n| name |")[1].split("\n\n")[0]
    limits = {}
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", table, re.MULTILINE):
        names, numbers = re.findall(r"`(\w+)`", row[0]), re.findall(r"\d+", row[1])
        assert len(names) == len(numbers), row
        limits.update(zip(names, map(int, numbers)))
    return limits


def test_the_documented_limits_are_the_served_ones(server):
    served = server.ask("GET", "/host").json["limits"]
    assert {**documented_limits(), "cpus": served["cpus"], "queues": served["queues"]} == served


@pytest.mark.parametrize("limit,good,bad", [
    ("bodySize", lambda n: post(JSON + b"Content-Length: %d\r\n" % n, BODY.ljust(n)), 413),
    ("jsonDepth", lambda n: post_text("[" * n + "]" * n), 400),
    ("jsonNames", lambda n: post_text("{" + ",".join(f'"k{i}":0' for i in range(n)) + "}"), 400),
    ("pathSize", lambda n: b"GET /" + b"x" * (n - 1) + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
    ("headers", lambda n: b"GET /host HTTP/1.1\r\n" + HOST + b"X: y\r\n" * (n - 1) + b"\r\n", 431),
    ("headerSize", lambda n: b"GET /host HTTP/1.1\r\n" + HOST + b"X: " + b"y" * (n - 14) + b"\r\n\r\n", 431),
    ("listLimit", lambda n: b"GET /devices?limit=%d HTTP/1.1\r\n" % n + HOST + b"\r\n", 400),
    ("labelFilters", lambda n: b"GET /devices?" + b"&".join([b"label=a=b"] * n) + b" HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ("waitSeconds", lambda n: b"DELETE /devices/none?timeout=%ds HTTP/1.1\r\n" % n + HOST + b"\r\n", 400),
])
def test_each_limit_is_where_it_is_documented(server, limit, good, bad):
    """At the limit the request is judged by its content (which may be wrong too), beyond it by its size."""
    limit = documented_limits()[limit]
    at, beyond = exchange(server, good(limit)), exchange(server, good(limit + 1))
    assert statuses(beyond)[0] == bad, beyond
    assert statuses(at)[0] not in (bad, 500), at


def post_text(text):
    return post(JSON + b"Content-Length: %d\r\n" % len(text), text.encode())
