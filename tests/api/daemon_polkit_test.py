# SPDX-License-Identifier: MIT
"""ublkd, a real polkitd and a real bus: who may change devices by a rule of polkit, and what happens while polkit does
not answer, is not there, or has been left."""
import contextlib
import ctypes
import grp
import os
import pty
import shutil
import signal
import struct
import subprocess
import time

import pytest
from api_server import DEADLINE, spec
from asking_daemon import serve
from daemon_process import until
from other_user import CONTAINERS, NEEDS_ROOT, run_as_user, user
from polkit_bus import ALLOWED, ASKED, IS_THERE, OTHERS, REFUSED

pytestmark = [NEEDS_ROOT, pytest.mark.skipif(not IS_THERE, reason="polkitd and dbus-daemon are not installed")]
SECONDS = 30  # AUTHORITY_SECONDS of ublkd/authority/authority.h
AT_ONCE = 5  # seconds: not after polkit, also on a machine that has much else to do


@pytest.fixture(scope="module")
def asking():
    with serve() as (daemon, bus):
        yield daemon, bus


CREATE = """
answer = ask(UnixConnection(path), "POST", "/devices", spec("NAME"))
print(answer.status, answer.json.get("type", "").split(":")[-1])
"""


def create(daemon, uid, name, **keywords):
    return run_as_user(daemon, CREATE.replace("NAME", name), uid=uid, **keywords).split()


def test_a_rule_allows_one_user_and_refuses_another(asking):
    daemon, bus = asking
    assert create(daemon, ALLOWED, "by-rule") == ["201"]
    assert create(daemon, REFUSED, "refused") == ["403", "forbidden"]
    assert create(daemon, ASKED, "asked") == ["403", "forbidden"]
    assert daemon.names() == ["by-rule"]
    until(lambda: bus.connections() == 1)  # that of polkit: ublkd has none while it asks nothing


def test_polkit_is_not_asked_about_a_container(asking):
    """It would take the number of a container's user for that of the host's user."""
    daemon, bus = asking
    bus.pause_polkit()  # so a question would last
    try:
        for container in CONTAINERS.values():
            assert create(daemon, ALLOWED, "contained", container=container) == ["403", "forbidden"]
            assert create(daemon, 0, "contained", container=container) == ["403", "forbidden"]
        assert bus.connections() == 1
    finally:
        bus.resume_polkit()
    assert "contained" not in daemon.names()


SEVERAL = """
connection = UnixConnection(path)
answers = [ask(connection, "PUT", "/devices/several", spec("several")), ask(connection, "GET", "/devices/several"),
           ask(connection, "GET", "/host"), ask(connection, "GET", "/devices"),
           ask(connection, "DELETE", "/devices/several?wait=gone"), ask(connection, "DELETE", "/devices/none"),
           ask(connection, "POST", "/devices", {"name": "-"}), ask(connection, "PATCH", "/nothing/here", {})]
print(*(answer.status for answer in answers))
"""


def test_what_polkit_allows_is_one_change_and_no_reading(asking):
    daemon, _ = asking
    assert run_as_user(daemon, SEVERAL, uid=ALLOWED).split() == ["201", "403", "403", "403", "204", "404", "422", "403"]


def test_a_client_without_the_right_does_not_learn_what_is_wrong_with_its_request(asking):
    daemon, _ = asking
    code = """
for target, body, headers in (("/devices?x=y", "{}", {}), ("/devices", "{", {}), ("/devices", "<a/>", {"Content-Type": "text/xml"}),
                              ("/devices", "x" * 70000, {}), ("/devices/by-rule/restart", "{}", {}), ("/devices", None, {"Accept": "image/png"})):
    print(ask(UnixConnection(path), "POST", target, body, headers).status)
"""
    assert run_as_user(daemon, code, uid=REFUSED).split() == ["403"] * 3 + ["413"] + ["403"] * 2
    assert run_as_user(daemon, code, uid=ALLOWED).split() == ["400", "400", "415", "413", "400", "406"]


def test_a_reader_is_refused_with_the_sentence_of_a_reader():
    with serve("--readers", "everyone") as (daemon, _):
        code = 'problem = check_problem(ask(UnixConnection(path), "DELETE", "/devices/one"), 403, "forbidden")\nprint(problem["detail"])'
        detail = run_as_user(daemon, code, uid=REFUSED)
        assert "may not change" in detail
        assert run_as_user(daemon, SEVERAL, uid=ALLOWED).split() == ["201", "200", "200", "200", "204", "404", "422", "404"]


