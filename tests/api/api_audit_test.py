# SPDX-License-Identifier: MIT
"""The log has a line for each request that asks for a change: who, by which right, and what became of it."""
import os
import re
import tempfile

from api_listen_test import connect_tcp, free_port
from api_server import Server, ask, spec
from api_wait_test import begin
from other_user import CONTAINERS, NEEDS_ROOT, run_as_user
from server_fixture import write_policy

LINE = re.compile(r"^\S+Z info: (?:(?P<device>\w+): )?(?P<request>(?:GET|POST|PUT|PATCH|DELETE) \S+) by (?P<client>.*), "
                  r"(?P<right>as \w+|refused): (?P<end>.*)$")
MEMBERS = 4242


class Audited:
    """A server whose log is read when it has stopped."""

    def __init__(self, *arguments, listen=None, rules=(), subuids=""):
        self.directory = tempfile.TemporaryDirectory(prefix="ublkd-api-")
        os.chmod(self.directory.name, 0o755)
        if rules:
            with open(os.path.join(self.directory.name, "subuid"), "w", encoding="ascii") as file:
                file.write(subuids)
            arguments += tuple(write_policy(self.directory.name, rules=rules))
        self.server = Server(self.directory.name, *arguments, listen=listen)
        assert self.server.started
        self.output = None

    def __enter__(self):
        return self.server

    def __exit__(self, *_):
        self.output = self.server.stop()
        self.directory.cleanup()

    def lines(self):
        found = filter(None, map(LINE.match, self.output.splitlines()))
        return [(line["device"], line["request"], line["right"], line["end"]) for line in found]

    def clients(self):
        return [line["client"] for line in filter(None, map(LINE.match, self.output.splitlines()))]


def test_each_request_for_a_change_is_one_line():
    audited = Audited()
    with audited as server:
        for method, target, body in (("POST", "/devices?wait", spec()), ("POST", "/devices", spec(size="2TiB")),
                                     ("GET", "/devices/data", None), ("PATCH", "/devices/data", {"labels": {"a": "b"}}),
                                     ("PUT", "/devices/data", {"size": 1}), ("GET", "/devices", None), ("PATCH", "/nothing", {}),
                                     ("DELETE", "/devices/data?force=true&wait", None), ("DELETE", "/devices/data", None)):
            server.ask(method, target, body)
    assert audited.lines() == [
        ("data", "POST /devices?wait", "as root", "201"), (None, "POST /devices", "as root", "409"),
        ("data", "PATCH /devices/data", "as root", "200"), ("data", "PUT /devices/data", "as root", "422"),
        ("data", "DELETE /devices/data?force=true&wait", "as root", "204"), ("data", "DELETE /devices/data", "as root", "404")]
    assert set(audited.clients()) == {f"user {os.geteuid()} (pid {os.getpid()})"}


CHANGE = """
for method, target in (("DELETE", "/devices/data"), ("GET", "/devices/data"), ("POST", "/nothing")):
    ask(UnixConnection(path), method, target)
"""


@NEEDS_ROOT
def test_the_right_of_the_client_is_named():
    audited = Audited("--administrators", str(MEMBERS))
    with audited as server:
        run_as_user(server, CHANGE, groups=[MEMBERS])
        run_as_user(server, CHANGE)
        run_as_user(server, CHANGE, uid=0, container=CONTAINERS["PIDs"])
        run_as_user(server, CHANGE, container=CONTAINERS["root directory"])
    refused = [(None, "DELETE /devices/data", "refused", "403"), (None, "POST /nothing", "refused", "403")]
    assert audited.lines() == [("data", "DELETE /devices/data", "as administrators", "404"), *refused, *refused, *refused]
    assert [re.sub(r"pid \d+", "pid", client) for client in audited.clients()] == [
        "user 65534 (pid)"] * 3 + ["user 0 (pid, in a container)"] * 2 + ["user 65534 (pid, in a container)"] * 2


def test_the_token():
    port = free_port()
    audited = Audited(listen=[f"tcp://127.0.0.1:{port}"])
    with audited as server:
        with open(os.path.join(server.directory, "api-token"), encoding="ascii") as file:
            token = file.read().strip()
        for headers in ({"Authorization": f"Bearer {token}"}, {"Authorization": "Bearer wrong"}, {}):
            ask(connect_tcp(port), "DELETE", "/devices/data", None, headers)
    assert audited.lines() == [("data", "DELETE /devices/data", "as token", "404")] + [
        (None, "DELETE /devices/data", "refused", "401")] * 2
    assert set(audited.clients()) == {"a client over TCP"}


def test_a_client_that_leaves_while_it_waits():
    """What it asked for is done nevertheless, so the log has it."""
    audited = Audited()
    with audited as server:
        server.tell("auto off")
        connection = begin(server, "POST", "/devices?wait", spec())
        connection.close()
        server.until("waits", 0)
    assert audited.lines() == [(None, "POST /devices?wait", "as root", "ended without an answer")]


@NEEDS_ROOT
def test_refusals_do_not_flood_the_log():
    flood = 'for _ in range(100):\n    ask(UnixConnection(path), "DELETE", "/devices/data")\n'
    audited = Audited()
    with audited as server:
        run_as_user(server, flood)
        server.ask("DELETE", "/devices/data")
    *refused, last = (line[2] for line in audited.lines())
    assert set(refused) == {"refused"} and last == "as root"
    assert 30 <= len(refused) <= 60  # a minute may end meanwhile


@NEEDS_ROOT
def test_a_flood_of_refusals_of_one_user_leaves_those_of_another():
    flood = 'for _ in range(100):\n    ask(UnixConnection(path), "DELETE", "/devices/data")\n'
    audited = Audited()
    with audited as server:
        run_as_user(server, flood, uid=1234)
        run_as_user(server, 'ask(UnixConnection(path), "DELETE", "/devices/other")', uid=1235)
    assert (None, "DELETE /devices/other", "refused", "403") in audited.lines()


@NEEDS_ROOT
def test_refusals_of_tenants_of_one_range_count_together():
    """One user can have processes as each of them: 30 a minute are written of all, and that of another tenant as well."""
    rule = {"name": "containers", "who": {"users": [1234], "subuidsOf": ["daemon"]}, "targets": ["null"], "devices": 1, "size": "1GiB"}
    audited = Audited(rules=[rule], subuids="daemon:200000:65536\n")
    with audited as server:
        for uid in (200000, 200001, 265535):
            run_as_user(server, 'for _ in range(15):\n    ask(UnixConnection(path), "DELETE", "/devices/data")\n', uid=uid)
        run_as_user(server, 'ask(UnixConnection(path), "DELETE", "/devices/other")', uid=1234)
    lines = [line[1:] for line in audited.lines()]
    assert lines == [("DELETE /devices/data", "as tenant", "404")] * 30 + [("DELETE /devices/other", "as tenant", "404")]


FORGED = """
for name in ("data%3A%20DELETE", "data%0Aother", "data%20by%20user%200"):
    ask(UnixConnection(path), "DELETE", f"/devices/{name}")
"""


@NEEDS_ROOT
def test_a_name_cannot_forge_a_line():
    audited = Audited("--readers", "everyone")
    with audited as server:
        run_as_user(server, FORGED)
    assert audited.lines() == [(None, f"DELETE /devices/data{end}", "refused", "403")
                               for end in ("%3A%20DELETE", "%0Aother", "%20by%20user%200")]
