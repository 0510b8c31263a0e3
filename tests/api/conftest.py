import pytest


@pytest.fixture
def server(tmp_path):
    from api_server import Server

    server = Server(tmp_path)
    assert server.started, server.process.stderr.read()
    yield server
    server.stop()
