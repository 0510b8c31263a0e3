"""The fixture that starts api_test_server, for the tests of the API and for those of ublkctl."""
import pytest


@pytest.fixture
def server(tmp_path):
    from api_server import Server  # asks the environment, which tests without a server do not have

    server = Server(tmp_path)
    assert server.started, server.process.stderr.read()
    yield server
    server.stop()
