# SPDX-License-Identifier: MIT
"""GET /events: the list, the stream, where a client resumes, and which clients are disconnected."""
import contextlib
import http.client
import json
import socket

import pytest
from api_server import Server, check_problem, send, spec

ENDS = (EOFError, OSError, http.client.HTTPException)
JSON = {"Accept": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}


class Stream:
    """A client that watches events, over its own connection."""

    def __init__(self, server, query="", headers=None):
        self.connection = server.connect()
        send(self.connection, "GET", "/events" + query, headers={"Accept": "text/event-stream", **(headers or {})})
        self.response = self.connection.getresponse()
        self.id = None
        if self.response.status == 200:
            assert self.response.headers["Content-Type"] == "text/event-stream"
            assert self.next() is None  # the position, before any event

    def lines(self):
        """The lines up to the next empty line; [] at the end of the stream."""
        lines = []
        while True:
            line = self.response.readline()
            if not line.endswith(b"\n"):
                return []
            if line == b"\n":
                return lines
            lines.append(line.decode().rstrip("\n"))

    def next(self):
        """The next event; None for a message that only moves the position."""
        data = None
        lines = self.lines()
        if not lines:
            raise EOFError
        for line in lines:
            name, value = line.split(":", 1)
            if name == "id":
                self.id = int(value)
            if name == "data":
                data = json.loads(value)
                assert data["revision"] == self.id
        return data

    def events(self, count):
        return [self.next() for _ in range(count)]

    def reasons(self, count):
        return [(event["device"]["name"], event["reason"]) for event in self.events(count)]

    def close(self):
        self.response.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def create(server, name, **more):
    assert server.ask("POST", "/devices?wait=ready", spec(name, **more)).status == 201


