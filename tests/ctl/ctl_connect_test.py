# SPDX-License-Identifier: MIT
"""How ublkctl finds and reaches ublkd: its socket, its address, and what a user may do there."""
import os
import shutil
import signal
import socket
import tempfile
import time

import pytest
from api_listen_test import free_port
from api_server import Server
from ctl import FAILED, NO_DAEMON, NOT_ALLOWED, PROGRAM, TIMED_OUT, USAGE, Ctl

NULL = ["target.type=null", "size=1MiB"]


def test_a_missing_daemon_is_one_sentence_with_advice(tmp_path):
    run = Ctl(str(tmp_path / "none.sock"))("list", status=NO_DAEMON)
    assert run.err.count("\n") == 1 and "ublkd is not running" in run.err and "systemctl restart ublkd.socket ublkd.service" in run.err


def test_a_dead_socket(tmp_path):
    path = str(tmp_path / "dead.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    assert "ublkd is not running" in Ctl(path)("list", status=NO_DAEMON).err


def test_not_a_socket_and_a_path_that_is_too_long(tmp_path):
    (tmp_path / "file").touch()
    Ctl(str(tmp_path / "file"))("list", status=NO_DAEMON)
    assert "too long" in Ctl("/" + "x" * 200)("list", status=NO_DAEMON).err


OTHER_USER = {"user": 65534, "group": 65534, "extra_groups": []}


@pytest.fixture
def public(open_server):
    """ublkctl, where every user may run it."""
    return Ctl(open_server.path, program=shutil.copy(PROGRAM, open_server.directory))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user who may less")
def test_permission_denied_is_one_sentence(public):
    os.chmod(public.socket, 0o600)
    run = public("list", status=NOT_ALLOWED, **OTHER_USER)
    assert run.err.count("\n") == 1 and "Permission denied for the socket" in run.err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user who may less")
def test_a_user_who_may_read_may_not_change(public):
    public("list", **OTHER_USER)
    run = public("create", "data", *NULL, status=NOT_ALLOWED, **OTHER_USER)
    assert run.err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user who may less")
@pytest.mark.parametrize("verb", [["list"], ["describe", "data"], ["host"], ["events"]], ids=lambda verb: verb[0])
def test_a_user_who_may_not_read_learns_what_to_ask_for(verb):
    with tempfile.TemporaryDirectory(prefix="ublkd-ctl-") as directory:
        os.chmod(directory, 0o755)
        server = Server(directory, "--readers", "4242")
        assert server.started, server.process.stderr.read()
        public = Ctl(server.path, program=shutil.copy(PROGRAM, directory))
        run = public(*verb, status=NOT_ALLOWED, **OTHER_USER)
        assert run.out == "" and run.err.count("\n") == 1 and "ask root to add you to the group ublk" in run.err
        public("list", **{**OTHER_USER, "extra_groups": [4242]})
        server.stop()


def test_the_option_overrides_the_environment(server):
    lost = Ctl("/nowhere")
    lost("list", status=NO_DAEMON)
    lost("list", "--socket", server.path)
    lost("-s", server.path, "list")
    lost("list", "-s", server.path, environment={"UBLKD_URL": "http://127.0.0.1:1"})
    lost("list", "-s", server.path, "--url", "http://127.0.0.1:1", status=USAGE)


def test_tcp_needs_the_token(tmp_path):
    port = free_port()
    server = Server(tmp_path, listen=[f"tcp://127.0.0.1:{port}"])
    assert server.started
    url = f"http://127.0.0.1:{port}"
    ctl = Ctl()
    ctl("--url", url, "create", "data", *NULL, status=NOT_ALLOWED)
    ctl("--url", url + "/", "--token-file", str(tmp_path / "api-token"), "create", "data", *NULL)
    ctl("list", environment={"UBLKD_URL": url, "UBLKD_TOKEN_FILE": str(tmp_path / "api-token")})
    output = ctl("--url", url, "--token-file", "/nowhere", "list", status=FAILED).err
    assert "cannot read the token from /nowhere" in output and "name its file with --token-file" in output
    server.stop()
    output = ctl("--url", url, "list", status=NO_DAEMON).err
    assert "cannot reach ublkd" in output and "check the address" in output


@pytest.mark.parametrize("verb", [["attach", "data.img"], ["create", "new", *NULL], ["wait", "data"], ["detach", "data"]],
                         ids=lambda verb: verb[0])
def test_a_timeout_that_is_given_is_waited_for_a_ublkd_that_hangs(server, tmp_path, verb):
    """It was a minute."""
    (tmp_path / "data.img").write_bytes(bytes(1 << 20))
    ctl = Ctl(server.path, tmp_path)
    ctl("create", "data", *NULL)
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        run = ctl(*verb, "--timeout", "2s", status=TIMED_OUT)
        waited = time.monotonic() - begun
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert "does not answer within --timeout" in run.err and 1.9 < waited < 15
