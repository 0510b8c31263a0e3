# SPDX-License-Identifier: MIT
"""Files of tenants: which paths they may name. Who opens them, and how, is the worker's: tests/unit/targets/loop/user_path_test.c."""
import os
import tempfile

import pytest
from api_tenants_test import ALICE, BOB, MAPPED, RULE, Tenants, asks, mine
from other_user import NEEDS_ROOT

pytestmark = NEEDS_ROOT
DIRECTORY = "/srv/of-tenants"
FILE = f"{DIRECTORY}/a.img"


@pytest.fixture(name="tenants")
def _tenants():
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        tenants = Tenants(directory)
        tenants.set_rules({**RULE, "targets": ["loop"], "directories": [DIRECTORY]})
        assert tenants.server.tell("policy") == 0
        yield tenants
        tenants.server.stop()


def on(path, name="x", uid=ALICE, **more):
    return mine(name, uid, target={"type": "loop", "path": path}, **more)


def faults(problem):
    return [(fault["pointer"], fault["reason"]) for fault in problem["errors"]]


def test_a_file_below_a_directory_of_the_rule(tenants):
    ((status, device),) = tenants.values(asks(("POST", "/devices", on(FILE))))
    assert status == 201 and device["tenant"] == f"uid:{ALICE}" and device["spec"]["target"]["path"] == FILE


@pytest.mark.parametrize("path", [DIRECTORY, "/etc/shadow", f"{DIRECTORY}/../of-root", f"{DIRECTORY}-x/a", f"{DIRECTORY}//a", "/proc/self/fd/3",
                                  "/dev/sda"])
def test_another_path(tenants, path):
    ((status, problem),) = tenants.values(asks(("POST", "/devices", on(path))))
    assert status == 403 and faults(problem) == [("/target/path", "PolicyForbids")]


def test_a_path_does_not_move_out_of_the_directories(tenants):
    name = f"u{ALICE}-x"
    patch = {"target": {"path": "/etc/shadow"}}
    answers = tenants.values(asks(("POST", "/devices", on(FILE)), ("PATCH", f"/devices/{name}", patch),
                                  ("PUT", f"/devices/{name}", on("/etc/shadow")), ("PATCH", f"/devices/{name}", {"labels": {"a": "b"}})))
    assert [status for status, _ in answers] == [201, 403, 403, 200]


def test_the_rule_of_another_directory(tenants):
    """A device keeps its disk, but no change, once the rule has lost its directory."""
    tenants.values(asks(("POST", "/devices", on(FILE))))
    tenants.set_rules({**RULE, "targets": ["loop"], "directories": ["/srv/other"]})
    assert tenants.server.tell("policy") == 0
    name = f"u{ALICE}-x"
    (changed, _), (read, device) = tenants.values(asks(("PATCH", f"/devices/{name}", {"labels": {"a": "b"}}), ("GET", f"/devices/{name}", None)))
    assert (changed, read, device["generation"]) == (403, 200, 1)


def inside(source, target, more=""):
    """A container in which user 1 is alice, and the directory `source` of the host is at `target`."""
    return {"container": MAPPED + f"""
check(libc.unshare(0x20000))
check(libc.mount(b"none", b"/", None, 0x44000, None))  # MS_REC | MS_PRIVATE
check(libc.mount({os.fsencode(source)!r}, {os.fsencode(target)!r}, None, 0x1000, None))  # MS_BIND
{more}
uid, groups = 1, []
"""}


@pytest.fixture(name="volume")
def _volume(tenants):
    """A directory of the host below which the user may name files."""
    path = os.path.join(tenants.directory, "volume")
    os.makedirs(os.path.join(path, "below"))
    tenants.set_rules({**RULE, "targets": ["loop"], "directories": [path]})
    assert tenants.server.tell("policy") == 0
    return path


def test_a_path_of_a_container_becomes_one_of_the_host(tenants, volume):
    """It is stored as that; a repeated request changes nothing, and neither path is looked up again for another change."""
    name = f"u{ALICE}-x"
    created, again, kept, put, moved = tenants.values(asks(
        ("POST", "/devices", on("/mnt/a.img")), ("POST", "/devices", on("/mnt/a.img")), ("PATCH", f"/devices/{name}", {"labels": {"a": "b"}}),
        ("PUT", f"/devices/{name}", on(f"{volume}/a.img")), ("PATCH", f"/devices/{name}", {"target": {"path": "/mnt/b.img"}})), **inside(volume, "/mnt"))
    assert [status for status, _ in (created, again, kept, put, moved)] == [201, 200, 200, 200, 200]
    assert [device["spec"]["target"]["path"] for _, device in (created, again, kept, put)] == [f"{volume}/a.img"] * 4
    assert moved[1]["spec"]["target"]["path"] == f"{volume}/b.img" and again[1]["generation"] == 1


