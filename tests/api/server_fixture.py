# SPDX-License-Identifier: MIT
"""The fixtures that start api_test_server, for the tests of the API and of ublkctl."""
import json
import os
import tempfile

import pytest


def write_policy(directory, **policy):
    """Write a policy with these rules or pools; return what makes a server read it."""
    path = os.path.join(directory, "policy.d")
    os.makedirs(path, 0o755, exist_ok=True)
    with open(os.path.join(path, "test.json"), "w", encoding="utf-8") as file:
        json.dump(policy, file)
    return ["--policy", path]


def running(directory, *arguments):
    from api_server import Server  # asks the environment, which tests without a server do not have

    server = Server(directory, *arguments)
    assert server.started, server.process.stderr.read()
    yield server
    server.stop()


def reachable(*arguments, device=None):
    """A server whose directory every user can reach, with a device if its spec is given. Each pytest that starts resets the
    modes below tmp_path, so a mode set there does not last while other tests run."""
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        os.chmod(directory, 0o755)
        for server in running(directory, *arguments):
            assert not device or server.ask("POST", "/devices?wait=ready", device).status == 201
            yield server


@pytest.fixture
def server(tmp_path):
    yield from running(tmp_path)


@pytest.fixture
def open_server():
    """A server that everyone may read from."""
    yield from reachable("--readers", "everyone")
