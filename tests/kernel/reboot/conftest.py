# SPDX-License-Identifier: MIT
"""The tests over a reboot: tests/kernel/run boots one machine twice."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import world  # noqa: E402, pylint: disable=wrong-import-position


@pytest.fixture
def unmounted():
    """No file system of the disk, in the end. Name it before a daemon that keeps its state there."""
    yield
    world.unmount()
