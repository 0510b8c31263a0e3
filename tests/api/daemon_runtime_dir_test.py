# SPDX-License-Identifier: MIT
"""The runtime directory is removed under a running ublkd. What that means for disks that are served is in
tests/kernel/test_adoption.py."""
import contextlib
import pathlib
import shutil
import signal

import pytest

from api_server import spec
from daemon_process import Daemon, until

@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path)
    yield daemon
    if daemon.process.poll() is None:
        daemon.stop()


@contextlib.contextmanager
def stopped(daemon):
    """It sees all that is done here at once: else it could make again what is only half removed."""
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_it_is_made_again_with_records_and_socket(daemon):
    """Without them no client could reach ublkd, no worker could be started, and nothing would report that."""
    for name in ("one", "two"):
        assert daemon.ask("POST", "/devices", spec(name)).status == 201
    before = daemon.records()
    assert len(before) == 2
    for times in (1, 2):
        with stopped(daemon):
            shutil.rmtree(daemon.run)
        until(daemon.answers)
        assert daemon.records() == before
        assert (daemon.run / "workers" / "database").read_text(encoding="utf-8")
        assert daemon.count_logged("was removed while ublkd runs, and was made again") == times
    assert [device["name"] for device in daemon.ask("GET", "/devices").json["items"]] == ["one", "two"]
    titles = [problem["title"] for problem in daemon.ask("GET", "/host").json["problems"]]
    assert "RuntimeDirectoryGone" not in titles  # no worker has lost anything
    assert daemon.ask("POST", "/devices", spec("three")).status == 201
    assert len(daemon.records()) == 3
    daemon.stop()
    daemon.start()
    assert len(daemon.ask("GET", "/devices").json["items"]) == 3


def test_files_of_devices_alone(daemon):
    """The directory stays, and nothing noticed that the next ublkd would not know the device."""
    assert daemon.ask("POST", "/devices", spec("one")).status == 201
    (record,) = (daemon.run / "workers").glob("*.record")
    text = record.read_text(encoding="utf-8")
    record.unlink()
    until(record.exists)
    assert record.read_text(encoding="utf-8") == text
    until(lambda: daemon.count_logged("Files of devices in the runtime directory") == 1)
    assert [problem["title"] for problem in daemon.ask("GET", "/host").json["problems"]].count("RuntimeDirectoryGone") == 0


def test_a_socket_alone(daemon):
    daemon.socket.unlink()
    until(daemon.answers)
    assert daemon.ask("GET", "/healthz").status == 200
    assert daemon.count_logged("The socket of the API was removed, and was made again") == 1
    daemon.stop()
    assert not daemon.socket.exists()


def test_a_runtime_directory_that_cannot_be_made_is_tried_again(daemon):
    moved = pathlib.Path(f"{daemon.run}.moved")
    with stopped(daemon):
        daemon.run.rename(moved)
        daemon.run.write_text("in its place", encoding="utf-8")
    until(lambda: daemon.count_logged("cannot be made again: Not a directory") == 1)
    assert not daemon.socket.exists()
    daemon.run.unlink()
    until(daemon.answers)
    assert daemon.count_logged("cannot be made again") == 1 and daemon.count_logged("was made again") >= 1
