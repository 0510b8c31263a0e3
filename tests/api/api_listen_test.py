# SPDX-License-Identifier: MIT
"""Where the API listens, and which clients it accepts."""
import contextlib
import grp
import http.client
import os
import random
import socket
import stat
import subprocess

import pytest

from api_server import DEADLINE, PROGRAM, Server, ask, check_problem, spec

UNNAMED = 4242  # a group that no file of this machine names


def refuse(directory, *addresses):
    """Check that the server does not start. Return the sentence that names the cause."""
    server = Server(directory, listen=list(addresses))
    assert not server.started
    return server.stop()


def free_port():
    """A port below those that the kernel gives to clients: other tests may connect before the server listens."""
    while True:
        port = random.SystemRandom().randrange(10000, 30000)
        with socket.socket() as raw, contextlib.suppress(OSError):
            raw.bind(("127.0.0.1", port))
            return port


def test_socket_file(tmp_path):
    server = Server(tmp_path)
    info = os.stat(server.path)
    assert stat.S_ISSOCK(info.st_mode) and stat.S_IMODE(info.st_mode) == 0o666
    server.stop()
    assert not os.path.exists(server.path), "removed at a clean exit"


def test_a_stale_socket_file_is_replaced(tmp_path):
    server = Server(tmp_path)
    server.kill()
    assert os.path.exists(server.path)
    server = Server(tmp_path)
    assert server.started and server.ask("GET", "/healthz").status == 200
    server.stop()


def test_a_socket_with_a_listener_is_left_alone(tmp_path):
    server = Server(tmp_path)
    assert "another process listens" in refuse(tmp_path, server.path)
    assert server.ask("GET", "/healthz").status == 200
    server.stop()


