# SPDX-License-Identifier: MIT
"""The log of a worker in service: lines of its own in that of ublkd, and ublkd does not wait for it."""

import os
import pathlib
import re
import signal
import socket

import pytest

from harness import programs
from harness.api import null_spec
from harness.bystander import are_held_up, is_held_up, measure, summary
from harness.disk import Disk, block
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_FORGE, _FLOOD, _RELEASE = (signal.SIGRTMAX - number for number in (1, 2, 3))  # tests/kernel/talkative
_LINES_AT_ONCE = 20


def _start(make_daemon):
    daemon = make_daemon(worker=programs.worker_talkative()).start()
    disk = Disk(daemon.api.create(null_spec("disk"))["status"]["id"])
    return daemon, disk, daemon.worker_pid("disk")


def test_what_a_worker_in_service_has_to_say_is_in_the_log(daemon):
    """Root sends it bytes that are not a message. It serves on, and waits for the next ublkd."""
    disk = Disk(daemon.api.create(null_spec("disk"))["status"]["id"])
    pid = daemon.worker_pid("disk")
    log = os.readlink(f"/proc/{pid}/fd/2")
    assert log.startswith("pipe:") and os.readlink(f"/proc/{pid}/fd/1") == log
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
        (path,) = (daemon.runtime / "workers").glob("*.sock")
        caller.connect(str(path))
        caller.send(b"no message")
        wait_until(lambda: f"disk: worker {pid}: The connection to the supervisor is broken" in daemon.log(), "its line")
    disk.write(0, block("w"))
    assert daemon.worker_pid("disk") == pid


@pytest.fixture(name="no_traces")
def hide_exceptions():
    """The C library cannot raise SIGABRT behind the filter of calls: it executes what the kernel's log would show."""
    switch = pathlib.Path("/proc/sys/debug/exception-trace")
    before = switch.read_text()
    switch.write_text("0")
    yield
    switch.write_text(before)


@pytest.mark.usefixtures("no_traces")
def test_the_last_words_of_the_c_library_are_in_the_log(make_daemon):
    daemon, disk, pid = _start(make_daemon)
    os.kill(pid, _RELEASE)
    daemon.api.wait_other_worker("disk", pid)
    wait_until(lambda: f"disk: worker {pid}: free(): invalid pointer" in daemon.log(), "the line of the C library")
    disk.write(0, block("w"))


def test_no_line_of_a_worker_is_taken_for_another(make_daemon):
    daemon, _, pid = _start(make_daemon)
    os.kill(pid, _FORGE)
    wait_until(lambda: "forged on stdout" in daemon.log(), "the last of its lines")
    lines = [re.sub(r"^20[0-9T:.-]+Z [a-z]+: ", "", line) for line in daemon.log().split("\n")
             if "forged" in line or "The worker died" in line]
    assert [line.removeprefix(f"disk: worker {pid}: ") for line in lines] == [
        "other: The worker died?", "ublkd: forged by newline", "?[1A?[2Kother: forged by escape",
        "??????forged by bytes", "?forged by zero", "forged on stdout",
    ]
    assert all(line.startswith(f"disk: worker {pid}: ") for line in lines)


def _check_not_held_up(daemon, calm):
    def compare(_):
        flooded = measure(daemon)
        print(summary("flooded", *flooded))
        return is_held_up(*calm, *flooded)

    assert not are_held_up(compare)


@pytest.mark.timed
@pytest.mark.variant  # of the floods of messages
def test_a_flood_of_the_log_holds_up_no_device(make_daemon):
    daemon, disk, flooder = _start(make_daemon)
    daemon.api.create(null_spec("other"))
    calm = measure(daemon)
    print(summary("calm", *calm))
    before = len(daemon.log())
    os.kill(flooder, _FLOOD)
    wait_until(lambda: ": flood" in daemon.log(), "the flood")
    _check_not_held_up(daemon, calm)
    assert daemon.worker_pid("disk") == flooder, "a full log is not a reason to kill it"
    disk.write(0, block("w"))
    wait_until(lambda: "It wrote too much to its log; " in daemon.log(), "what was lost is counted")
    passed = daemon.log()[before:].count(": flood\n")
    print(f"{passed} lines of the flood are in the log")
    assert passed < 4 * _LINES_AT_ONCE


def test_a_worker_outlives_the_reader_of_its_log(make_daemon):
    """It writes while no ublkd runs, and serves on. The next one adopts it, without its log."""
    daemon, disk, pid = _start(make_daemon)
    daemon.kill()
    os.kill(pid, _FORGE)
    disk.write(0, block("w"))
    daemon.start()
    daemon.api.wait_phase("disk", "Live")
    os.kill(pid, _FORGE)
    disk.write(0, block("x"))
    assert daemon.worker_pid("disk") == pid and "forged" not in daemon.log()
