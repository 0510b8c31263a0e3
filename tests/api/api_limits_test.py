# SPDX-License-Identifier: MIT
"""What clients may hold of the server, however many users they are: root and the owner of the token get in."""
import contextlib
import os
import socket
import tempfile
import time

import pytest
from api_listen_test import connect_tcp, free_port
from api_server import DEADLINE, Server, ask, read_all, spec
from other_user import NEEDS_ROOT
from readers import FIRST_UID, be, begin, fill, lists_answered, status
from server_fixture import write_policy

HALF = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"  # not idle: the rest of the head may come


def hold(server, uid, count=1, data=HALF):
    """Connections of a user that the server keeps, and those that it refused."""
    all_of_them, kept, refused = [], [], []
    for _ in range(count):
        with be(uid):
            raw = server.socket()
        with contextlib.suppress(BrokenPipeError):
            raw.sendall(data)
        all_of_them.append(raw)
    assert server.ask("GET", "/healthz").status == 200  # it has accepted the others before this one
    for raw in all_of_them:
        raw.settimeout(0)
        try:
            refused.append(raw.recv(4096))
            raw.close()
        except BlockingIOError:
            kept.append(raw)
    return kept, refused


def check_root_gets_in(server, held):
    """With as many connections as an administrator's programs may need, all at once."""
    mine = [server.connect() for _ in range(100)]
    for connection in mine:
        connection.request("GET", "/devices")
    assert [connection.getresponse().status for connection in mine] == [200] * len(mine)
    assert server.ask("POST", "/devices", spec()).status == 201
    for raw in held:
        raw.settimeout(0)
        with pytest.raises(BlockingIOError):
            raw.recv(1)  # root did not need to take it away


@NEEDS_ROOT
def test_one_reader_has_few_connections(open_server):
    kept, refused = hold(open_server, FIRST_UID, 20)
    assert len(kept) == 16 and len(refused) == 4
    assert all(answer.startswith(b"HTTP/1.1 503 ") and b"too-many-connections" in answer for answer in refused)
    other, _ = hold(open_server, FIRST_UID + 1)
    assert other, "another user has room"
    check_root_gets_in(open_server, kept)


@NEEDS_ROOT
def test_many_readers_leave_root_its_connections(open_server):
    kept, refused = [], 0
    for uid in range(FIRST_UID, FIRST_UID + 100):
        more, over = hold(open_server, uid, 2)
        kept, refused = kept + more, refused + len(over)
    assert len(kept) == 128 and refused == 72
    check_root_gets_in(open_server, kept)


@pytest.fixture(name="containers")
def _containers():
    """A server whose tenants are user 1234, and the users of the containers of another one, who are one account."""
    rule = {"name": "containers", "who": {"users": [1234], "subuidsOf": ["daemon"]}, "targets": ["null"], "devices": 3, "size": "1GiB"}
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        os.chmod(directory, 0o755)
        with open(os.path.join(directory, "subuid"), "w", encoding="ascii") as file:
            file.write(f"daemon:{FIRST_UID}:65536\n")
        server = Server(directory, *write_policy(directory, rules=[rule]))
        yield server
        server.stop()


@NEEDS_ROOT
def test_tenants_of_one_account_have_few_connections_together(containers):
    """One container with subordinate users is thousands of tenants."""
    kept = [raw for uid in range(FIRST_UID, FIRST_UID + 10) for raw in hold(containers, uid, 4)[0]]
    assert len(kept) == 16
    other, _ = hold(containers, 1234, 16)
    assert len(other) == 16
    check_root_gets_in(containers, kept + other)


@NEEDS_ROOT
def test_tenants_of_one_account_have_few_streams_together(containers):
    streams = [begin(containers, FIRST_UID + number, "/events?after=0", "text/event-stream") for number in range(9)]
    assert [status(raw) for raw in streams] == [200] * 8 + [503]
    assert b"too-many-watches" in streams.pop().recv(4096)
    other = begin(containers, 1234, "/events?after=0", "text/event-stream")
    assert status(other) == 200
    for raw in [other, *streams]:
        raw.close()
    containers.until("watches", 0)


