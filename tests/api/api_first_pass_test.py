# SPDX-License-Identifier: MIT
"""Requests that arrive before ublkd has looked at every device, such as the request that starts it by its socket."""
import json

import pytest

from api_server import check_problem, send, spec

PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest.mark.parametrize("method, path, body, headers", [
    ("GET", "/devices", None, None), ("GET", "/devices/data", None, None), ("GET", "/metrics", None, None),
    ("GET", "/devices/data", None, {"If-None-Match": '"1.1"'}), ("GET", "/devices/data/stats", None, None),
    ("GET", "/events", None, {"Accept": "application/json"}), ("GET", "/events", None, {"Accept": "text/event-stream"}),
    ("POST", "/devices", spec(), None), ("PUT", "/devices/data", spec(), None),
    ("PATCH", "/devices/data", {"labels": {"a": "b"}}, PATCH), ("POST", "/devices/data/recover", None, None),
    ("POST", "/devices/data/restart", None, None), ("DELETE", "/devices/data", None, None), ("GET", "/devices/none", None, None),
])
def test_answers_about_devices_wait_for_the_first_pass(server, method, path, body, headers):
    """The request that starts ublkd arrives before ublkd knows of any disk: it is held until ublkd does."""
    server.ask("POST", "/devices", spec())
    server.tell("auto off")
    server.tell("settled off")
    for free in ("/healthz", "/host", "/targets", "/schemas", "/openapi.json"):
        assert server.ask("GET", free).status == 200, "their answers name no device"
    check_problem(server.ask("GET", "/readyz"), 503, "not-ready")
    connection = server.connect()
    send(connection, method, path, body, headers)
    server.until("first-passes", 1)  # from here on it has some seconds
    server.tell("status data Live Live It serves.")
    assert server.tell("first-passes") == 1
    server.tell("settled on")
    response = connection.getresponse()
    assert response.status in (200, 201, 202, 404), response.status
    if method == "GET" and path.startswith("/devices") and response.status == 200 and "stats" not in path:
        device = json.loads(response.read())
        assert (device["items"][0] if "items" in device else device)["status"]["phase"] == "Live"
    connection.close()
    assert server.ask("GET", "/devices").status == 200, "not held any more"


def test_a_first_pass_without_end(server):
    """After some seconds the answer comes anyway."""
    server.ask("POST", "/devices", spec())
    server.tell("settled off")
    server.tell("status data Unknown NotYetKnown It is not known.")
    device = server.ask("GET", "/devices").json["items"][0]
    assert device["status"]["phase"] is None and device["status"]["device"] is None
    (ready,) = [c for c in device["status"]["conditions"] if c["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "NotYetKnown")


def test_a_client_that_leaves_during_the_first_pass(server):
    server.tell("settled off")
    connection = server.connect()
    send(connection, "GET", "/devices")
    server.until("first-passes", 1)
    connection.close()
    server.until("first-passes", 0)
    connection = server.connect()
    send(connection, "GET", "/devices")
    server.until("first-passes", 1)  # and it ends with the server
