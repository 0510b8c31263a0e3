# SPDX-License-Identifier: MIT
"""A client of ublkd over its Unix socket."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import time

from commands import CommandError

_LIMIT = 60  # seconds for any one thing; a TCG guest is slow


class Unsupported(Exception):
    """This ublkd, or the kernel, has no such thing; the text is ublkd's own."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=_LIMIT)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def request(path, method, target, body=None):
    """Ask the ublkd at a socket; return (status, decoded JSON or None)."""
    connection = _Connection(path)
    try:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, target, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    return answer.status, json.loads(text) if text else None


class Daemon:
    """An ublkd of our own, with a folder of its own; `ready`: what answers 200 once it is started; `libraries`: the
    folder of the libraries that it and its workers use."""

    def __init__(self, program, folder, options=(), poll=0.05, ready="/readyz", libraries=None):
        self.socket = os.path.join(folder, "run/ublkd.sock")
        self._folder = folder
        self._poll_seconds = poll
        self._ready = ready
        self._log = os.path.join(folder, "log")
        os.makedirs(os.path.join(folder, "run"), exist_ok=True)
        command = [program, "--state-dir", folder, "--runtime-dir", os.path.join(folder, "run"), *options]
        environment = os.environ | ({"LD_LIBRARY_PATH": libraries} if libraries else {})
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*command, "--log-level", "warning"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        self._await_ready()

    def close(self):
        """Stop it and remove its folder; the caller has deleted its devices."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self):
        """Stop it; its folder stays."""
        self._process.terminate()
        self._process.wait(_LIMIT)

    @property
    def pid(self):
        return self._process.pid

    def _await_ready(self):
        deadline = time.monotonic() + _LIMIT
        while True:
            if self._process.poll() is not None:
                raise CommandError(f"ublkd ended with {self._process.returncode}: {self._last_words()}")
            try:
                if self.request("GET", self._ready)[0] == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise CommandError(f"ublkd was not ready after {_LIMIT} s: {self._last_words()}")
            time.sleep(self._poll_seconds)

    def _last_words(self):
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return "; ".join(log.read().strip().splitlines()[-3:])

    def request(self, method, path, body=None):
        """Return (status, decoded JSON or None)."""
        return request(self.socket, method, path, body)

    def create(self, spec):
        """Create a device and return it once it is live.

        Polls instead of using ?wait=ready: a fault of that is for the tests to find,
        and must not spoil a measurement."""
        self._must((201,), "POST", "/devices", spec)
        body = self._poll(spec["name"], lambda body: body and body["status"]["phase"] in ("Live", "Failed", "Backoff"))
        if body["status"]["phase"] != "Live":
            condition = body["status"]["conditions"][0]
            error = Unsupported if condition["reason"] == "NotSupported" else CommandError
            raise error(condition["message"])
        return body

    def device(self, name):
        """Return a device, or None if there is none."""
        status, body = self.request("GET", f"/devices/{name}")
        if status not in (200, 404):
            raise CommandError(f"ublkd answered {status} to GET /devices/{name}: {json.dumps(body)}")
        return body if status == 200 else None

    def delete(self, name):
        """Remove a device, in use or not, if there is one, and return when it is removed."""
        self._must((202, 404), "DELETE", f"/devices/{name}?force=true")
        self._poll(name, lambda body: body is None)

    def _must(self, expected, method, path, body=None):
        status, answer = self.request(method, path, body)
        if status not in expected:
            raise CommandError(f"ublkd answered {status} to {method} {path}: {json.dumps(answer)}")

    def _poll(self, name, done):
        deadline = time.monotonic() + _LIMIT
        while not done(body := self.device(name)):
            if time.monotonic() > deadline:
                raise CommandError(f"ublkd did not get there in {_LIMIT} s: {json.dumps(body)}; {self._last_words()}")
            time.sleep(self._poll_seconds)
        return body
