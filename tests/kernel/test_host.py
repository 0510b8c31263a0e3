# SPDX-License-Identifier: MIT
"""What the host offers, and hosts that lack something: one clear sentence each."""

import os
import signal

from harness import programs, ublk
from harness.api import condition_of, null_spec
from harness.processes import workers
from harness.shell import run
from harness.wait import wait_until

import pytest

_EVERYWHERE = {"USER_RECOVERY", "USER_RECOVERY_REISSUE", "USER_COPY", "ZONED", "CMD_IOCTL_ENCODE"}
_NEWER = {"USER_RECOVERY_FAIL_IO", "UPDATE_SIZE", "AUTO_BUF_REG", "QUIESCE", "PER_IO_DAEMON"}


def _sentence(daemon):
    """The one thing that is wrong: from GET /host, or, if it would not run at all, its last words."""
    if not daemon.running:
        lines = [line for line in daemon.log().splitlines() if line.strip()]
        assert len(lines) == 1, lines
        return lines[0]
    (problem,) = daemon.api.ask("GET", "/host", 200)["problems"]
    errors = [line for line in daemon.log().splitlines() if problem["detail"][:40] in line]
    assert errors, f"not logged: {problem}; the log: {daemon.log()}"
    return problem["detail"]


def _started(daemon):
    daemon.start(ready=False)

    def up():  # before that it is still asking the driver
        return not daemon.running or daemon.api.is_ready()

    wait_until(up, lambda: f"ublkd up, or ended; its log: {daemon.log()}")
    return daemon


def test_features_of_this_kernel(api):
    host = api.ask("GET", "/host", 200)
    assert host["kernel"] == os.uname().release
    assert host["ublk"]["available"] is True and host["problems"] == []
    features = set(host["ublk"]["features"])
    assert _EVERYWHERE <= features
    if os.uname().release.startswith("6.12"):
        assert not features & _NEWER
    else:
        assert _NEWER <= features
    # By these other tests choose, while they are collected, what they can run: none is lost for a wrong entry.
    assert {name for name, there in ublk.features().items() if there} == features & set(ublk.features())


def test_targets_and_schemas_are_served(api):
    types = {target["name"] for target in api.ask("GET", "/targets", 200)["items"]}
    assert {"null", "loop"} <= types


def _unload_driver():
    """Its users have exited; the kernel may still be releasing their resources."""
    wait_until(lambda: run("modprobe", "--remove", "ublk_drv", check=False).returncode == 0, "the driver unloaded")


@pytest.mark.long
def test_without_the_driver_it_waits_for_it(make_daemon):
    _unload_driver()
    try:
        daemon = _started(make_daemon())
        assert "ublk_drv" in _sentence(daemon)
        daemon.api.create(null_spec("data"), wait=None)
        assert daemon.api.phase("data") == "Pending"
        problem = daemon.api.create(null_spec("other"), status=504, timeout="1s")
        assert "ublk_drv" in problem["detail"]
    finally:
        run("modprobe", "ublk_drv")
    for name in ("data", "other"):
        daemon.api.wait_phase(name, "Live")
    assert daemon.api.ask("GET", "/host", 200)["problems"] == []


@pytest.mark.long
def test_a_removal_without_the_driver_says_what_it_waits_for(make_daemon):
    """As after a reboot into a machine that does not load it: the record has a number, so it may have a disk."""
    daemon = make_daemon().start()
    number = daemon.api.create(null_spec("data"))["status"]["id"]
    daemon.stop()
    for pid in workers():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not workers(), "the worker gone")
    ublk.remove(number)
    _unload_driver()
    try:
        _started(daemon)
        daemon.api.ask("DELETE", "/devices/data", 202)
        device = daemon.api.wait_for("data", lambda d: d["status"]["phase"] == "Stopping", "being removed")
        assert f"/dev/ublkb{number}" in condition_of(device)["message"]
        problem = daemon.api.ask("DELETE", "/devices/data?wait&timeout=1s", 504)
        command = (programs.ublkctl(), "--socket", daemon.runtime / "ublkd.sock", "delete", "data", "--timeout", "1s")
        for text in (condition_of(device)["message"], problem["detail"], run(*command, check=False).stdout):
            assert "modprobe ublk_drv" in text and f"/dev/ublkb{number} is gone" in text, text
    finally:
        run("modprobe", "ublk_drv")
    wait_until(lambda: daemon.api.names() == [], "the record gone")


def test_with_io_uring_disabled(make_daemon):
    run("sysctl", "-qw", "kernel.io_uring_disabled=2")
    try:
        daemon = _started(make_daemon())
        sentence = _sentence(daemon)
        assert "io_uring" in sentence and "io_uring_disabled" in sentence
    finally:
        run("sysctl", "-qw", "kernel.io_uring_disabled=0")


@pytest.fixture(name="unprivileged")
def without_root(make_daemon, directory):
    """A daemon of an unprivileged user, with directories of its own."""
    daemon = make_daemon(prefix=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"))
    for path in (daemon.state, daemon.runtime):
        path.mkdir()
        os.chown(path, 65534, 65534)
    directory.chmod(0o755)
    return daemon


def test_without_root(unprivileged):
    sentence = _sentence(_started(unprivileged))
    assert "root" in sentence


def test_without_root_and_in_a_directory_of_another_user(unprivileged):
    unprivileged.state.chmod(0o700)
    os.chown(unprivileged.state, 0, 0)
    _started(unprivileged)
    assert not unprivileged.running
    assert str(unprivileged.state) in _sentence(unprivileged)
    os.chown(unprivileged.state, 65534, 65534)
