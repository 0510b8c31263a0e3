# SPDX-License-Identifier: MIT
"""The tests over boots with systemd: tests/kernel/run boots one machine several times."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


@pytest.fixture(scope="session", autouse=True)
def guest():
    """Only in a throw-away machine with the /etc of these tests."""
    assert "/srv/images" in pathlib.Path("/etc/fstab").read_text(encoding="utf-8"), "run these with tests/kernel/run"