def test_no_policy():
    with serve("--polkit", "no") as (daemon, bus):
        assert create(daemon, ALLOWED, "one") == ["403", "forbidden"]
        assert daemon.ask("GET", "/host").json["policy"]["polkit"] is False
        daemon.reload("Polkit=yes")  # the command line counts
        assert create(daemon, ALLOWED, "one") == ["403", "forbidden"]
        assert bus.connections() == 1


def test_polkit_and_the_bus_may_go_and_come_back():
    with serve(start=False) as (daemon, bus):
        assert create(daemon, ALLOWED, "one") == ["403", "forbidden"]
        bus.start_bus()
        assert create(daemon, ALLOWED, "one") == ["403", "forbidden"]
        bus.start_polkit()
        assert create(daemon, ALLOWED, "one") == ["201"]
        bus.stop_polkit()
        until(lambda: not bus.has_polkit())
        assert create(daemon, ALLOWED, "two") == ["403", "forbidden"]
        bus.stop_bus()
        assert create(daemon, ALLOWED, "two") == ["403", "forbidden"]
        bus.start()
        assert create(daemon, ALLOWED, "two") == ["201"]


WAITING = """
import http.client, threading
from api_server import Answer, send
connection = UnixConnection(path)
connection.timeout = 150
send(connection, "POST", "/devices", spec("waiting"), HEADERS)
print("sent", flush=True)
def leave():
    sys.stdin.readline()
    os._exit(0)
threading.Thread(target=leave, daemon=True).start()
try:
    print(Answer(connection.getresponse()).status, flush=True)
except (OSError, http.client.HTTPException):
    print("closed", flush=True)
"""


def leave(client):
    client.stdin.write("\n")
    client.stdin.flush()
    assert client.stdout.read() == ""


@contextlib.contextmanager
def waiting(daemon, bus, uid=ALLOWED, headers=None):
    """A client whose question polkit does not answer, because polkit is stopped."""
    bus.pause_polkit()
    try:
        with user(daemon, WAITING.replace("HEADERS", repr(headers or {})), uid=uid) as client:
            assert client.stdout.readline() == "sent\n"
            until(lambda: bus.connections() == 2)
            yield client
    finally:
        if bus.polkit:
            bus.resume_polkit()


def root_waits(daemon):
    """Seconds for an answer."""
    began = time.monotonic()
    assert daemon.ask("GET", "/devices").status == 200
    return time.monotonic() - began


def test_polkit_is_slow(asking):
    """No other client waits; a second question of the same user is refused, one of another user is not."""
    daemon, bus = asking
    with waiting(daemon, bus) as client, user(daemon, WAITING.replace("HEADERS", "{}"), uid=REFUSED) as other:
        assert other.stdout.readline() == "sent\n"
        assert max(root_waits(daemon) for _ in range(5)) < AT_ONCE
        assert daemon.ask("PUT", "/devices/of-root", spec("of-root")).status == 201
        assert create(daemon, ALLOWED, "second") == ["503", "authorization-busy"]
        bus.resume_polkit()
        assert client.stdout.readline() == "201\n"
        assert other.stdout.readline() == "403\n"
    assert create(daemon, ALLOWED, "third") == ["201"]
    assert "second" not in daemon.names() and "waiting" in daemon.names()
    assert daemon.ask("DELETE", "/devices/waiting?wait=gone").status == 204


def test_the_client_leaves(asking):
    """Its place is free when polkit has answered, not before; nothing is changed."""
    daemon, bus = asking
    with waiting(daemon, bus) as client:
        leave(client)
        assert create(daemon, ALLOWED, "second") == ["503", "authorization-busy"]
        bus.resume_polkit()
        until(lambda: bus.connections() == 1)
    assert create(daemon, ALLOWED, "after") == ["201"]
    assert "waiting" not in daemon.names()


def test_the_client_leaves_and_polkit_never_answers(asking):
    """The time of a dialog, two minutes, is not over then: the place is free long before."""
    daemon, bus = asking
    with waiting(daemon, bus, headers={"Interactive-Authorization": "allow"}) as client:
        leave(client)
        until(lambda: bus.connections() == 1)
    assert create(daemon, ALLOWED, "much-later") == ["201"]


