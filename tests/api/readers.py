# SPDX-License-Identifier: MIT
"""Clients of other users, and what makes the server work for them."""
import contextlib
import os
import re
import socket

from api_server import DEADLINE, spec

FIRST_UID = 200000  # as /etc/subuid gives 65536 of them to a user


@contextlib.contextmanager
def be(uid):
    """Sockets that connect meanwhile belong to that user."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def begin(server, uid, path, accept="*/*"):
    """A connection of a user that asks and does not read."""
    with be(uid):
        raw = server.socket()
    raw.settimeout(DEADLINE)
    raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n".encode())
    return raw


def status(raw):
    return int(raw.recv(12, socket.MSG_WAITALL | socket.MSG_PEEK).split()[1])


def fill(server, devices):
    """Devices whose list takes long."""
    for number in range(devices):
        body = spec(f"d{number}", labels={f"k{label}": "v" * 200 for label in range(40)})
        assert server.ask("PUT", f"/devices/d{number}", body).status == 201


def lists_answered(metrics):
    """How many lists the server had answered when it printed these metrics."""
    found = re.search(rb'^ublkd_http_requests_total{method="GET",route="/devices",code="2xx"} (\d+)$', metrics, re.MULTILINE)
    return int(found.group(1)) if found else 0
