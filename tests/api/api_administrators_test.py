# SPDX-License-Identifier: MIT
"""Who may change devices: root, and the group that --administrators names. Who may connect at all: --socket-group."""
import os
import stat

import pytest
from api_server import ask, check_problem, spec
from other_user import NEEDS_ROOT, run_as_user
from server_fixture import reachable

pytestmark = NEEDS_ROOT
GROUP, READERS = 4242, 4243


def serve(*arguments):
    return reachable(*arguments, device=spec())


@pytest.fixture
def administered():
    yield from serve("--administrators", str(GROUP), "--readers", str(READERS))


@pytest.fixture
def no_such_group():
    """As for a name that /etc/group does not have."""
    yield from serve("--administrators", "0", "--readers", str(READERS))


CHANGE = """
answers = [ask(UnixConnection(path), "GET", "/devices/data"),
           ask(UnixConnection(path), "POST", "/devices?wait", spec("mine")),
           ask(UnixConnection(path), "PATCH", "/devices/mine?wait", {"labels": {"a": "b"}}),
           ask(UnixConnection(path), "POST", "/devices/data/restart?wait"),
           ask(UnixConnection(path), "DELETE", "/devices/data?wait")]
print(*(answer.status for answer in answers))
"""


@pytest.mark.parametrize("groups", [[GROUP], [1, 2, GROUP], [*range(5000, 5900), GROUP]], ids=["one", "three", "901"])
def test_a_member_may_change_devices_as_root_may(administered, groups):
    """And read, without being in the group of the readers."""
    assert run_as_user(administered, CHANGE, groups=groups) == "200 201 200 200 204\n"
    assert [item["name"] for item in administered.ask("GET", "/devices").json["items"]] == ["mine"]
    assert administered.ask("GET", "/host").json["policy"]["administrators"] == "ublk-admin"


def test_the_first_group_of_a_member_counts(administered):
    assert run_as_user(administered, CHANGE, uid=GROUP) == "200 201 200 200 204\n"


REFUSED = """
for method, target in (("POST", "/devices"), ("PUT", "/devices/data"), ("DELETE", "/devices/data"), ("POST", "/devices/data/recover"),
                       ("POST", "/devices/adopt"), ("POST", "/devices/data/stop")):
    problem = check_problem(ask(UnixConnection(path), method, target, spec("data") if method != "DELETE" else None), 403, "forbidden")
    print("ublk-admin" in problem["detail"])
"""


def test_a_reader_is_refused_and_the_answer_names_the_group(administered):
    assert run_as_user(administered, REFUSED, groups=[READERS]) == "True\n" * 6
    assert administered.ask("GET", "/devices/data").json["generation"] == 1


@pytest.mark.parametrize("groups", [[], [1, 2], [*range(5000, 5900)]], ids=["none", "two", "900"])
def test_other_users_see_nothing(administered, groups):
    """The sentence is that of a reader's path: it says nothing of who may change what."""
    assert run_as_user(administered, REFUSED, groups=groups) == "False\n" * 6


@pytest.mark.parametrize("groups", [[0, GROUP], [GROUP]], ids=["also group 0", "a group"])
def test_a_group_that_does_not_exist_gives_no_right(no_such_group, groups):
    """Its number would be 0, and the group 0 of a process is not that of the administrators."""
    assert run_as_user(no_such_group, REFUSED, groups=groups) == "False\n" * 6
    assert run_as_user(no_such_group, REFUSED, groups=[READERS, *groups]) == "False\n" * 6
    assert no_such_group.ask("GET", "/host").json["policy"]["administrators"] is None
    assert no_such_group.ask("GET", "/devices/data").json["generation"] == 1


CONNECT = """
try:
    print(ask(UnixConnection(path), "GET", "/healthz").status)
except PermissionError:
    print("refused")
"""


def test_only_the_group_of_the_socket_can_connect():
    for server in serve("--socket-group", str(GROUP), "--readers", str(READERS)):
        info = os.stat(server.path)
        assert stat.S_IMODE(info.st_mode) == 0o660 and (info.st_uid, info.st_gid) == (0, GROUP)
        assert run_as_user(server, CONNECT, groups=[GROUP]) == "200\n"
        assert run_as_user(server, CONNECT, groups=[READERS]) == "refused\n"
        assert ask(server.connect(), "GET", "/healthz").status == 200
        host = server.ask("GET", "/host").json
        assert host["policy"]["socketGroup"] == {"name": "sockets", "effective": True}
        assert host["sockets"] == [{"path": server.path, "openedBy": "ublkd", "group": "sockets", "gid": GROUP, "mode": "0660"}]
        os.chown(server.path, 0, 0)
        host = server.ask("GET", "/host").json
        assert host["policy"]["socketGroup"] == {"name": "sockets", "effective": False}
        assert (host["sockets"][0]["group"], host["sockets"][0]["gid"]) == ("root", 0)


def test_without_a_group_of_the_socket_every_user_can_connect():
    for server in serve():
        assert stat.S_IMODE(os.stat(server.path).st_mode) == 0o666
        assert run_as_user(server, CONNECT) == "200\n"
        host = server.ask("GET", "/host").json
        assert host["policy"]["socketGroup"] is None
        assert [(socket["group"], socket["mode"]) for socket in host["sockets"]] == [("root", "0666")]
