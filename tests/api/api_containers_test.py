# SPDX-License-Identifier: MIT
"""A client in a container: its user 0 is not root of the host, and its groups are not those of the host."""
import signal

import pytest
from api_server import spec
from other_user import CONTAINERS, NEEDS_ROOT, PRIVATE_MOUNTS, run_as_user, user
from server_fixture import reachable

pytestmark = NEEDS_ROOT
ADMINISTRATORS, READERS = 4242, 4243


def serve(*arguments):
    for server in reachable(*arguments, device=spec()):
        yield server
        assert server.ask("GET", "/devices/data").json["generation"] == 1


@pytest.fixture(name="server")
def _server():
    yield from serve("--administrators", str(ADMINISTRATORS), "--readers", str(READERS))


@pytest.fixture
def everyone():
    yield from serve("--readers", "everyone")


@pytest.fixture(params=CONTAINERS.values(), ids=CONTAINERS)
def container(request):
    return request.param


ASK = """
for method, target, body in (("GET", "/devices", None), ("GET", "/devices/data", None), ("GET", "/devices/none", None),
                             ("GET", "/host", None), ("POST", "/devices", spec("mine")),
                             ("PATCH", "/devices/data", {"labels": {"a": "b"}}), ("DELETE", "/devices/data?force", None)):
    answer = ask(UnixConnection(path), method, target, body)
    print(answer.status, answer.json.get("type", "").split(":")[-1])
print(ask(UnixConnection(path), "GET", "/healthz").status)
"""
REFUSED = "403 forbidden\n"
ALL_REFUSED = REFUSED * 7 + "200\n"


def test_root_of_a_container_is_not_root(server, container):
    assert run_as_user(server, ASK, uid=0, container=container) == ALL_REFUSED


@pytest.mark.parametrize("group", [ADMINISTRATORS, READERS])
def test_a_group_of_a_container_is_not_the_group_of_the_host(server, container, group):
    assert run_as_user(server, ASK, groups=[group], container=container) == ALL_REFUSED


def test_everyone_is_everyone_and_no_more(everyone, container):
    answers = run_as_user(everyone, ASK, uid=0, container=container).split("\n")
    assert answers == ["200 "] * 2 + ["404 no-such-device", "200 "] + ["403 forbidden"] * 3 + ["200", ""]


CHANGE = """
print(ask(UnixConnection(path), "POST", "/devices?wait", spec("mine")).status)
print(ask(UnixConnection(path), "DELETE", "/devices/mine?wait").status)
"""


@pytest.mark.parametrize("uid, groups", [(0, []), (65534, [ADMINISTRATORS])], ids=["root", "a member"])
def test_a_service_with_mounts_of_its_own_is_of_the_host(server, uid, groups):
    """As with PrivateTmp=: its root directory is that of the host."""
    assert run_as_user(server, CHANGE, uid, groups, container=PRIVATE_MOUNTS) == "201\n204\n"


DETAIL = """
print("container" in ask(UnixConnection(path), "GET", "/devices").json["detail"])
"""


def test_the_answer_says_that_it_is_for_the_container(server, container):
    assert run_as_user(server, DETAIL, uid=0, container=container) == "True\n"
    assert run_as_user(server, DETAIL) == "False\n"


ENDED = """
import http.client
server = socket.socket(socket.AF_UNIX)
ours, theirs = socket.socketpair()
if not os.fork():
    server.connect(path)
    socket.send_fds(theirs, [b"x"], [server.fileno()])
    os._exit(0)
_, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
os.wait()
print("ended", flush=True)
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(fileno=descriptors[0])
connection.request("GET", "/devices")
print(connection.getresponse().status)
"""


def test_a_process_that_has_ended_is_not_known_to_be_of_the_host(server):
    """ublkd accepts the connection only after that: it is stopped meanwhile."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        with user(server, ENDED, uid=0) as client:
            assert client.stdout.readline() == "ended\n"
            server.process.send_signal(signal.SIGCONT)
            assert client.stdout.read() == "403\n"
    finally:
        server.process.send_signal(signal.SIGCONT)
