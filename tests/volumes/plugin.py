# SPDX-License-Identifier: MIT
"""A ublkd-volumes, and the calls that an engine sends to it."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

DEADLINE = 120  # above the 90 s of a Mount


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("plugin", timeout=DEADLINE)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Plugin:
    """ublkd-volumes in front of the ublkd at `socket_of_ublkd`."""

    def __init__(self, program, directory, socket_of_ublkd, *options):
        self.path = pathlib.Path(directory) / "plugins" / "ublkd.sock"
        self._command = [program, "--listen", str(self.path), "--socket", str(socket_of_ublkd), *options]
        self.process = None

    def start(self):
        """Start it, and wait until it listens."""
        self.process = subprocess.Popen(self._command)
        deadline = time.monotonic() + DEADLINE
        while not self._listens():
            assert self.process.poll() is None and time.monotonic() < deadline
        return self

    def _listens(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(os.fsencode(self.path)) == 0

    def kill(self):
        """SIGKILL, as a crash: its socket stays."""
        self.process.kill()
        self.process.wait(DEADLINE)

    def stop(self):
        """SIGTERM; it must end well."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(DEADLINE) == 0

    def ask(self, path, body=None, method="POST"):
        """Send a request as Docker does; return the status and the answer."""
        connection = _Connection(self.path)
        headers = {"Accept": "application/vnd.docker.plugins.v1.2+json"}
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        response = connection.getresponse()
        assert response.getheader("Content-Type") == "application/vnd.docker.plugins.v1.1+json"
        answer = json.loads(response.read())
        connection.close()
        return response.status, answer

    def call(self, name, **body):
        """A call that must succeed; return the answer without "Err"."""
        status, answer = self.ask(f"/VolumeDriver.{name}", body)
        assert status == 200 and answer.pop("Err") == "", answer
        return answer

    def fail(self, name, **body):
        """A call that must fail; return its error."""
        status, answer = self.ask(f"/VolumeDriver.{name}", body)
        assert status == 500 and answer["Err"] and list(answer) == ["Err"], answer
        return answer["Err"]
