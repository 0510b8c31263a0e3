# SPDX-License-Identifier: MIT
"""Metrics that ublkd does not read on its loop."""
import re

import pytest

from api_server import spec
from daemon_process import Daemon, until


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.stop()


def sizes(daemon):
    text = daemon.ask("GET", "/metrics").body.decode()
    return {name: int(float(value)) for name, value in re.findall(r'^ublkd_store_bytes{file="([^"]+)"} (\S+)$', text, re.MULTILINE)}


def test_the_sizes_of_the_database(daemon):
    """They are those of the last look, which each scrape begins."""

    def are_true():
        return sizes(daemon) == {name: (daemon.state / name).stat().st_size for name in ("ublkd.db", "ublkd.db-wal")}

    until(are_true)
    before = sizes(daemon)
    for number in range(20):
        assert daemon.ask("POST", "/devices", spec(f"data-{number}")).status == 201
    until(lambda: sizes(daemon) != before and are_true())


def test_no_size_of_a_file_that_is_not_there(daemon):
    """It was 0, as of an empty database."""
    until(lambda: "ublkd.db" in sizes(daemon))
    (daemon.state / "ublkd.db").rename(daemon.state / "elsewhere.db")
    until(lambda: "ublkd.db" not in sizes(daemon))
    (daemon.state / "elsewhere.db").rename(daemon.state / "ublkd.db")
    until(lambda: "ublkd.db" in sizes(daemon))
