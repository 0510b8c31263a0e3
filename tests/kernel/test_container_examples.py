# SPDX-License-Identifier: MIT
"""The commands of examples/containers/README.md work as they stand, with rootless Podman."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from harness.programs import source, ublkctl, ublkd
from harness.rootless import Account, activated
from harness.shell import output, run
from harness.wait import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(shutil.which, ("podman", "newuidmap", "docker-compose"))), reason="needs podman, crun, uidmap and docker-compose"),
]

_EXAMPLES = source("examples/containers")
_RELOAD = "systemctl reload ublkd\n"
_SOCKET = "systemctl --user start podman.socket\n"


def blocks(section):
    """The commands of a section of the document: by which user, and what they are."""
    text = (_EXAMPLES / "README.md").read_text(encoding="utf-8")
    text = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group(1)
    found = re.findall(r"\b[Aa]s (root|alice)\b[^\n]*:\n\n((?: {4}.*\n)+)", text, re.MULTILINE)
    assert text.count("\n    ") == sum(block.count("\n") for _, block in found), "each block says which user runs it"
    return found


@pytest.fixture(name="alice")
def _alice(guest):  # pylint: disable=unused-argument
    account = Account("alice", 2001)
    shutil.copytree(_EXAMPLES, account.home / "examples")
    yield account
    account.remove()


@pytest.fixture(name="installed")
def programs_and_a_place_for_the_pool(ext4):
    """What an installed ublkd has, at the paths of the document."""
    links = [pathlib.Path("/usr/local/bin", pathlib.Path(program).name) for program in (ublkd(), ublkctl())]
    for link, program in zip(links, (ublkd(), ublkctl())):
        link.symlink_to(program)
    run("mount", "--bind", ext4, "/srv")
    yield
    run("umount", "/srv")
    for link in links:
        link.unlink()
    for path in ("/etc/ublkd", "/run/ublkd"):
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(name="daemon")
def daemon_at_the_usual_paths(installed, make_daemon):  # pylint: disable=unused-argument
    with activated(make_daemon, runtime="/run/ublkd") as daemon:
        yield daemon


def _run(daemon, alice, section):
    """Run the commands of a section; return what those of alice have printed."""
    printed = []
    for user, commands in blocks(section):
        if user == "root":
            run("sh", "-e", input=commands.replace(_RELOAD, ""), cwd=alice.home / "examples")
            daemon.process.send_signal(signal.SIGHUP)  # as the unit does it
            wait_until(lambda: alice.run("ublkctl", "list", check=False).returncode == 0, "the policy in force")
        else:
            commands = commands.replace(_SOCKET, "")
            printed.append(alice.run("sh", "-e", input=commands, cwd=alice.home / "examples", timeout=600).stdout)
    return printed


@contextlib.contextmanager
def _socket_of_podman(alice):
    """What podman.socket and podman.service of a user's systemd do: the guest has no systemd."""
    path = f"/run/user/{alice.uid}/podman/podman.sock"
    with subprocess.Popen([*alice.prefix, "podman", "system", "service", "--time=0"], cwd=alice.home, stdin=subprocess.DEVNULL) as service:
        try:
            wait_until(lambda: os.path.exists(path), "the socket of Podman")
            yield
        finally:
            service.terminate()


@pytest.mark.storm
@pytest.mark.timeout(1500)  # an emulated guest beside another one has taken 380 s
def test_the_commands_for_podman_and_compose(daemon, alice):
    _image, created, read, _deleted = _run(daemon, alice, "Podman without root")
    assert re.search(r"^alice-data +Live ", created, re.MULTILINE), created
    assert read.endswith("hello\n"), read
    assert daemon.api.names() == []
    with _socket_of_podman(alice):
        (composed,) = _run(daemon, alice, "Compose")
    assert "1+0 records in" in composed, composed
    assert daemon.api.names() == [] and output(*alice.prefix, "podman", "ps", "--all", "--quiet") == ""