@NEEDS_ROOT
def test_answers_that_tenants_of_one_account_do_not_read_count_together(containers):
    """The next one of the account waits for its turn, and the tenants of other accounts do not."""
    enough = 2 * 1024 * 1024 // len(containers.ask("GET", "/openapi.json").body) + 1
    unread = [begin(containers, FIRST_UID + number, "/openapi.json") for number in range(enough)]
    assert [status(raw) for raw in unread] == [200] * enough
    waits = begin(containers, FIRST_UID + enough, "/healthz")
    other = begin(containers, 1234, "/healthz")
    assert status(other) == 200
    waits.settimeout(0)
    with pytest.raises(BlockingIOError):
        waits.recv(1)
    unread.pop().close()
    waits.settimeout(DEADLINE)
    assert status(waits) == 200
    for raw in [waits, other, *unread]:
        raw.close()


@NEEDS_ROOT
def test_users_who_may_not_read_leave_readers_theirs():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        os.chmod(directory, 0o755)
        server = Server(directory, "--readers", str(FIRST_UID))
        kept = []
        for uid in range(FIRST_UID + 1, FIRST_UID + 21):
            more, _ = hold(server, uid, 6)
            assert len(more) <= 4
            kept += more
        assert len(kept) == 32
        previous = os.getegid()
        os.setegid(FIRST_UID)  # a member of the group
        reader, _ = hold(server, FIRST_UID + 30, 1)
        os.setegid(previous)
        assert reader
        check_root_gets_in(server, kept)
        server.stop()


@pytest.fixture
def tcp(tmp_path):
    port = free_port()
    server = Server(tmp_path, "--times", "60000,60000,60000,60000,1000",
                    listen=[str(tmp_path / "api.sock"), f"tcp://127.0.0.1:{port}"])
    assert server.started, server.process.stderr.read()
    server.port = port
    server.headers = {"Authorization": "Bearer " + (tmp_path / "api-token").read_text().strip()}
    yield server
    server.stop()


def tcp_socket(server, data=b""):
    raw = socket.create_connection(("127.0.0.1", server.port), DEADLINE)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        raw.sendall(data)
    return raw


