import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))


@pytest.fixture
def server(tmp_path):
    from api_server import Server

    server = Server(tmp_path)
    assert server.started, server.process.stderr.read()
    yield server
    server.stop()


@pytest.fixture
def ctl(server):
    from ctl import Ctl

    return Ctl(server.path, server.directory)
