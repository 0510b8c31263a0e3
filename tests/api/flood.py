# SPDX-License-Identifier: MIT
"""Send requests of many users as fast as the server takes them, until stdin ends.

    flood.py KIND SOCKET FIRST_UID USERS CONNECTIONS     each user has so many connections
    flood.py KIND tcp:PORT 0 1 CONNECTIONS

Prints "going", and at the end how many answers came and how many connections were refused or closed."""
import contextlib
import os
import selectors
import socket
import sys

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
}


# How tests/api/api_load_test.py and tests/kernel/test_hostile_callers.py flood: by two such programs, each with
# (kind, users, connections of each user).
FLOODS = [
    ("metrics", 8, 8), ("lists", 8, 8), ("devices", 8, 8), ("pipelined", 8, 8), ("bodies", 4, 8), ("bad", 8, 8),
    ("connections", 100, 1), ("unread", 8, 8), ("metrics", 60, 1),
]
TCP_FLOODS = [("pipelined", 1, 100), ("bodies", 1, 100), ("connections", 1, 100)]


def has_flooded(kind, answers, closed):
    """Whether the numbers at the end show that the server was reached. A flood that reads nothing may have neither."""
    return kind == "unread" or answers + closed > 0


class Connection:
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
            if events & selectors.EVENT_WRITE:
                if not self.data:
                    self.flood.number += 1
                    self.data = KINDS[self.flood.kind](self.flood.number)
                self.data = self.data[self.raw.send(self.data):]
                if self.flood.kind == "connections":
                    self.open()
        except BlockingIOError:
            pass
        except OSError:
            self.open()


class Flood:
    def __init__(self, kind, address):
        self.kind, self.address, self.selector = kind, address, selectors.DefaultSelector()
        self.number = self.answers = self.closed = 0

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

    def run(self, uids, connections):
        held = [Connection(self, uid) for uid in uids for _ in range(connections)]
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        print("going", flush=True)
        while True:
            for key, events in self.selector.select(0.1):
                if key.fileobj is sys.stdin:
                    return
                key.data.move(events)
            for connection in held:
                if not connection.raw:
                    connection.open()


if __name__ == "__main__":
    flood = Flood(*sys.argv[1:3])
    first, users, count = map(int, sys.argv[3:])
    flood.run(range(first, first + users), count)
    print(flood.answers, flood.closed)
