# SPDX-License-Identifier: MIT
"""Work for clients that may not change devices: accounts take turns, and root does not wait for them."""
import array
import contextlib
import fcntl
import re
import socket
import termios
import threading
import time

import pytest
from api_server import DEADLINE, ask, spec
from other_user import NEEDS_ROOT
from readers import FIRST_UID, be, begin, fill, lists_answered, status


def await_lists(clients):
    for raw in clients:
        raw.settimeout(DEADLINE)
        while b"revision" not in raw.recv(1 << 20):
            pass
        raw.close()


def stand_still(server, then=""):
    """The command `then` runs when the loop goes on, before anything else does."""
    server.process.stdin.write(f"hold {then}\n")
    server.process.stdin.flush()


def go_on(server):
    """After stand_still()."""
    assert server.process.stdout.readline() == "0\n"
    server.tell("go on")


@NEEDS_ROOT
def test_root_does_not_wait_for_readers(open_server):
    """Their requests and one of root come while the loop stands still: root is answered first."""
    server = open_server
    fill(server, 60)
    for turn in range(3):
        readers, before = [], lists_answered(server.ask("GET", "/metrics").body)
        stand_still(server)
        for number in range(16):
            with be(FIRST_UID + number):
                raw = server.socket()
            raw.sendall(b"GET /devices?limit=%d HTTP/1.1\r\nHost: x\r\n\r\n" % (1000 - number - 16 * turn))
            readers.append(raw)
        root = server.connect()
        root.request("GET", "/metrics")
        go_on(server)
        assert lists_answered(root.getresponse().read()) - before <= 3
        await_lists(readers)


@NEEDS_ROOT
def test_a_reader_with_one_request_does_not_wait_for_all_of_another(open_server):
    """Both come while the loop stands still. Before, the oldest of all was answered first."""
    server = open_server
    fill(server, 10)  # what is not read stays below the bound of a user
    before = lists_answered(server.ask("GET", "/metrics").body)
    stand_still(server)
    many = []
    for number in range(15):
        with be(FIRST_UID):
            many.append(server.socket())
        many[-1].sendall(b"GET /devices?limit=%d HTTP/1.1\r\nHost: x\r\n\r\n" % (1000 - number))
    with be(FIRST_UID + 1):
        one = server.connect()
        one.connect()
    one.request("GET", "/metrics")
    go_on(server)
    assert lists_answered(one.getresponse().read()) - before <= 3
    await_lists(many)


def stream(server, uid, query):
    """A stream that has begun, and what it has sent so far is read."""
    raw = begin(server, uid, "/events" + query, "text/event-stream")
    data = b""
    while b"id: " not in data:
        data += raw.recv(4096)
    return raw


def unread(raw):
    """How many bytes have come."""
    found = array.array("i", [0])
    fcntl.ioctl(raw, termios.FIONREAD, found)
    return found[0]


