# SPDX-License-Identifier: MIT
"""docs/backup.md: its commands, with a ublkd without a driver."""
import pathlib
import re
import subprocess

import pytest
from api_server import spec
from daemon_process import Daemon

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs/backup.md").read_text()


def commands(heading):
    """The commands of a section: those before, between and after those for systemd, which is not here."""
    (block,) = re.findall(rf"^## {heading}\n(?:(?!## )[^\n]*\n)*?```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    before, between, after = re.split(r"^systemctl (?:stop|start) .*\n", block, flags=re.MULTILINE)
    assert before == ""
    return between, after


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.stop()


def test_a_backup_can_be_restored(daemon, tmp_path):
    """With uids, and without what came after it: a -wal that stays would bring that back, or damage the copy."""
    backup = tmp_path / "backup"
    backup.mkdir()

    def run(script):
        script = script.replace("/var/lib/ublkd", str(daemon.state)).replace("/backup", str(backup)).replace("/etc/ublkd", str(tmp_path / "root"))
        subprocess.run(["sh", "-euc", script], capture_output=True, text=True, timeout=60, check=True)

    def uids():
        return {item["name"]: item["uid"] for item in daemon.ask("GET", "/devices").json["items"]}

    for name in ("first", "second"):
        assert daemon.ask("PUT", f"/devices/{name}", spec(name, enabled=False)).status == 201
    before = uids()
    stopped, running = commands("The database, as it is")
    daemon.stop()
    run(stopped)
    daemon.start()
    run(running)
    assert uids() == before
    assert daemon.ask("PUT", "/devices/third", spec("third", enabled=False)).status == 201
    daemon.process.kill()  # so that a -wal stays
    daemon.process.wait(60)
    assert (daemon.state / "ublkd.db-wal").stat().st_size > 0
    stopped, running = commands("Restore")
    assert running == "ublkctl host\n"
    run(stopped)
    for record in (daemon.run / "workers").glob("*.record"):
        record.unlink()  # as after a reboot
    daemon.start()
    assert uids() == before
    assert (daemon.state / "ublkd.db").stat().st_mode & 0o777 == 0o600