def test_another_file_is_left_alone(tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    assert "not a socket" in refuse(tmp_path, str(path))
    assert path.read_text() == "precious"


def test_a_socket_file_of_another_process_stays(tmp_path):
    server = Server(tmp_path)
    os.unlink(server.path)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(server.path)
        server.stop()
        assert os.path.exists(server.path)


def test_long_path(tmp_path):
    directory = tmp_path / ("d" * 100) / ("e" * 100)
    directory.mkdir(parents=True)
    path = str(directory / "api.sock")
    server = Server(tmp_path, listen=[path])
    assert server.started, server.process.stderr.read()
    handle = os.open(directory, os.O_PATH)
    server.path = f"/proc/self/fd/{handle}/api.sock"
    assert server.ask("GET", "/healthz").status == 200
    server.stop()
    assert not os.path.exists(path)
    os.close(handle)
    assert "too long" in refuse(tmp_path, str(directory / ("x" * 120)))


def test_several_addresses(tmp_path):
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    server = Server(tmp_path, listen=[one, two])
    for path in (one, two):
        server.path = path
        assert server.ask("GET", "/healthz").status == 200
    server.stop()


def test_nothing_is_left_when_one_address_fails(tmp_path):
    refuse(tmp_path, str(tmp_path / "one"), str(tmp_path / "missing" / "two"))
    assert not os.path.exists(tmp_path / "one")


@pytest.mark.parametrize("address,sentence", [
    ("tcp://0.0.0.0:8080", "TLS"), ("tcp://10.0.0.1:80", "TLS"), ("tcp://[::]:80", "TLS"), ("tcp://[2001:db8::1]:80", "TLS"),
    ("tcp://localhost:80", "address is invalid"), ("tcp://127.0.0.1", "address is invalid"), ("tcp://127.0.0.1:", "address is invalid"),
    ("tcp://127.0.0.1:x", "address is invalid"), ("tcp://127.0.0.1:70000", "address is invalid"), ("tcp://127.0.0.1:-1", "address is invalid"),
    ("tcp://:80", "address is invalid"), ("http://127.0.0.1:80", "address is invalid"), ("", "address is invalid"), ("/missing/dir/sock", "directory"),
])
def test_bad_addresses(tmp_path, address, sentence):
    output = refuse(tmp_path, address)
    assert sentence in output and output.count("\n") == 1
    assert not os.path.exists(tmp_path / "api-token")


def connect_tcp(port, host="127.0.0.1"):
    return http.client.HTTPConnection(host, port, timeout=DEADLINE)


def start_tcp(directory, host="127.0.0.1"):
    port = free_port()
    server = Server(directory, listen=[f"tcp://{host}:{port}"])
    assert server.started, server.process.stderr.read()
    return server, port


def test_tcp_needs_the_token(tmp_path):
    server, port = start_tcp(tmp_path)
    path = tmp_path / "api-token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text().strip()
    assert len(token) == 64
    for bad in (None, "", "Bearer", f"Basic {token}", f"Bearer {token[:-1]}", f"Bearer {token}0",
                "Bearer " + token[:-1] + ("0" if token[-1] != "0" else "1")):
        headers = {} if bad is None else {"Authorization": bad}
        for method, target in (("GET", "/readyz"), ("GET", "/metrics"), ("POST", "/healthz"), ("POST", "/devices"), ("GET", "/nothing")):
            answer = ask(connect_tcp(port), method, target, headers=headers)
            check_problem(answer, 401, "unauthorized")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    for scheme in ("Bearer", "bearer"):
        headers = {"Authorization": f"{scheme} {token}"}
        assert ask(connect_tcp(port), "GET", "/healthz", headers=headers).status == 200
    answer = ask(connect_tcp(port), "POST", "/devices?wait=ready", spec(), {"Authorization": f"Bearer {token}"})
    assert answer.status == 201
    server.stop()
    server, port = start_tcp(tmp_path)
    assert path.read_text().strip() == token, "it stays the same"
    server.stop()


def test_tcp_probes_healthz_without_the_token(tmp_path):
    """A probe of an orchestrator has no token. A token that is given must be right, and the connection has no more rights."""
    server, port = start_tcp(tmp_path)
    connection = connect_tcp(port)
    for method in ("GET", "HEAD", "GET"):
        assert ask(connection, method, "/healthz").status == 200
    check_problem(ask(connection, "GET", "/devices"), 401, "unauthorized")
    check_problem(ask(connect_tcp(port), "GET", "/healthz", headers={"Authorization": "Bearer x"}), 401, "unauthorized")
    check_problem(ask(connect_tcp(port), "GET", "/healthz?x"), 400, "bad-request")
    server.stop()


def test_a_tcp_client_that_leaves_is_freed(tmp_path):
    server, port = start_tcp(tmp_path)
    server.tell("auto off")
    headers = {"Authorization": "Bearer " + (tmp_path / "api-token").read_text().strip(),
               "Content-Type": "application/json"}
    connection = connect_tcp(port)
    connection.request("POST", "/devices?wait=ready", '{"name":"data","target":{"type":"null"},"size":"1MiB"}', headers)
    server.until("waits", 1)
    connection.close()
    server.until("waits", 0)
    server.until("connections", 0)
    server.stop()


def test_a_token_that_other_users_can_read_is_refused(tmp_path):
    path = tmp_path / "api-token"
    path.write_text("0" * 64 + "\n")
    path.chmod(0o644)
    assert "api-token" in refuse(tmp_path, f"tcp://127.0.0.1:{free_port()}")
    path.chmod(0o600)
    server, _ = start_tcp(tmp_path)
    server.stop()
    path.write_text("short\n")
    assert "api-token" in refuse(tmp_path, f"tcp://127.0.0.1:{free_port()}")


def test_no_token_without_tcp(tmp_path):
    Server(tmp_path).stop()
    assert not os.path.exists(tmp_path / "api-token")


def start_with_socket(tmp_path, path, *options, gid=-1, mode=0o666):
    """Start the server with a socket that another process has opened, as systemd does."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.bind(path)
        if not path.startswith("\0"):
            os.chown(path, -1, gid)
            os.chmod(path, mode)
        raw.listen(8)
        process = subprocess.Popen([PROGRAM, "--state-dir", str(tmp_path), "--passed", "1", *options], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: os.dup2(raw.fileno(), 3, inheritable=True), close_fds=False)
    assert process.stdout.readline() == "ready\n"
    server = Server.__new__(Server)
    server.path = path
    return server, process


def end_cleanly(process):
    process.communicate("")
    assert process.returncode == 0


def test_sockets_from_the_service_manager(tmp_path):
    path = str(tmp_path / "passed.sock")
    server, process = start_with_socket(tmp_path, path)
    assert server.ask("GET", "/healthz").status == 200
    end_cleanly(process)
    assert os.path.exists(path), "not ours to remove"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives the socket to other groups")
def test_the_group_of_a_socket_from_the_service_manager(tmp_path):
    """SocketGroup= changes no such socket, and only the log had it."""
    group = next(entry for entry in grp.getgrall() if entry.gr_gid not in (0, UNNAMED))
    for options, gid, mode, setting, name in (
            ((), 0, 0o666, None, "root"),
            (("--socket-group", str(UNNAMED)), 0, 0o666, {"name": "sockets", "effective": False}, "root"),
            (("--socket-group", str(UNNAMED)), group.gr_gid, 0o660, {"name": "sockets", "effective": False}, group.gr_name),
            (("--socket-group", str(UNNAMED)), UNNAMED, 0o666, {"name": "sockets", "effective": False}, "sockets"),
            (("--socket-group", str(UNNAMED)), UNNAMED, 0o660, {"name": "sockets", "effective": True}, "sockets"),
            ((), UNNAMED, 0o660, None, None)):
        path = str(tmp_path / "passed.sock")
        server, process = start_with_socket(tmp_path, path, *options, gid=gid, mode=mode)
        host = server.ask("GET", "/host").json
        assert host["policy"]["socketGroup"] == setting
        assert host["sockets"] == [{"path": path, "openedBy": "systemd", "group": name, "gid": gid, "mode": f"0{mode:o}"}]
        end_cleanly(process)
        os.remove(path)


def test_every_user_can_connect_to_an_abstract_socket(tmp_path):
    server, process = start_with_socket(tmp_path, f"\0ublkd-test-{os.getpid()}", "--socket-group", str(UNNAMED))
    host = server.ask("GET", "/host").json
    assert host["policy"]["socketGroup"] == {"name": "sockets", "effective": False} and host["sockets"] == []
    end_cleanly(process)