def create_many(server, count):
    """The names of devices for so many events: of one device, ublkd keeps 512."""
    names = [f"data{number}" for number in range(-(-count // 500))]
    for name in names:
        create(server, name)
    return names


def events(server, query=""):
    answer = server.ask("GET", "/events" + query, headers=JSON)
    assert answer.status == 200 and answer.type == "application/json", answer.body
    return answer.json


def reasons(answer):
    return [(event["device"]["name"], event["reason"]) for event in answer["items"]]


# ---- the list ----


def test_the_list_has_the_newest_first(server):
    create(server, "data", labels={"app": "db"})
    sentence = "The worker died. Another one is started."
    server.tell(f"note data WorkerDied {sentence}")
    answer = events(server)
    assert reasons(answer) == [("data", "WorkerDied"), ("data", "Live"), ("data", "Created")]
    event = answer["items"][0]
    uid = server.ask("GET", "/devices/data").json["uid"]
    assert event["device"] == {"name": "data", "uid": uid, "labels": {"app": "db"}}
    assert event["type"] == "Warning" and event["count"] == 1
    assert event["message"] == sentence
    assert event["firstRevision"] == event["revision"] == answer["revision"]
    assert event["firstTime"] == event["lastTime"] and event["lastTime"].endswith("Z")
    assert answer["revision"] == server.ask("GET", "/devices").json["revision"]
    assert [item["type"] for item in answer["items"]] == ["Warning", "Normal", "Normal"]


def test_the_list_is_paged(server):
    create(server, "data")
    server.tell("flood data 5")
    everything = events(server)["items"]
    items, query = [], "?limit=2"
    while query:
        page = events(server, query)
        assert len(page["items"]) <= 2
        items += page["items"]
        query = f"?limit=2&continue={page['continue']}" if "continue" in page else None
    assert items == everything and len(items) == 7


def test_the_list_is_filtered(server):
    create(server, "one", labels={"app": "db"})
    create(server, "two", labels={"app": "web", "tier": "1"})
    assert reasons(events(server, "?device=one")) == [("one", "Live"), ("one", "Created")]
    assert reasons(events(server, "?label=app=web&label=tier=1")) == [("two", "Live"), ("two", "Created")]
    assert reasons(events(server, "?label=app=db&label=tier=1")) == []
    assert reasons(events(server, "?device=none")) == []
    first = events(server, "?device=one")["items"][1]["revision"]
    assert reasons(events(server, f"?device=one&after={first}")) == [("one", "Live")]


def test_the_list_has_every_change_by_a_client(server):
    create(server, "data")
    for tier in range(20):
        assert server.ask("PATCH", "/devices/data", {"labels": {"tier": str(tier)}}, MERGE).status == 200
    changes = [event for event in events(server)["items"] if event["reason"] == "SpecChanged"]
    assert [event["device"]["labels"]["tier"] for event in changes] == [str(tier) for tier in reversed(range(20))]


def test_repeated_events_are_counted(server):
    create(server, "data")
    deaths = [f"It died the {nth}th time." for nth in range(10)]
    for sentence in deaths:
        server.tell(f"note data WorkerDied {sentence}")
    event, *others = events(server)["items"]
    assert event["count"] == 10 and event["message"] == deaths[-1]
    assert event["firstRevision"] == event["revision"] - 9
    assert len(others) == 2


def test_events_of_a_removed_device_stay(server):
    create(server, "data", labels={"app": "db"})
    assert server.ask("DELETE", "/devices/data?wait").status == 204
    assert reasons(events(server, "?device=data&label=app=db"))[:2] == [("data", "Removed"),
                                                                      ("data", "DeleteRequested")]


# ---- the stream ----


def test_events_come_as_they_happen(server):
    with Stream(server) as stream:
        create(server, "data")
        created, live = stream.events(2)
        assert (created["reason"], live["reason"]) == ("Created", "Live")
        assert server.ask("DELETE", "/devices/data?wait").status == 204
        assert stream.reasons(2) == [("data", "DeleteRequested"), ("data", "Removed")]
    server.until("watches", 0)


def test_events_are_a_stream_by_default(server):
    with Stream(server, headers={"Accept": "*/*"}) as stream:
        create(server, "data")
        assert stream.reasons(1) == [("data", "Created")]


def test_a_list_and_the_stream_after_it_miss_nothing(server):
    create(server, "one")
    revision = server.ask("GET", "/devices").json["revision"]
    create(server, "two")
    for query, headers in ((f"?after={revision}", {}), ("", {"Last-Event-ID": str(revision)}),
                           ("?after=0", {"Last-Event-ID": str(revision)})):  # the header is the newer one
        with Stream(server, query, headers) as stream:
            assert stream.reasons(2) == [("two", "Created"), ("two", "Live")]
    with Stream(server, "?after=0") as stream:
        assert stream.reasons(4)[:2] == [("one", "Created"), ("one", "Live")]


def test_pages_and_the_stream_after_the_first_miss_nothing(server):
    """As docs/api.md promises: a change between two pages is in the list or in the events."""
    for name in ("b", "d", "f"):
        create(server, name)
    first = server.ask("GET", "/devices?limit=1").json
    create(server, "a")  # before the page that comes
    create(server, "e")  # behind it
    assert server.ask("PATCH", "/devices/b?wait=ready", {"labels": {"app": "db"}}, MERGE).status == 200  # was listed already
    assert server.ask("DELETE", "/devices/d?wait").status == 204  # never will be
    pages = [first]
    while "continue" in pages[-1]:
        pages.append(server.ask("GET", f"/devices?limit=1&continue={pages[-1]['continue']}").json)
    known = {item["name"]: item for page in pages for item in page["items"]}
    assert set(known) == {"b", "e", "f"}
    with Stream(server, f"?after={first['revision']}") as stream:
        seen = []
        while ("d", "Removed") not in seen:
            event = stream.next()
            seen.append((event["device"]["name"], event["reason"]))
    assert {("a", "Created"), ("e", "Created"), ("b", "SpecChanged")} <= set(seen)
    for name in {name for name, _ in seen}:  # as a client does
        answer = server.ask("GET", f"/devices/{name}")
        known[name] = answer.json
        if answer.status == 404:
            del known[name]
    assert sorted(known.values(), key=lambda item: item["name"]) == server.ask("GET", "/devices").json["items"]
    assert events(server, f"?after={pages[-1]['revision']}")["items"] == []  # the last page's would have missed them


def test_a_filtered_stream_moves_its_position(server):
    with Stream(server, "?device=two") as one, Stream(server, "?label=app=db") as other:
        create(server, "one", labels={"app": "db"})
        create(server, "two")
        assert one.reasons(2) == [("two", "Created"), ("two", "Live")]
        assert other.reasons(2) == [("one", "Created"), ("one", "Live")]


def test_it_resumes_after_a_restart(tmp_path):
    server = Server(tmp_path, "--sqlite")
    create(server, "data")
    with Stream(server) as stream:
        server.tell("note data WorkerDied It died.")
        stream.events(1)
        last = stream.id
        server.tell("note data Recovered It is back.")
        server.stop()
        with contextlib.suppress(Exception):  # cut off, in the middle of a chunk or not
            while stream.next() is not None:
                pass
    server = Server(tmp_path, "--sqlite")
    create(server, "more")
    with Stream(server, headers={"Last-Event-ID": str(last)}) as stream:
        assert stream.reasons(3) == [("data", "Recovered"), ("more", "Created"), ("more", "Live")]
    assert events(server)["items"][-1]["reason"] == "Created"
    server.stop()


def test_compacted_events_are_gone(server):
    create(server, "data")
    names = create_many(server, 5000)
    revision = server.ask("GET", "/devices").json["revision"]
    for name in names:
        server.tell(f"flood {name} 500")
    for ask in (lambda: server.ask("GET", "/events", headers={"Last-Event-ID": str(revision)}),
                lambda: server.ask("GET", f"/events?after={revision}"),
                lambda: server.ask("GET", f"/events?after={revision}", headers=JSON)):
        problem = check_problem(ask(), 410, "compacted")
        assert "GET /devices" in problem["detail"]
    revision = server.ask("GET", "/devices").json["revision"]
    with Stream(server, f"?after={revision}") as stream:
        server.tell("note data Later It happened.")
        assert stream.reasons(1) == [("data", "Later")]
    assert len(events(server)["items"]) == 1000


def test_a_device_pushes_out_no_event_of_another(server):
    """Before, a worker that was taken over made the events of all other disks go."""
    create(server, "loud")
    create(server, "quiet")
    revision = server.ask("GET", "/devices").json["revision"]
    server.tell("flood loud 5000")
    assert [event["reason"] for event in events(server, "?device=quiet")["items"]] == ["Live", "Created"]
    assert 256 <= len(events(server, "?device=loud")["items"]) <= 512
    check_problem(server.ask("GET", f"/events?after={revision}", headers=JSON), 410, "compacted")


def test_a_future_revision_answers_410(server):
    problem = check_problem(server.ask("GET", "/events?after=999999999"), 410, "compacted")
    assert "999999999" in problem["detail"]


@pytest.mark.parametrize("query, headers", [
    ("?after=x", {}),
    ("?after=-1", {}),
    ("?after=9999999999999999", {}),
    ("?device=", {}),
    ("?device=UP", {}),
    ("?limit=3", {}),
    ("?continue=3", {}),
    ("", {"Last-Event-ID": "data"}),
    ("?wait", {}),
])
def test_bad_requests(server, query, headers):
    check_problem(server.ask("GET", "/events" + query, headers=headers), 400, "bad-request")
    assert server.tell("watches") == 0


def test_other_types_are_not_acceptable(server):
    check_problem(server.ask("GET", "/events", headers={"Accept": "text/html"}), 406, "not-acceptable")


@pytest.mark.parametrize("token", ["p1", "other", "99999999999999999999999999"])
def test_an_unknown_page_is_gone(server, token):
    check_problem(server.ask("GET", f"/events?continue={token}", headers=JSON), 410, "compacted")


@pytest.mark.parametrize("accept,content_type", [
    ("application/json;q=0.9, text/event-stream;q=0.1", "application/json"),
    ("application/json, text/event-stream; q=0", "application/json"),
    ("text/event-stream;q=0.9, application/json;q=0.1", "text/event-stream"),
    ("*/*", "text/event-stream"),
])
def test_the_preferred_type_is_sent(server, accept, content_type):
    assert server.ask("HEAD", "/events", headers={"Accept": accept}).type == content_type


def test_the_server_answers_head_at_once(server):
    answer = server.ask("HEAD", "/events")
    assert answer.status == 200 and answer.type == "text/event-stream" and answer.body == b""
    server.until("watches", 0)


# ---- clients that are disconnected ----


def test_watches_are_bounded(server):
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(Stream(server)) for _ in range(64)]
        check_problem(server.ask("GET", "/events"), 503, "too-many-watches")
        assert events(server)["items"] == []  # lists go on
        create(server, "data")
        assert all(stream.reasons(2) == [("data", "Created"), ("data", "Live")] for stream in streams)
        streams[0].close()
        server.until("watches", 63)
        stack.enter_context(Stream(server))
    server.until("watches", 0)


def test_a_client_that_leaves_is_freed(server):
    for _ in range(100):
        Stream(server).close()
    server.until("watches", 0)
    server.until("connections", 0)


def test_a_client_that_does_not_read_is_disconnected_and_resumes(server):
    create(server, "data")
    names = create_many(server, 8000)
    with Stream(server) as reader, Stream(server) as sleeper:
        for name in names:  # more than the log and the socket together hold
            server.tell(f"flood {name} 500")
            reader.events(500)
        server.until("watches", 1)
        with pytest.raises(ENDS):
            while True:
                sleeper.next()
        last = sleeper.id
        assert last < reader.id
        check_problem(server.ask("GET", "/events", headers={"Last-Event-ID": str(last)}), 410, "compacted")
        server.tell("note data Later It happened.")
        assert reader.reasons(1) == [("data", "Later")]


def test_a_slow_reader_gets_everything(server):
    create(server, "data")
    names = create_many(server, 3000)
    with Stream(server) as stream:
        for name in names:
            server.tell(f"flood {name} 500")
        assert server.ask("GET", "/devices/data").status == 200  # the stream delays no other request
        assert [event["reason"] for event in stream.events(3000)] == [f"Flood{i}" for i in range(3000)]


def test_a_server_that_stops_ends_its_streams(tmp_path):
    server = Server(tmp_path)
    streams = [Stream(server) for _ in range(5)]
    server.stop()
    for stream in streams:
        with pytest.raises(ENDS):
            stream.next()


def test_http_1_0_gets_a_stream(server):
    raw = server.socket()
    raw.sendall(b"GET /events HTTP/1.0\r\n\r\n")
    head = b""
    while b"\n\n" not in head.replace(b"\r\n\r\n", b"", 1):
        head += raw.recv(4096)
    assert b"200 OK" in head and b"chunked" not in head and b"retry: 2000\nid: " in head
    create(server, "data")
    assert b'"reason":"Created"' in raw.recv(65536)
    raw.shutdown(socket.SHUT_RDWR)
    raw.close()
    server.until("watches", 0)
