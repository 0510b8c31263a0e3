# SPDX-License-Identifier: MIT
"""HTTP/1.1 over a Unix socket with the standard library alone.

`requests` needs 0.3 s of CPU time for each request in an emulated guest, most of it Python's, and tests that wait for
something ask many times.
"""

import contextlib
import http.client
import json as json_text
import socket
from dataclasses import dataclass


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass
class Response:
    """An answer that was read to its end."""

    status_code: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def text(self):
        """The body."""
        return self.content.decode()

    def json(self):
        """What the body says."""
        return json_text.loads(self.content)


def _send(connection, method, target, data, headers):
    """Begin an exchange; return the answer, its body not yet read."""
    with contextlib.suppress(BrokenPipeError):  # the answer to a request that is too long comes before its end
        connection.request(method, target, data, {"Connection": "close", **headers})
    return connection.getresponse()


def request(path, method, target, *, json=None, data=None, headers=None, timeout=None):  # pylint: disable=too-many-arguments
    """Send a request over a connection of its own to the socket at `path`; return the response, whatever it is.

    The body is `json`, as JSON, or else `data`. Raises OSError when there is no answer.
    """
    headers = dict(headers or {})
    if json is not None:
        data = json_text.dumps(json)
        headers.setdefault("Content-Type", "application/json")
    connection = _Connection(str(path), timeout)
    try:
        answer = _send(connection, method, target, data.encode() if isinstance(data, str) else data, headers)
        return Response(answer.status, answer.headers, answer.read())
    except http.client.HTTPException as problem:
        raise ConnectionError(f"{method} {target}: {problem!r}") from problem
    finally:
        connection.close()


def stream(path, target, headers, timeout):
    """GET what has no end: the answer, whose lines can be read as they come; the connection is closed with it."""
    return _send(_Connection(str(path), timeout), "GET", target, None, headers)