@pytest.mark.parametrize("lost", ["polkit", "bus"])
def test_polkit_is_lost_meanwhile(lost):
    with serve() as (daemon, bus):
        with waiting(daemon, bus) as client:
            if lost == "bus":
                bus.stop_bus()
            else:
                bus.stop_polkit()
            assert client.stdout.readline() == "403\n"
            bus.stop()
        assert daemon.names() == []


def test_reloads_and_the_stop_meanwhile():
    with serve() as (daemon, bus):
        with waiting(daemon, bus) as client:
            daemon.reload("LogLevel=info")
            daemon.reload("Polkit=no")
            assert client.stdout.readline() == "403\n"
        until(lambda: bus.connections() == 1)
        daemon.reload("Polkit=yes")
        with waiting(daemon, bus) as client:
            daemon.reload("Readers=everyone")  # other users have rights: their connections are closed
            assert client.stdout.readline() == "closed\n"
        until(lambda: bus.connections() == 1)
        with waiting(daemon, bus) as client:
            daemon.stop()
            assert client.stdout.readline() == "closed\n"


LENT = """
from api_server import Answer, send
connection = UnixConnection(path)
connection.timeout = 60
connection.connect()
alive, of_parent = os.pipe()
def send_it():
    send(connection, "POST", "/devices", spec("lent"))
    print("sent", flush=True)
if DURING:
    send_it()
if os.fork() == 0:
    os.close(of_parent)
    os.read(alive, 1)  # until its parent has ended
    if not DURING:
        send_it()
    print(Answer(connection.getresponse()).status, flush=True)
elif DURING:
    sys.stdin.readline()
os._exit(0)
"""


