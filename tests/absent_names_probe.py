# SPDX-License-Identifier: MIT
"""Asks about two names, as another user: absent_names.py has the requests, and adds a call of probe() to this text."""
import http.client
import json
import socket
import time


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def probe(path, requests, names, rounds):
    """Ask about both names, of equal length, in turn. Print for each request the answers for each, and the microseconds of each pair."""
    connection = _Connection(path)
    found = [{"request": request, "answers": [[], []], "times": []} for request in requests]
    for number in range(rounds):
        for result, (method, target, body, headers) in zip(found, requests):
            pair = [0, 0]
            for which in (0, 1) if number % 2 else (1, 0):
                name = names[which]
                data = None if body is None else json.dumps(body).replace("NAME", name)
                kind = {} if body is None else {"Content-Type": "application/json"}
                before = time.perf_counter()
                connection.request(method, target.replace("NAME", name), data, {**kind, **headers})
                response = connection.getresponse()
                text = response.read().decode()
                pair[which] = (time.perf_counter() - before) * 1e6
                kept = sorted(header for header in response.getheaders() if header[0] != "Date")
                answer = [response.status, [*map(list, kept)], text.replace(name, "NAME")]
                if answer not in result["answers"][which]:
                    result["answers"][which].append(answer)
            result["times"].append(pair)
    print(json.dumps(found))
