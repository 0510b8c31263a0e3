# SPDX-License-Identifier: MIT
"""stop, and start: also when the disk is in use."""
import time

from ctl import DEADLINE, REFUSED

NULL = ["target.type=null", "size=1MiB"]


def _asked(server):
    """How often a client has asked for a stop."""
    lines = server.ask("GET", "/metrics").body.decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines if 'route="/devices/{name}/stop"' in line and "http_requests_total{" in line)


def test_stop_and_start(ctl, server):
    ctl("create", "data", *NULL, "id=5")
    server.tell("busy 5 mounted at /mnt")
    assert "/mnt" in ctl("stop", "data", status=REFUSED).err
    began = time.monotonic()
    run = ctl("stop", "data", "--when-unused", "--timeout", "1300ms", status=REFUSED)
    assert time.monotonic() - began >= 1.3
    assert len(run.err.splitlines()) == 1
    assert all(value in run.err for value in ("1.30s", "--timeout", "/dev/ublkb5", "/mnt"))
    process = ctl.start("stop", "data", "--when-unused")
    before = _asked(server)
    while _asked(server) < before + 2:
        assert process.poll() is None
    server.tell("idle")
    assert process.wait(DEADLINE) == 0
    error = ctl("restart", "data", status=REFUSED).err
    assert "is stopped" in error and "'ublkctl start data'" in error
    assert ctl("start", "data").out == "data is Live\n"
    assert ctl("stop", "data", "--no-wait").out == "data is being stopped\n"
    assert ctl("start", "data", "--no-wait").out == "data is being started\n"
    ctl("stop", "data")
    assert ctl("enable", "data").out == "data is Live\n"
    ctl("disable", "data")
    for verb in ("stop", "start"):
        error = ctl(verb, "data", status=REFUSED).err
        assert "is disabled" in error and "'ublkctl enable data'" in error
