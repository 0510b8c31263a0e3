# SPDX-License-Identifier: MIT
"""Requests from inside a container, with its curl."""

import json


def _arguments(method, path, body):
    data = ["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body is not None else []
    return ["-sS", "-X", method, *data, "--unix-socket", "/run/ublkd/ublkd.sock", f"http://localhost{path}"]


class Asker:
    """What has `output()`, which runs a command in the container and returns what it has printed."""

    def output(self, *command):
        raise NotImplementedError

    def ask(self, method, path, body=None):
        """Send a request; return the status and the JSON of the answer, or None."""
        text, _, status = self.output("curl", *_arguments(method, path, body), "-w", "\n%{http_code}").rpartition("\n")
        return int(status), json.loads(text) if text else None

    def ask_each(self, *requests):
        """Send one after the other; return each status. A process in a container takes a second to start."""
        words = [word for request in requests for word in ("--next", *_arguments(*request), "-o", "/dev/null", "-w", "%{http_code}\n")]
        return [int(status) for status in self.output("curl", *words[1:]).split()]
