# SPDX-License-Identifier: MIT
"""Start api_test_server and send it commands. Nothing here sleeps: the tests ask for the state that they wait for."""
import contextlib
import http.client
import json
import os
import socket
import subprocess
import time

import conformance

PROGRAM = os.environ["UBLKD_API_SERVER"]
DEADLINE = 60  # of what comes at once, but on a machine that has much else to do

# With the address sanitizer, freed memory is kept from use for a while: 256 MiB of it, which would count as the server's
# where a test bounds what clients make it hold.
QUARANTINE = "quarantine_size_mb=8"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.unix_path)  # with a timeout it would fail at a full backlog instead of waiting
        self.sock.settimeout(self.timeout)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        self.type = (self.headers.get("Content-Type") or "").split(";")[0]

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    """One api_test_server. `path` is its Unix socket; `under`: a command that starts it."""

    def __init__(self, directory, *arguments, listen=None, under=()):
        self.directory = str(directory)
        self.path = os.path.join(self.directory, "api.sock")
        addresses = [self.path] if listen is None else listen
        command = [*under, PROGRAM, "--state-dir", self.directory, *arguments]
        for address in addresses:
            command += ["--listen", address]
        options = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), QUARANTINE)))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, bufsize=1, env={**os.environ, "ASAN_OPTIONS": options})
        self.started = self.process.stdout.readline() == "ready\n"

    def tell(self, command):
        """Send a command, return its number; a negative number is a failure."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        value = int(self.process.stdout.readline())
        assert value >= 0, f"{command}: {value}"
        return value

    def until(self, command, value):
        """Repeat the command until the answer is `value`: the server's loop must turn."""
        end = time.monotonic() + DEADLINE
        while self.tell(command) != value:
            assert time.monotonic() < end, f"{command} does not become {value}"

    def stop(self):
        """End it cleanly; fail on a sanitizer's report or a bad exit status. Return its stderr."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        output = self.process.stderr.read()
        status = self.process.wait(DEADLINE)
        assert status == (0 if self.started else 1), output
        assert "Sanitizer" not in output and "runtime error" not in output, output
        return output

    def kill(self):
        self.process.kill()
        self.process.wait(DEADLINE)

    def memory(self, field="VmRSS:"):
        """Bytes that it has in memory now."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(field)) * 1024

    def most_memory(self):
        """Bytes that it ever had in memory."""
        return self.memory("VmHWM:")

    def connect(self):
        return UnixConnection(self.path)

    def socket(self):
        raw = socket.socket(socket.AF_UNIX)
        raw.connect(self.path)
        raw.settimeout(DEADLINE)
        return raw

    def ask(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            return ask(connection, method, path, body, headers)
        finally:
            connection.close()


def send(connection, method, path, body=None, headers=None):
    headers = dict(headers or {})
    if body is not None and not isinstance(body, (bytes, str)):
        body = json.dumps(body)
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    connection.request(method, path, body, headers)


def ask(connection, method, path, body=None, headers=None):
    send(connection, method, path, body, headers)
    answer = Answer(connection.getresponse())
    conformance.check(method, path, answer)
    return answer


def read_all(raw):
    """Everything that the server sends until it closes."""
    data = b""
    while True:
        try:
            piece = raw.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


def read_status(raw):
    return int(read_all(raw).split(b" ", 2)[1])


def spec(name="data", **more):
    return {"name": name, "target": {"type": "null"}, "size": "1MiB", **more}


def check_problem(answer, status, name):
    """The answer is a complete problem of the kind `name`."""
    assert answer.status == status, answer.body
    assert answer.type == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    problem = answer.json
    assert problem["type"] == "urn:ublkd:problem:" + name
    assert problem["status"] == status
    assert problem["title"] and problem["detail"]
    assert problem["instance"].startswith("/")
    return problem