@pytest.mark.parametrize(("there", "fault"), [
    ("/mnt/below/a", "PathOfContainer"), ("/dev/null", "PolicyForbids"), ("/etc/shadow", "PolicyForbids"), ("/mnt/../etc/shadow", "PolicyForbids"),
    ("/mnt", "PolicyForbids")])
def test_a_path_of_a_container_that_is_not_one_of_the_user(tenants, volume, there, fault):
    code = inside(volume, "/mnt", 'check(libc.mount(b"none", b"/mnt/below", b"tmpfs", 0, None))')
    ((status, problem),) = tenants.values(asks(("POST", "/devices", on(there))), **code)
    assert status == 403 and faults(problem) == [("/target/path", fault)]


def test_a_volume_that_is_read_only_in_the_container(tenants, volume):
    """A disk that reads is allowed, and does not become one that writes."""
    code = inside(volume, "/mnt", f"""
check(libc.mount(None, b"/mnt", None, 0x1021, None))  # MS_BIND | MS_REMOUNT | MS_RDONLY
check(libc.mount(b"none", {os.fsencode(volume)!r}, b"tmpfs", 0, None))
""")
    name = f"u{ALICE}-x"
    answers = tenants.values(asks(("POST", "/devices", on("/mnt/a.img")), ("POST", "/devices", on("/mnt/a.img", readOnly=True)),
                                  ("PATCH", f"/devices/{name}", {"labels": {"a": "b"}}), ("PATCH", f"/devices/{name}", {"readOnly": False})), **code)
    assert [status for status, _ in answers] == [403, 201, 200, 403]
    assert faults(answers[0][1]) == [("/target/path", "PathOfContainer")]


def test_what_is_at_the_path_on_the_host_does_not_count(tenants, volume):
    """In the container the path leads elsewhere, and that is outside of the directories of the rule."""
    ((status, problem),) = tenants.values(asks(("POST", "/devices", on(f"{volume}/a.img"))), **inside("/etc", volume))
    assert status == 403 and faults(problem) == [("/target/path", "PolicyForbids")]


def test_a_file_system_of_the_container_is_not_asked(tenants, volume):
    """FUSE, with a server that never answers: what looks at a path below it waits for ever."""
    code = inside(volume, "/mnt", """
device = os.open("/dev/fuse", os.O_RDWR)
check(libc.mount(b"silent", b"/mnt/below", b"fuse", 0, f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()))
""")
    answers = tenants.values(asks(*[("POST", "/devices", on(path)) for path in ("/mnt/below", "/mnt/below/a.img", "/mnt/a.img")]), **code)
    assert [status for status, _ in answers] == [403, 403, 201]
    assert faults(answers[1][1]) == [("/target/path", "PathOfContainer")]
    assert tenants.server.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize("how", ["side by side", "above each other"])
def test_thousands_of_mounts_in_a_container(tenants, volume, how):
    """They do not make another path of it, and hold up no other client: a path that is not found in what is read is refused."""
    for number in range(3000):
        os.mkdir(os.path.join(volume, "below", str(number)))
    code = inside(volume, "/mnt", f"""
for number in range(3000):
    check(libc.mount(b"/mnt", b"/mnt/below" + (b"/%d" % number if {how == "side by side"} else b""), None, 0x1000, None))  # MS_BIND
""")
    answers = tenants.values(asks(*[("POST", "/devices", on(path, name)) for name, path in (("a", "/mnt/a.img"), ("b", "/mnt/below/b.img"))]), **code)
    for (status, answer), path in zip(answers, (f"{volume}/a.img", f"{volume}/b.img")):
        assert status == 403 and faults(answer) == [("/target/path", "PathOfContainer")] or answer["spec"]["target"]["path"] == path, answer
    tenants.values(asks(("GET", "/devices", None)), uid=BOB)
