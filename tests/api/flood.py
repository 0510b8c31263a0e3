# SPDX-License-Identifier: MIT
"""Send requests of many users as fast as the server takes them, until stdin ends.

    flood.py KIND SOCKET FIRST_UID USERS CONNECTIONS     each user has so many connections
    flood.py KIND tcp:PORT 0 1 CONNECTIONS

Prints "going", and at the end how many answers came and how many connections were refused or closed."""
import contextlib
import json
import os
import re
import selectors
import socket
import sys
import time

HOST = b"Host: x\r\n"


def get(path):
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n"


def lists(number):
    """Each another one, so that none has been computed before."""
    return get(b"/devices?limit=%d&label=n%d=v" % (number % 1000 + 1, number)) + get(b"/devices?limit=%d" % (number % 1000 + 1))


def changes(number):
    """Refused by any policy; each counts as a change."""
    body = b'{"name": "flood-%d", "target": {"type": "null"}, "size": "1MiB"}' % number
    return b"POST /devices HTTP/1.1\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (HOST, len(body), body)


# The bytes that a connection sends, over and over.
KINDS = {
    "metrics": lambda number: get(b"/metrics"),
    "lists": lists,
    "pipelined": lambda number: get(b"/healthz") * 200,
    "devices": lambda number: get(b"/devices/d1") * 100,
    "bodies": lambda number: b"POST /devices HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n" + bytes(1000000),
    "bad": lambda number: b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "connections": lambda number: b"G",
    "unread": lists,
    "changes": changes,
    "host": lambda number: get(b"/host"),
    # Refused by its head, at some cost.
    "refused": lambda number: get(b"/devices?" + b"&".join(b"x%d=1" % n for n in range(900))),
}
LEAVING = ("connections", "refused")  # each connection sends its bytes once, and waits for no answer
# What a connection sends once, to read the old events then; %d is the revision that they come after. The filter of the
# second one matches none of them. A stream that is refused asks again.
STREAMS = {
    "stream": b"/events?after=%d",
    "stream-filter": b"/events?after=%d&label=none=none",
}
STREAM_SECONDS = 2  # so long one is read whose end does not come


def stream(kind, after):
    return b"GET " + STREAMS[kind] % after + b" HTTP/1.1\r\nAccept: text/event-stream\r\n" + HOST + b"\r\n"


# How tests/api/api_load_test.py and tests/kernel/test_hostile_callers.py flood: by two such programs, each with
# (kind, users, connections of each user).
FLOODS = [
    ("metrics", 8, 8), ("lists", 8, 8), ("devices", 8, 8), ("pipelined", 8, 8), ("bodies", 4, 8), ("bad", 8, 8),
    ("connections", 100, 1), ("unread", 8, 8), ("metrics", 60, 1), ("host", 8, 8), ("refused", 8, 8), ("stream", 3, 8),
    ("stream-filter", 3, 8), ("stream", 8, 8),
]
TCP_FLOODS = [("pipelined", 1, 100), ("bodies", 1, 100), ("connections", 1, 100)]


def has_flooded(kind, answers, closed):
    """Whether the numbers at the end show that the server was reached. A flood that reads nothing may have neither."""
    return kind == "unread" or answers + closed > 0


class Connection:
    """Sends its bytes over and over."""
    until = float("inf")  # then another one is opened

    def __init__(self, flood, uid):
        self.flood, self.uid, self.raw, self.data = flood, uid, None, b""
        self.open()

    def open(self):
        if self.raw:
            self.flood.selector.unregister(self.raw)
            self.raw.close()
            self.flood.closed += 1
        self.raw = None
        with contextlib.suppress(OSError):
            self.raw = self.flood.connect(self.uid)
        if self.raw:
            self.raw.setblocking(False)
            self.flood.selector.register(self.raw, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def move(self, events):
        try:
            if events & selectors.EVENT_READ and self.flood.kind != "unread":
                piece = self.raw.recv(1 << 20)
                self.flood.answers += piece.count(b"HTTP/1.1 ")
                if not piece:
                    return self.open()
                self.read(piece)
            if events & selectors.EVENT_WRITE:
                self.write()
        except BlockingIOError:
            pass
        except OSError:
            self.open()

    def read(self, piece):
        pass

    def write(self):
        if not self.data:
            self.flood.number += 1
            self.data = KINDS[self.flood.kind](self.flood.number)
        self.data = self.data[self.raw.send(self.data):]
        if self.flood.kind in LEAVING and (not self.data or self.flood.kind == "connections"):
            self.open()


class Stream(Connection):
    """Reads a stream of old events, and opens the next one when it has them."""

    def open(self):
        super().open()
        self.tail, self.until = b"", time.monotonic() + STREAM_SECONDS
        self.ask()

    def ask(self):
        self.after = self.flood.after
        self.data = stream(self.flood.kind, self.after)

    def read(self, piece):
        self.tail = self.tail[-64:] + piece
        if re.search(rb"HTTP/1.1 4|HTTP/1.1 5", self.tail):
            if b"HTTP/1.1 410" in self.tail and self.after == self.flood.after:
                self.flood.let_go()
            self.tail = b""
            self.ask()
            self.flood.watch(self, selectors.EVENT_READ | selectors.EVENT_WRITE)
        elif any(int(seen) >= self.flood.newest for seen in re.findall(rb"\nid: (\d+)\n", self.tail)):
            self.open()

    def write(self):
        self.data = self.data[self.raw.send(self.data):]
        if not self.data:
            self.flood.watch(self, selectors.EVENT_READ)


class Flood:
    def __init__(self, kind, address):
        self.kind, self.address, self.selector = kind, address, selectors.DefaultSelector()
        self.number = self.answers = self.closed = 0
        self.after = self.newest = 0  # revisions: of events that are gone, or else of the oldest one; of the newest one

    def connect(self, uid):
        if self.address.startswith("tcp:"):
            return socket.create_connection(("127.0.0.1", int(self.address[4:])))
        os.seteuid(uid)
        try:
            raw = socket.socket(socket.AF_UNIX)
            raw.connect(self.address)
            return raw
        finally:
            os.seteuid(0)

    def let_go(self):
        """Go on from later events: the log has no older ones."""
        self.after += (self.newest - self.after) // 16 + 1

    def find_newest(self, uid):
        with contextlib.closing(self.connect(uid)) as raw:
            raw.sendall(get(b"/devices?limit=1").replace(HOST, HOST + b"Connection: close\r\n"))
            answer = b"".join(iter(lambda: raw.recv(65536), b""))
        self.newest = json.loads(answer.partition(b"\r\n\r\n")[2])["revision"]

    def watch(self, connection, events):
        self.selector.modify(connection.raw, events, connection)

    def run(self, uids, connections):
        kind = Connection
        if self.kind in STREAMS:
            self.find_newest(uids[0])
            kind = Stream
        held = [kind(self, uid) for uid in uids for _ in range(connections)]
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        print("going", flush=True)
        while True:
            for key, events in self.selector.select(0.1):
                if key.fileobj is sys.stdin:
                    return
                key.data.move(events)
            for connection in held:
                if not connection.raw or connection.until < time.monotonic():
                    connection.open()


if __name__ == "__main__":
    flood = Flood(*sys.argv[1:3])
    first, users, count = map(int, sys.argv[3:])
    flood.run(range(first, first + users), count)
    print(flood.answers, flood.closed)
