# SPDX-License-Identifier: MIT
import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "api"), str(pathlib.Path(__file__).resolve().parents[1])]

from strict_skips import pytest_runtest_makereport  # noqa: E402, F401
from server_fixture import open_server, server  # noqa: E402, F401 (pytest finds them by name)


@pytest.fixture
def ctl(server):
    from ctl import Ctl

    return Ctl(server.path, server.directory)
