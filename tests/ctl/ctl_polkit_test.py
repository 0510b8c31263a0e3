# SPDX-License-Identifier: MIT
"""ublkctl of a user whom polkit has to allow each change: with a real ublkd, polkitd and agent."""
import os
import shutil
import signal
import termios

import pytest
from asking_daemon import serve
from ctl import NOT_ALLOWED, OK, PROGRAM, Ctl
from daemon_process import until
from other_user import NEEDS_ROOT
from polkit_bus import ALLOWED, ASKED, IS_THERE, REFUSED
from terminal import Terminal

AGENT = shutil.which("pkttyagent")
pytestmark = [NEEDS_ROOT, pytest.mark.skipif(not IS_THERE or not AGENT, reason="polkitd, pkttyagent or dbus-daemon is not installed")]
CREATE = ["target.type=null", "size=1MiB", "--no-wait"]
PASSWORD = "only-of-the-test"
SHADOW = "root:$6$ublkd$9/1049Qc2GvEUokJlgcCETDsWo7aR0OLEaFQhhNAfJg5hGl7I.ytuwTiddY3v3dRLSHcrd0UZJNdOgeBr5QJy/:19000:0:99999:7:::\n"

# Without a session of logind polkit takes an agent that is not for want of another one, and there is none in a test.
STAND_IN = """#!/bin/sh
echo "$$" "$@" >>{log}
for argument; do
    shift
    [ "$argument" = --fallback ] || set -- "$@" "$argument"
done
exec {agent} "$@"
"""

# The agent's helper gets no environment, and reads the passwords of this machine: it sees others here.
AS_USER = """#!/bin/sh
exec unshare --mount --propagation private sh -c '
    mount --bind {directory}/shadow /etc/shadow && mount -t tmpfs none /run/dbus &&
        ln -s {bus} /run/dbus/system_bus_socket && exec setpriv --reuid {uid} --regid {uid} --clear-groups {program} "$@"' sh "$@"
"""


class Asking:
    def __init__(self, daemon, bus):
        self.daemon, self.bus, self.directory = daemon, bus, bus.directory
        self.log = self.directory / "agents"
        self.log.touch()
        self.log.chmod(0o666)
        (self.directory / "shadow").write_text(SHADOW, encoding="utf-8")
        (self.directory / "programs").mkdir()
        self.script("programs/pkttyagent", STAND_IN.format(log=self.log, agent=AGENT))

    def script(self, name, text):
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def ctl(self, uid):
        program = self.script(f"as-{uid}", AS_USER.format(directory=self.directory, bus=self.bus.path, uid=uid, program=PROGRAM))
        ctl = Ctl(self.daemon.path, program=program)
        environment = ctl.environment
        ctl.environment = lambda **more: {**environment(DBUS_SYSTEM_BUS_ADDRESS=self.bus.address,
                                                        PATH=f"{self.directory}/programs:/usr/bin:/bin"), **more}
        return ctl

    def agents(self):
        """Their pids; each had the same arguments."""
        lines = [line.split() for line in self.log.read_text(encoding="utf-8").splitlines()]
        assert all(words[1] == "--notify-fd" and words[3] == "--process" and words[5:] == ["--fallback"] for words in lines)
        return [int(words[0]) for words in lines]

    def ended(self):
        return not any(os.path.exists(f"/proc/{agent}") for agent in self.agents())


@pytest.fixture
def asking():
    with serve("--readers", "everyone") as (daemon, bus):
        yield Asking(daemon, bus)


def type_password(terminal, text):
    """The agent throws away what comes before it has turned the echo off."""
    terminal.read_until(b"Password: ")
    until(lambda: not termios.tcgetattr(terminal.leader)[3] & termios.ECHO)
    terminal.text = b""
    terminal.send(text.encode() + b"\n")


def test_the_user_gives_a_password(asking):
    terminal = Terminal(asking.ctl(ASKED), "create", "one", *CREATE)
    terminal.read_until(b"AUTHENTICATING FOR io.ublkd.manage")
    type_password(terminal, PASSWORD)
    _, status = terminal.end()
    assert status == OK and asking.daemon.names() == ["one"]
    assert len(asking.agents()) == 1 and asking.ended()


def test_a_wrong_password(asking):
    terminal = Terminal(asking.ctl(ASKED), "create", "one", *CREATE)
    type_password(terminal, "wrong")
    text, status = terminal.end()
    assert status == NOT_ALLOWED and "ublkctl: one: " in text
    assert asking.daemon.names() == [] and asking.ended()


def test_the_user_interrupts(asking):
    terminal = Terminal(asking.ctl(ASKED), "create", "one", *CREATE)
    terminal.read_until(b"Password: ")
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.end()[1] == -signal.SIGINT
    until(asking.ended)
    until(lambda: asking.bus.connections() <= 1)  # ublkd has none; polkit may have died of that
    assert asking.daemon.names() == []


@pytest.mark.parametrize("streams, arguments", [((1, 2), []), ((0, 1), []), ((0, 1, 2), ["--no-ask-password"])],
                         ids=["no stdin", "no stderr", "option"])
def test_the_user_is_not_asked(asking, streams, arguments):
    assert Terminal(asking.ctl(ASKED), "create", "one", *CREATE, *arguments, streams=streams).end()[1] == NOT_ALLOWED
    assert asking.agents() == []


def test_an_agent_that_is_not_installed(asking):
    (asking.directory / "programs/pkttyagent").unlink()
    ctl = asking.ctl(ASKED)
    for name in ("sh", "unshare", "mount", "ln", "setpriv"):
        (asking.directory / "programs" / name).symlink_to(shutil.which(name))
    text, status = Terminal(ctl, "create", "one", *CREATE, PATH=f"{asking.directory}/programs").end()
    assert status == NOT_ALLOWED and "ublkctl: one: " in text


def test_an_agent_is_started_for_a_refusal_only(asking):
    """Not if a rule allows the change, not to read, and not for root."""
    terminal = Terminal(asking.ctl(ALLOWED), "create", "one", *CREATE)
    assert terminal.end()[1] == OK
    assert Terminal(asking.ctl(ASKED), "list").end()[1] == OK
    assert Terminal(asking.ctl(0), "create", "two", *CREATE).end()[1] == OK
    assert asking.agents() == [] and asking.daemon.names() == ["one", "two"]


def test_many_removals_at_once(asking):
    """polkit answers one question of a user at a time."""
    names = [f"disk-{number}" for number in range(12)]
    for name in names:
        assert asking.daemon.ask("PUT", f"/devices/{name}", {"target": {"type": "null"}, "size": "1MiB", "enabled": False}).status == 201
    refused = asking.ctl(REFUSED)("delete", *names, status=NOT_ALLOWED)
    assert refused.err.count("ublkctl: ") == len(names) and asking.daemon.names() == sorted(names)
    asking.ctl(ALLOWED)("delete", *names)
    assert asking.daemon.names() == []


def test_many_removals_with_a_password(asking):
    """One for each, as without a session polkit keeps none; the user who interrupts the second one is not asked again."""
    for name in ("one", "three", "two"):
        assert asking.daemon.ask("PUT", f"/devices/{name}", {"target": {"type": "null"}, "size": "1MiB", "enabled": False}).status == 201
    terminal = Terminal(asking.ctl(ASKED), "delete", "one", "two", "three")
    type_password(terminal, PASSWORD)
    type_password(terminal, "wrong")
    text, status = terminal.end()
    assert status == NOT_ALLOWED and text.count("ublkctl: ") == 2 and "Password" not in text
    assert asking.daemon.names() == ["three", "two"] and len(asking.agents()) == 1
