# SPDX-License-Identifier: MIT
"""ublkctl action: start, follow, list, cancel. What a scrub does to a disk is in tests/kernel/test_actions.py."""
import contextlib
import http.server
import json
import os
import shutil
import socketserver
import subprocess
import tempfile
import threading

import pytest
from api_server import check_problem

from ctl import DEADLINE, FAILED, NOT_FOUND, PROGRAM, REFUSED, USAGE, Ctl

LOOP = ["target.type=loop", "target.path=/nowhere.img", "size=1MiB"]


@pytest.fixture(name="data")
def _data(ctl):
    ctl("create", "data", *LOOP)


def actions(server):
    return server.ask("GET", "/devices/data/actions").json["items"]


def ends(server, how):
    """Let the next action end as soon as it was started."""

    def end():
        while not actions(server):
            pass
        server.tell(f"act data {how}")

    thread = threading.Thread(target=end)
    thread.start()
    return thread


@pytest.mark.usefixtures("data")
def test_follows_to_the_end(server, ctl):
    thread = ends(server, "succeed")
    assert json.loads(ctl("action", "data", "scrub", "rate=1MiB").out) == {"bytesRead": 4096}
    thread.join()
    assert actions(server)[0]["arguments"] == {"rate": "1MiB"}


@pytest.mark.usefixtures("data")
def test_a_failure(server, ctl):
    thread = ends(server, "fail")
    assert "It is over." in ctl("action", "data", "scrub", status=FAILED).err
    thread.join()


@pytest.mark.usefixtures("data")
def test_list_and_cancel(server, ctl):
    ctl("action", "data", "--cancel", status=REFUSED)
    number = ctl("action", "data", "scrub", "--no-wait").out.strip()
    assert actions(server)[0]["id"] == int(number)
    line = ctl("action", "data").out.splitlines()[1].split()
    assert line[:3] == [number, "scrub", "Pending"]
    ctl("action", "data", "scrub", status=REFUSED)
    ctl("action", "data", "--cancel")
    assert actions(server)[0]["cancelRequested"]
    assert json.loads(ctl("action", "data", "-o", "json").out) == actions(server)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("arguments, status", [
    ([], USAGE), (["data", "a/b"], USAGE), (["data", "scrub", "rate"], USAGE), (["data", "scrub", "--cancel"], USAGE),
    (["none", "scrub"], NOT_FOUND), (["none"], NOT_FOUND), (["data", "scrub", "rate=1"], FAILED), (["data", "polish"], FAILED)])
def test_faults(server, ctl, arguments, status):
    ctl("action", *arguments, status=status)
    assert actions(server) == []


@pytest.mark.parametrize("device, verb", [("data", "polish"), ("empty", "scrub"), ("tree", "scrub")])
def test_a_verb_that_the_target_does_not_have(server, ctl, device, verb):
    """Once every 404 was taken for that of a ublkd without actions."""
    targets = {"data": {"type": "loop", "path": "/a.img"}, "empty": {"type": "null"},
               "tree": {"type": "linear", "child": {"type": "null"}}}
    body = {"name": device, "size": "1MiB", "target": targets[device]}
    assert server.ask("POST", "/devices?wait=ready", body).status == 201
    problem = check_problem(server.ask("POST", f"/devices/{device}/actions/{verb}"), 404, "no-such-action")
    assert problem["detail"] in ctl("action", device, verb, status=FAILED).err


# ---- a ublkd that answers what the test wants ----

ONE = "/devices/data/actions/3"
ALL = "/devices/data/actions"
START = ("POST", "/devices/data/actions/scrub")


def action(state):
    return {"id": 3, "verb": "scrub", "state": state, "message": "It is over.", "result": {"bytesRead": 1},
            "progress": {"done": 1, "total": 2}}


def problem(status, kind):
    return status, {"type": f"urn:ublkd:problem:{kind}", "title": kind, "status": status, "detail": f"The cause is {kind}."}


@contextlib.contextmanager
def replying(answers, before_reply=lambda path: None):
    """Run ublkctl with a server, where every user can run it. answers: by method and path, a list of status and document,
    the last of them for good. before_reply gets the path of the socket."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def reply(self):
            rest = answers[self.command, self.path]
            status, document = rest.pop(0) if len(rest) > 1 else rest[0]
            body = json.dumps(document).encode()
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            before_reply(self.server.server_address)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = reply

        def log_message(self, *_):
            pass

    with tempfile.TemporaryDirectory(prefix="ublkd-ctl-") as directory:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "socket")
        with socketserver.ThreadingUnixStreamServer(path, Handler) as listening:
            os.chmod(path, 0o666)
            threading.Thread(target=listening.serve_forever).start()
            try:
                yield Ctl(path, program=shutil.copy(PROGRAM, directory))
            finally:
                listening.shutdown()


def test_a_ublkd_without_actions_is_to_be_updated():
    with replying({START: [problem(404, "no-such-resource")]}) as ctl:
        run = ctl("action", "data", "scrub", status=FAILED)
        assert "update" in run.err and "The cause" not in run.err


@pytest.mark.parametrize("status, kind, exit_status", [
    (404, "no-such-action", FAILED), (404, "no-such-device", NOT_FOUND), (500, "internal", FAILED)])
def test_an_action_that_cannot_be_followed_any_more(status, kind, exit_status):
    """Others have taken its place, or its device is another one."""
    looks = [(200, action("Running")), problem(status, kind)]
    with replying({START: [(202, action("Pending"))], ("GET", ONE): looks}) as ctl:
        run = ctl("action", "data", "scrub", status=exit_status)
        assert run.out == "" and run.err == f"ublkctl: data: The cause is {kind}.\n"


@pytest.mark.parametrize("document", [[], {}, "scrub", {"items": []}])
def test_another_document_than_an_action_ends_it_with_a_sentence(document):
    """Once ublkctl looked for ever, without a word."""
    with replying({START: [(202, action("Pending"))], ("GET", ONE): [(200, document)]}) as ctl:
        run = ctl("action", "data", "scrub", status=FAILED)
        assert run.out == "" and run.err.count("\n") == 1


@pytest.mark.parametrize("answer, status", [
    (problem(404, "no-such-action"), FAILED), ((200, action("Succeeded")), REFUSED), ((202, action("Running")), 0)])
def test_cancel_of_one_that_ends_meanwhile(answer, status):
    with replying({("GET", ALL): [(200, {"items": [action("Running")]})], ("DELETE", ONE): [answer]}) as ctl:
        run = ctl("action", "data", "--cancel", status=status)
        assert "update" not in run.err and ("The cause is no-such-action." in run.err) == (status == FAILED)
        assert (run.out == "") == (status != 0)


def test_a_socket_that_a_restart_has_not_opened_yet():
    """The new socket of a ublkd that restarts gets its mode a moment after it is there."""
    user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    looks, seen = [(200, action("Running")), (200, action("Succeeded"))], threading.Event()

    def close_at_first_look(path):
        if len(looks) == 1 and not seen.is_set():
            os.chmod(path, 0)
            seen.set()

    with replying({START: [(202, action("Pending"))], ("GET", ONE): looks}, close_at_first_look) as ctl:
        process = ctl.start("action", "data", "scrub", stdout=subprocess.PIPE, stderr=subprocess.PIPE, **user)
        assert seen.wait(DEADLINE)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)  # more than one look
        os.chmod(ctl.socket, 0o666)
        out, err = process.communicate(timeout=DEADLINE)
        assert (process.returncode, json.loads(out), err) == (0, {"bytesRead": 1}, "")
