# SPDX-License-Identifier: MIT
"""A ublkd after a boot: it removes temporary devices, and keeps all else."""
import sqlite3

import pytest

from api_server import UnixConnection, ask, spec
from daemon_process import Daemon, until

OTHER_BOOT = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path)
    yield daemon
    if daemon.process.poll() is None:
        daemon.stop()


def boot(daemon, ending):
    """Stop the machine, and start it again; the runtime directory is empty then."""
    if ending == "shutdown":
        daemon.stop()
    else:
        daemon.process.kill()
        daemon.process.wait()
    for path in sorted(daemon.run.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    with sqlite3.connect(daemon.state / "ublkd.db") as database:
        database.execute("UPDATE device SET temporary_boot = ? WHERE temporary_boot <> ''", (OTHER_BOOT,))
    database.close()
    daemon.start()


def names(daemon):
    return [item["name"] for item in daemon.ask("GET", "/devices").json["items"]]


def reasons(daemon, name):
    """Those of its events, the newest first."""
    connection = UnixConnection(str(daemon.socket))
    try:
        answer = ask(connection, "GET", f"/events?device={name}", headers={"Accept": "application/json"})
        return [event["reason"] for event in answer.json["items"]]
    finally:
        connection.close()


@pytest.mark.parametrize("ending", ["shutdown", "power cut"])
def test_a_temporary_device_is_gone_after_a_boot(daemon, ending):
    for name, more in (("plain", {}), ("gone", {"temporary": True}), ("kept", {"temporary": True})):
        assert daemon.ask("POST", "/devices", spec(name, **more)).status == 201
    assert daemon.ask("PUT", "/devices/kept", spec("kept", temporary=False)).status == 200
    before = {item["name"]: (item["uid"], item["spec"]) for item in daemon.ask("GET", "/devices").json["items"]}
    boot(daemon, ending)
    until(lambda: "gone" not in names(daemon))
    after = {item["name"]: (item["uid"], item["spec"]) for item in daemon.ask("GET", "/devices").json["items"]}
    assert after == {name: before[name] for name in ("kept", "plain")}
    assert reasons(daemon, "gone")[:2] == ["Removed", "BootOver"] and "BootOver" not in reasons(daemon, "kept")
    assert daemon.ask("POST", "/devices", spec("gone", temporary=True)).status == 201, "the name is free"


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_temporary_device_outlives_ublkd(daemon, ending):
    assert daemon.ask("POST", "/devices", spec("data", temporary=True)).status == 201
    uid = daemon.ask("GET", "/devices/data").json["uid"]
    if ending == "stop":
        daemon.stop()
    else:
        daemon.process.kill()
        daemon.process.wait()
    daemon.start()
    assert daemon.ask("GET", "/devices/data").json["uid"] == uid and "BootOver" not in reasons(daemon, "data")