def test_clients_without_the_token_do_not_push_out_its_owner(tcp):
    owner = connect_tcp(tcp.port)
    assert ask(owner, "GET", "/healthz", headers=tcp.headers).status == 200
    flood = []
    for number in range(400):
        flood.append(tcp_socket(tcp, (b"", HALF, b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")[number % 3]))
        if number % 50 == 0:
            assert ask(owner, "GET", "/healthz", headers=tcp.headers).status == 200, "idle between its requests"
            assert ask(connect_tcp(tcp.port), "GET", "/healthz", headers=tcp.headers).status == 200, "a new connection"
    assert tcp.tell("connections") <= 64 + 2
    assert tcp.ask("GET", "/healthz").status == 200
    for raw in flood:
        raw.close()


@pytest.mark.parametrize("data", [
    b"", b"GET /heal", HALF, b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /devices HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n{",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer 0\r\n\r\n",
], ids=["silent", "request line", "half a head", "no token", "no token needed", "a body", "wrong token"])
def test_the_token_must_come_soon(tcp, data):
    """Every other time of this server is a minute."""
    owner = connect_tcp(tcp.port)
    assert ask(owner, "GET", "/healthz", headers=tcp.headers).status == 200
    began = time.monotonic()
    raw = tcp_socket(tcp, data)
    answer = read_all(raw)
    assert time.monotonic() - began < 15
    assert answer == b"" or answer.startswith(b"HTTP/1.1 200 " if b"/healthz" in data and b"Bearer" not in data else b"HTTP/1.1 401 "), answer
    raw.close()
    tcp.until("connections", 1)
    assert ask(owner, "GET", "/healthz", headers=tcp.headers).status == 200, "the owner's connection stays"


def test_repeated_requests_do_not_extend_the_time(tcp):
    raw = tcp_socket(tcp)
    began, answers = time.monotonic(), 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while True:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            if not raw.recv(65536):
                break
            answers += 1
            assert time.monotonic() - began < 15
    assert answers > 0


def test_a_client_with_the_token_has_a_limit_of_streams(tcp):
    held = []
    for _ in range(128):
        connection = connect_tcp(tcp.port)
        connection.request("GET", "/events", headers=tcp.headers)
        held.append(connection)
    statuses = [connection.getresponse().status for connection in held]
    assert set(statuses) <= {200, 503}
    streams = [connection for connection, status in zip(held, statuses) if status == 200]
    assert ask(connect_tcp(tcp.port), "GET", "/healthz", headers=tcp.headers).status == 200, "an idle one makes room"
    assert streams and tcp.ask("GET", "/healthz").status == 200


def list_slowly(server, uid, query):
    """Ask for a list, and read nothing of it."""
    with be(uid):
        raw = server.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.sendall(b"GET /devices?%s HTTP/1.1\r\nHost: x\r\n\r\n" % query)
    return raw


@NEEDS_ROOT
def test_answers_that_users_do_not_read_have_a_bound(open_server):
    """Each list is another one, of 2 MB; 120 of them would be 240 MB."""
    fill(open_server, 240)
    size = len(open_server.ask("GET", "/devices").body)
    assert size > 1 << 20
    before, slow = open_server.memory(), []
    for number in range(8 * 15):
        slow.append(list_slowly(open_server, FIRST_UID + number % 8, b"limit=%d" % (1000 - number)))
    with be(FIRST_UID + 8):
        reader = open_server.connect()
        reader.connect()
    assert ask(reader, "GET", "/devices?limit=500").status == 200, "it waits until an answer that is not read is given up"
    assert open_server.ask("GET", "/devices").status == 200
    assert open_server.most_memory() - before < 100 << 20
    for raw in slow:
        raw.close()
    open_server.until("connections", 1)


@NEEDS_ROOT
def test_a_user_gets_no_more_while_it_does_not_read(open_server):
    """The one that reads its answers gets all of them meanwhile."""
    fill(open_server, 240)
    slow = [list_slowly(open_server, FIRST_UID, b"limit=%d" % (1000 - number)) for number in range(16)]
    with be(FIRST_UID + 1):
        reader = open_server.connect()
        reader.connect()
    for number in range(8):
        assert ask(reader, "GET", f"/devices?limit={400 + number}").status == 200
    metrics = open_server.ask("GET", "/metrics").body
    assert lists_answered(metrics) <= 8 + 3
    for raw in slow:
        raw.close()


@NEEDS_ROOT
@pytest.mark.parametrize("path", ["/metrics", "/devices", "/devices?label=a=b", "/events"])
def test_readers_share_what_is_computed_once_in_a_second(open_server, path):
    """The metrics count themselves, and the clock of the test may reach the next second."""
    server, headers = open_server, {"Accept": "application/json, text/plain"}
    readers = []
    for uid in (FIRST_UID, FIRST_UID + 1):
        with be(uid):
            readers.append(server.connect())
            readers[-1].connect()
    changed = 0
    for number in range(20):
        first = ask(readers[0], "GET", path, headers=headers)
        assert server.ask("PUT", f"/devices/d{number}", spec(f"d{number}", labels={"a": "b"})).status == 201
        mine = server.ask("GET", path, headers=headers)
        assert mine.body != first.body and (path == "/metrics" or f"d{number}" in mine.body.decode()), "root sees it at once"
        second = ask(readers[1], "GET", path, headers=headers)
        assert second.headers["ETag"] == first.headers["ETag"] or second.body != first.body
        if path != "/events":
            again = ask(readers[1], "GET", path, headers={**headers, "If-None-Match": second.headers["ETag"]})
            assert again.status == 304 and again.body == b"" or again.body != second.body
        changed += second.body != first.body
    assert changed < 20, "they share"
    end = time.monotonic() + DEADLINE
    while path != "/metrics" and "d19" not in ask(readers[0], "GET", path, headers=headers).body.decode():
        assert time.monotonic() < end, "it is never computed again"


@NEEDS_ROOT
def test_a_resumed_list_of_events_is_not_shared(open_server):
    """Its position is in a header."""
    for number in range(3):
        assert open_server.ask("PUT", f"/devices/d{number}", spec(f"d{number}")).status == 201
    with be(FIRST_UID):
        reader = open_server.connect()
        reader.connect()
    headers = {"Accept": "application/json"}
    every = ask(reader, "GET", "/events", headers=headers).json
    last = every["items"][0]["revision"]
    none = ask(reader, "GET", "/events", headers={**headers, "Last-Event-ID": str(last)}).json
    assert every["items"] and none["items"] == []