@NEEDS_ROOT
def test_streams_take_turns(open_server):
    """Before, each of 48 streams made 8 KiB of events before anything else was done. Something else may have the CPU
    between two calls of the test, so it looks a few times."""
    fill(open_server, 1)
    sent = []
    for _ in range(5):
        streams = [stream(open_server, FIRST_UID + number % 8, "") for number in range(48)]
        open_server.tell("flood d0 400")
        stand_still(open_server)
        root = open_server.connect()
        root.connect()
        time.sleep(0.1)  # while the loop stands still, it becomes time to wake the streams
        go_on(open_server)
        for _ in range(3):
            assert ask(root, "GET", "/healthz").status == 200
        stand_still(open_server)
        sent.append(sum(map(unread, streams)))
        go_on(open_server)
        for raw in streams:
            raw.close()
        open_server.until("watches", 0)
    print(sent)
    assert sorted(sent)[len(sent) // 2] < 4 * 48 * 8192  # it was seven times that


def cpu_time(server):
    """Nanoseconds that its loop has run."""
    with open(f"/proc/{server.process.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


@NEEDS_ROOT
def test_a_filtered_stream_looks_at_few_events_in_a_turn(open_server):
    """What the server does until it answers a command. Before, it read the labels of all events before that."""
    fill(open_server, 10)  # of one device, ublkd keeps 512 events
    begun = open_server.ask("GET", "/devices").json["revision"]
    for number in range(10):
        open_server.tell(f"flood d{number} 300")
    merge = {"Content-Type": "application/merge-patch+json"}
    assert open_server.ask("PATCH", "/devices/d0", {"labels": {"a": "b"}}, merge).status == 200
    raw = begin(open_server, FIRST_UID, f"/events?label=a=b&after={begun}", "text/event-stream")
    raw.settimeout(0)
    found, data = [], b""
    end = time.monotonic() + DEADLINE
    while b"SpecChanged" not in data:
        assert time.monotonic() < end, "the stream goes on to the newest event"
        found.append(work_for_a_command(open_server))
        with contextlib.suppress(BlockingIOError):
            data = data[-100:] + raw.recv(1 << 20)
    raw.close()
    print(max(found), len(found))
    assert max(found) < 10_000_000


def work_for_a_command(server):
    before = cpu_time(server)
    server.tell("connections")
    return cpu_time(server) - before


def hosts_answered(metrics):
    found = re.search(rb'^ublkd_http_requests_total{method="GET",route="/host",code="2xx"} (\d+)$', metrics, re.MULTILINE)
    return int(found.group(1)) if found else 0


@NEEDS_ROOT
def test_readers_that_wait_for_the_host_take_turns(open_server):
    """Before, all were answered at once when the look at the host ended."""
    server = open_server
    server.tell("look slow")
    readers = [begin(server, FIRST_UID + number, "/host") for number in range(48)]
    server.until("waits", len(readers))
    before = hosts_answered(server.ask("GET", "/metrics").body)
    stand_still(server, then="looked")
    root = server.connect()
    root.request("GET", "/metrics")
    go_on(server)
    assert hosts_answered(root.getresponse().read()) - before <= 12
    assert {status(raw) for raw in readers} == {200}
    for raw in readers:
        raw.close()


@NEEDS_ROOT
def test_readers_share_the_host(open_server):
    """The clock of the test may reach the next second."""
    readers = []
    for uid in (FIRST_UID, FIRST_UID + 1):
        with be(uid):
            readers.append(open_server.connect())
            readers[-1].connect()
    assert open_server.ask("POST", "/devices?wait=ready", spec()).status == 201
    shared = 0
    for number in range(10):
        first = ask(readers[0], "GET", "/host").json
        open_server.tell(f"condition data Space False StoreFull It is full for the {number}th time.")
        assert f" {number}th time" in open_server.ask("GET", "/host").body.decode(), "root sees it at once"
        shared += ask(readers[1], "GET", "/host").json == first
    assert shared > 0
    end = time.monotonic() + DEADLINE
    while "9th time" not in ask(readers[0], "GET", "/host").body.decode():
        assert time.monotonic() < end, "it is never computed again"


@NEEDS_ROOT
@pytest.mark.parametrize("one,other", [
    ("/metrics", "http://elsewhere/metrics"), ("/metrics", "/metrics?"), ("/devices", "/devices?limit=1000"),
    ("/devices?limit=1", "/devices?limit=001"), ("/devices?label=a=b&label=c=d", "/devices?label=c=d&label=%61=b&label=a=b"),
])
def test_another_way_to_write_a_target_is_the_same(open_server, one, other):
    """Metrics count their own requests, and lists have the revision."""
    def etag(reader, target):
        reader.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % target.encode())
        data = b""
        while b"\r\n\r\n" not in data:
            data += reader.recv(1 << 20)
        with contextlib.suppress(socket.timeout):
            reader.settimeout(0.05)  # the rest of the answer
            while reader.recv(1 << 20):
                pass
        reader.settimeout(DEADLINE)
        return re.search(rb"ETag: (\S+)", data).group(1)

    assert open_server.ask("PUT", "/devices/d0", spec("d0")).status == 201
    shared = 0
    for number in range(10):
        with be(FIRST_UID):
            reader = open_server.socket()
        first = etag(reader, one)
        assert open_server.ask("PUT", f"/devices/d{number + 1}", spec(f"d{number + 1}", labels={"a": "b", "c": "d"})).status == 201
        shared += etag(reader, other) == first
        reader.close()
    assert shared > 0


@NEEDS_ROOT
def test_readers_are_answered_while_root_keeps_the_loop_busy(open_server):
    pipes, going = [open_server.socket() for _ in range(4)], True

    def keep_busy(raw):
        with contextlib.suppress(OSError):
            while going:
                raw.sendall(b"GET /devices HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
                raw.recv(1 << 20)

    threads = [threading.Thread(target=keep_busy, args=(raw,)) for raw in pipes]
    for thread in threads:
        thread.start()
    try:
        with be(FIRST_UID):
            raw = open_server.socket()
        for _ in range(10):
            raw.sendall(b"GET /devices HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"revision" in raw.recv(1 << 20)
    finally:
        going = False
        for pipe in pipes:
            pipe.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


@NEEDS_ROOT
def test_a_reader_that_leaves_while_it_waits(open_server):
    fill(open_server, 60)
    for number in range(48):
        with be(FIRST_UID + number):
            raw = open_server.socket()
        raw.sendall(b"GET /devices?limit=%d HTTP/1.1\r\nHost: x\r\n\r\n" % (number + 1))
        raw.close()
    open_server.until("connections", 0)
    assert open_server.ask("GET", "/healthz").status == 200
