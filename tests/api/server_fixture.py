# SPDX-License-Identifier: MIT
"""The fixtures that start api_test_server, for the tests of the API and of ublkctl."""
import os
import tempfile

import pytest


def running(directory, *arguments):
    from api_server import Server  # asks the environment, which tests without a server do not have

    server = Server(directory, *arguments)
    assert server.started, server.process.stderr.read()
    yield server
    server.stop()


@pytest.fixture
def server(tmp_path):
    yield from running(tmp_path)


@pytest.fixture
def open_server():
    """A server that everyone may read from, and whose directory every user can reach. Each pytest that starts resets the modes below tmp_path, so a mode
    set there does not last while other tests run."""
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        os.chmod(directory, 0o755)
        yield from running(directory, "--readers", "everyone")
