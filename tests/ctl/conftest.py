# SPDX-License-Identifier: MIT
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))

from server_fixture import open_server, server  # noqa: E402, F401 (pytest finds them by name)


@pytest.fixture
def ctl(server):
    from ctl import Ctl

    return Ctl(server.path, server.directory)