def start_as(pid):
    """A process with this number."""
    number = ctypes.c_int(pid)
    arguments = struct.pack("11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(number), 1, 0)  # struct clone_args
    got = ctypes.CDLL(None, use_errno=True).syscall(435, arguments, len(arguments))  # SYS_clone3
    if got == 0:
        while True:
            signal.pause()
    assert got == pid, os.strerror(ctypes.get_errno())


def test_a_socket_of_a_process_that_has_ended(asking):
    """A third process has its number while polkit looks: the answer is about that one."""
    daemon, bus = asking
    with user(daemon, LENT.replace("DURING", "False"), uid=ALLOWED) as client:
        assert client.stdout.readline() == "sent\n"
        assert client.stdout.readline() == "403\n"
    bus.pause_polkit()
    try:
        with user(daemon, LENT.replace("DURING", "True"), uid=ALLOWED) as client:
            assert client.stdout.readline() == "sent\n"
            until(lambda: bus.connections() == 2)
            client.stdin.write("\n")
            client.stdin.flush()
            assert client.wait(DEADLINE) == 0
            start_as(client.pid)
            try:
                bus.resume_polkit()
                assert client.stdout.readline() == "403\n"
            finally:
                os.kill(client.pid, signal.SIGKILL)
                os.waitpid(client.pid, 0)
    finally:
        bus.resume_polkit()
    assert "lent" not in daemon.names()


def test_the_group_of_administrators_does_not_wait_for_polkit():
    with serve("--administrators", "group:daemon") as (daemon, bus):
        bus.pause_polkit()
        assert create(daemon, ALLOWED, "one", groups=[grp.getgrnam("daemon").gr_gid]) == ["201"]
        assert bus.connections() == 1


MANY = """
import collections, http.client, threading
from api_server import Answer, send
answers, counting = collections.Counter(), threading.Lock()
def one(number):
    connection = UnixConnection(path)
    connection.timeout = 60
    try:
        send(connection, "POST", "/devices", spec(f"many-{number}"))
        answer = Answer(connection.getresponse())
        came = answer.json.get("type", "201").split(":")[-1]
    except (OSError, http.client.HTTPException):
        came = "too-many-connections"
    with counting:
        answers[came] += 1
        if sum(answers.values()) == 99:
            print("all but one", flush=True)
threads = [threading.Thread(target=one, args=[number]) for number in range(100)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(answers["201"], answers["authorization-busy"] > 0, answers["201"] + answers["authorization-busy"] + answers["too-many-connections"])
"""


def test_a_hundred_requests_of_a_user_at_once():
    with serve("--readers", "everyone") as (daemon, bus):
        bus.pause_polkit()
        with user(daemon, MANY, uid=ALLOWED) as client:
            until(lambda: bus.connections() == 2)
            assert max(root_waits(daemon) for _ in range(5)) < AT_ONCE
            assert client.stdout.readline() == "all but one\n"
            bus.resume_polkit()
            assert client.stdout.readline() == "1 True 100\n"
        assert len(daemon.names()) == 1


SIXTEEN = 16  # AUTHORITY_QUESTIONS_MAX


def test_questions_of_many_users():
    with serve() as (daemon, bus), contextlib.ExitStack() as stack:
        bus.pause_polkit()
        clients = [stack.enter_context(user(daemon, WAITING.replace("HEADERS", "{}"), uid=OTHERS + number))
                   for number in range(SIXTEEN)]
        for client in clients:
            assert client.stdout.readline() == "sent\n"
        until(lambda: create(daemon, OTHERS + SIXTEEN, "more") == ["503", "authorization-busy"])
        assert root_waits(daemon) < AT_ONCE
        bus.resume_polkit()
        assert [client.stdout.readline() for client in clients] == ["403\n"] * SIXTEEN


@pytest.mark.parametrize("stuck", ["polkit", "bus"])
def test_the_answer_comes_too_late(stuck):
    """Refused after the time, which is for the bus as well; what polkit answers later changes nothing."""
    with serve() as (daemon, bus):
        process = bus.bus if stuck == "bus" else bus.polkit
        process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with user(daemon, WAITING.replace("HEADERS", "{}"), uid=ALLOWED) as client:
            assert client.stdout.readline() == "sent\n"
            assert client.stdout.readline() == "403\n"
        assert SECONDS <= time.monotonic() - began < SECONDS + 60
        process.send_signal(signal.SIGCONT)
        until(lambda: bus.connections() == 1)
        assert daemon.names() == []
        assert create(daemon, ALLOWED, "next") == ["201"]


@contextlib.contextmanager
def agent_of(bus, process, uid):
    """pkttyagent of that process; the terminal that it writes to."""
    terminal, of_agent = pty.openpty()
    ready, of_agent_ready = os.pipe()

    def become():
        os.setsid()
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os.close(os.open(os.ttyname(of_agent), os.O_RDWR))  # its controlling terminal

    os.fchmod(of_agent, 0o666)
    agent = subprocess.Popen(
        ["pkttyagent", "--process", str(process), "--notify-fd", str(of_agent_ready)], stdin=of_agent,
        stdout=of_agent, stderr=of_agent, env=bus.environment, pass_fds=[of_agent_ready], preexec_fn=become)
    os.close(of_agent_ready)
    os.close(of_agent)
    try:
        assert os.read(ready, 1) == b""
        yield terminal
    finally:
        agent.terminate()
        agent.wait(DEADLINE)
        os.close(ready)
        os.close(terminal)


def read_until(terminal, words):
    text = b""
    while words not in text:
        try:
            text += os.read(terminal, 4096)
        except OSError:
            raise AssertionError(text) from None


@pytest.mark.skipif(not shutil.which("pkttyagent"), reason="pkttyagent is not installed")
def test_the_user_is_asked_for_a_password_only_if_the_client_says_so(asking):
    daemon, bus = asking
    gate = 'print("here", flush=True)\nsys.stdin.readline()\n'
    for header, waits in (("{}", False), ('{"Interactive-Authorization": "yes"}', False), ('{"Interactive-Authorization": "allow"}', True)):
        with user(daemon, gate + WAITING.replace("HEADERS", header), uid=ASKED) as client:
            assert client.stdout.readline() == "here\n"  # as that user
            with agent_of(bus, client.pid, ASKED) as terminal:
                client.stdin.write("\n")
                client.stdin.flush()
                assert client.stdout.readline() == "sent\n"
                if waits:
                    read_until(terminal, b"io.ublkd.manage")
                    assert root_waits(daemon) < AT_ONCE
                    leave(client)
                    until(lambda: bus.connections() == 2)  # polkit and the agent: polkit was asked to stop, and has
                else:
                    assert client.stdout.readline() == "403\n"
            until(lambda: bus.connections() == 1)
