# SPDX-License-Identifier: MIT
"""GET /host: the machine, and what is wrong with devices that have their disks."""

import os

import pytest
from api_server import Server, spec


def test_host(server):
    host = server.ask("GET", "/host").json
    assert host["kernel"] == os.uname().release
    assert host["ublk"] == {"features": [], "available": False}
    assert host["walls"]["landlock"] >= 0 and host["walls"]["callFilter"]
    assert host["limits"]["queueDepth"] == 4096
    assert host["problems"] == [{"title": "NoDriver", "detail": "The ublk driver is not loaded."}]


@pytest.mark.parametrize("sandbox", ["required", "best-effort"])
def test_the_host_shows_whether_all_walls_are_required(tmp_path, sandbox):
    server = Server(tmp_path, "--sandbox", sandbox)
    assert server.ask("GET", "/host").json["policy"]["sandbox"] == sandbox
    server.stop()


def test_the_host_names_a_device_whose_disk_cannot_be_served(server):
    """Its users hang, and only a list of all devices named it."""
    server.ask("POST", "/devices?wait=ready", spec())
    server.ask("POST", "/devices?wait=ready", spec("other"))
    message = "/srv/a.img is in use by process 4211 (dd)."
    server.tell(f"status data Backoff BackingInUse {message}")
    server.tell("status other Backoff BackingFileMissing It is missing.")  # it has no disk: no opener waits
    (problem,) = [item for item in server.ask("GET", "/host").json["problems"] if "Device" in item["detail"]]
    assert problem["title"] == "BackingInUse"
    assert problem["detail"].startswith('Device "data": /dev/ublkb0 ') and problem["detail"].endswith(f" {message}")


@pytest.mark.parametrize("kind, reason", [("Progress", "WorkerHung"), ("ErrorFree", "WriteFailed"), ("Space", "StoreFull"),
                                          ("PathLeadsToStore", "PathGone")])
def test_the_host_names_a_fault_of_a_disk_that_is_served(server, kind, reason):
    """The disk is Live, and "Nothing is wrong here" was the answer."""
    server.ask("POST", "/devices?wait=ready", spec())
    server.tell(f"condition data {kind} False {reason} It is so.")
    (problem,) = [item for item in server.ask("GET", "/host").json["problems"] if "Device" in item["detail"]]
    assert problem == {"title": reason, "detail": 'Device "data": It is so.'}
