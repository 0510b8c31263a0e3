# SPDX-License-Identifier: MIT
"""The fixtures that start api_test_server, for the tests of the API and for those of ublkctl."""
import os
import tempfile

import pytest


def running(directory):
    from api_server import Server  # asks the environment, which tests without a server do not have

    server = Server(directory)
    assert server.started, server.process.stderr.read()
    yield server
    server.stop()


@pytest.fixture
def server(tmp_path):
    yield from running(tmp_path)


@pytest.fixture
def open_server():
    """One whose directory everybody can reach. Each pytest that starts closes what is under tmp_path to others
    again, so a mode set there does not last beside tests that run at the same time."""
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        os.chmod(directory, 0o755)
        yield from running(directory)
