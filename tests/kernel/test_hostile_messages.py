# SPDX-License-Identifier: MIT
"""What a worker that was taken over can do to its supervisor with the socket between them: be killed.

The measure is the same guest, slow as it may be, where the worker of the device is killed by SIGKILL instead.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import pytest

from harness import programs
from harness.api import condition_of, loop_spec, null_spec
from harness.bystander import ROUNDS, are_held_up, is_held_up, measure, summary
from harness.disk import Background, Disk, block
from harness.hostile import Hostile, deed_number
from harness.wait import holds_for, wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test
_LIMIT = 1200  # seconds, on a busy machine, where all comparisons are needed


def _reasons(daemon, name):
    return [event["reason"] for event in daemon.events(name)]


@contextlib.contextmanager
def _busy_processes(count):
    """Ordinary processes that spin."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


def _measure(daemon, disturb):
    return measure(daemon, prepare=lambda: daemon.api.wait_phase("hostile", "Live"), disturb=disturb)


def _check_not_held_up(what, daemon, disturb, busy=0):
    """Compare recoveries and /healthz while `disturb` goes on with the same while the worker is killed instead, beside so many
    busy processes."""

    def compare(_):
        with _busy_processes(busy):
            calm, calm_health = _measure(daemon, lambda: daemon.kill_worker("hostile"))
        disturbed, disturbed_health = _measure(daemon, disturb)
        print(summary("killed", calm, calm_health))
        print(summary(what, disturbed, disturbed_health))
        return is_held_up(calm, calm_health, disturbed, disturbed_health)

    assert not are_held_up(compare), what


def _check_replaced(daemon, disk, attackers):
    for pid in attackers:
        wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"), "the attacking worker is dead")
    wanted = ROUNDS + len(attackers)
    daemon.api.wait_for("hostile", lambda seen: seen["status"]["recoveries"]["count"] >= wanted, "recovered each time")
    assert daemon.worker_pid("hostile") not in attackers
    disk.write(0, block("w"))


@pytest.mark.timed
@pytest.mark.timeout(_LIMIT)
@pytest.mark.parametrize("deed", ["largest", *(pytest.param(deed, marks=pytest.mark.storm) for deed in ("notice", "ready", "news", "grown"))])
def test_a_flood_of_messages_holds_up_no_other_device(deed, lair, make_daemon):
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    disk = Disk(daemon.api.create(null_spec("hostile"))["status"]["id"])
    daemon.api.create(null_spec("other"))
    flooders = []

    def begin_flood():
        pid = daemon.worker_pid("hostile")
        if pid not in flooders:  # else the last flood goes on
            flooders.append(pid)
            Hostile(lair, pid, disk).do(deed)

    _check_not_held_up(deed, daemon, begin_flood)
    _check_replaced(daemon, disk, flooders)
    assert "WorkerBrokeProtocol" in _reasons(daemon, "hostile")
    assert "WorkerBrokeProtocol" not in _reasons(daemon, "other")


def _spins(pid, threads):
    """Whether so many threads of a process want a CPU, or it has been killed for that."""
    try:
        states = [status.read_text().split(") ")[1][0] for status in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return True
    return not states or states.count("R") >= threads


def _write_on(cpu, disk):
    """Write to the hardware queue of a CPU. That queue spins which has the next completion, perhaps one of a timer."""
    os.sched_setaffinity(0, {cpu})  # of this thread
    disk.write(0, block("w"))


@pytest.mark.timed
@pytest.mark.variant  # of the floods
@pytest.mark.timeout(_LIMIT)
@pytest.mark.parametrize("deed,threads", [("spin", 1), ("spin-all", 3)])
def test_threads_that_spin_hold_up_no_other_device(deed, threads, lair, make_daemon):
    """One thread, beside which the second queue of the disk serves on, or all. They have what CPU time as many processes could
    have, and nothing beyond that."""
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    device = daemon.api.create(null_spec("hostile", queues=2, recovery={"hangAfter": "2s"}))
    assert len(daemon.api.ask("GET", "/devices/hostile/stats", 200)["queues"]) == 2
    disk = Disk(device["status"]["id"])
    daemon.api.create(null_spec("other"))
    daemon.api.create(null_spec("bystander"))
    bystander = daemon.worker_pid("bystander")
    spinners, writes = [], []

    def begin_to_spin():
        pid = daemon.worker_pid("hostile")
        if pid not in spinners:  # else the last one spins on
            spinners.append(pid)
            worker = Hostile(lair, pid, disk)
            worker.do(deed)
            wait_until(worker.has_done, "a thread is to spin")
            writes.extend(Background(_write_on, cpu, disk) for cpu in os.sched_getaffinity(0))  # each queue is met
            wait_until(lambda: _spins(pid, threads), f"{threads} threads spin")

    _check_not_held_up(deed, daemon, begin_to_spin, busy=threads)
    for write in writes:
        assert write.result() is None
    _check_replaced(daemon, disk, spinners)
    assert _reasons(daemon, "hostile").count("WorkerHung") >= 1
    assert "WorkerHung" not in _reasons(daemon, "other") + _reasons(daemon, "bystander")
    assert daemon.worker_pid("bystander") == bystander


def test_a_device_whose_workers_break_the_protocol_backs_off(lair, make_daemon, monkeypatch):
    """They send READY before GO, from their first moment on."""
    monkeypatch.setenv("UBLKD_HOSTILE_DEED", deed_number("ready"))
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    daemon.api.create(null_spec("hostile"), wait=None)
    device = daemon.api.wait_for(
        "hostile", lambda seen: condition_of(seen)["reason"] == "WorkerBrokeProtocol", "killed for what it sent"
    )
    assert device["status"]["phase"] != "Live"
    wait_until(lambda: len(list(lair.iterdir())) >= 4, "some workers were tried")
    began, before = time.monotonic(), len(list(lair.iterdir()))
    holds_for(lambda: daemon.api.phase("hostile") != "Live", 3, "the disk is not served")
    tried = len(list(lair.iterdir())) - before
    print(f"{tried} workers in {time.monotonic() - began:.1f} s")
    assert tried <= 6  # the fourth waits for 800 ms


_LIVES = 12
_NAMES_OF_A_DISK, _NOTICES = 4, 16  # ublkd/model/reason.h, ublkd/plan/worker_messages.c


def test_workers_that_send_new_reasons_and_exit_push_out_no_event_of_others(lair, make_daemon):
    """Each sends as many notices as one worker may, and serves for long enough that the next one starts at once. Before, the
    names of their reasons were kept for ever, and 256 of them had the whole log."""
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    daemon.api.create(null_spec("honest"))
    disk = Disk(daemon.api.create(null_spec("hostile"))["status"]["id"])
    began, lives = time.monotonic(), []
    for _ in range(_LIVES):
        lives.append(daemon.worker_pid("hostile"))
        Hostile(lair, lives[-1], disk).do("notice-and-exit")
        daemon.api.wait_other_worker("hostile", lives[-1])
    took = time.monotonic() - began
    notices = [event for event in daemon.events("hostile") if event["reason"].startswith(("Hostile", "Other"))]
    reasons = {event["reason"] for event in notices}
    print(f"{_LIVES} lives in {took:.1f} s, {sum(event['count'] for event in notices)} notices: {sorted(reasons)}")
    assert len(set(lives)) == _LIVES and "WorkerDied" in _reasons(daemon, "hostile")
    assert "Other" in reasons and len(reasons) <= _NAMES_OF_A_DISK + 1 and len(notices) == len(reasons)
    assert sum(event["count"] for event in notices) <= _NOTICES + took / 10 + 1
    assert {"Created", "Live"} <= set(_reasons(daemon, "honest"))
    disk.write(0, block("b"))


def _start_beside_an_honest_one(lair, make_daemon):
    """Return the daemon, the hostile disk and what gives orders to its worker, and the pids of both workers."""
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    disk = Disk(daemon.api.create(null_spec("hostile"))["status"]["id"])
    daemon.api.create(null_spec("honest"))
    hostile, honest = daemon.worker_pid("hostile"), daemon.worker_pid("honest")
    return daemon, disk, Hostile(lair, hostile, disk), hostile, honest


def _check_only_one_broke_the_protocol(daemon, hostile, honest):
    """Another worker serves the hostile disk, and the honest one has not noticed."""
    began = time.monotonic()
    daemon.api.wait_other_worker("hostile", hostile)
    print(f"served by another worker {time.monotonic() - began:.1f} s later")
    assert not os.path.exists(f"/proc/{hostile}")
    reasons = _reasons(daemon, "hostile")
    assert "WorkerBrokeProtocol" in reasons and "Recovered" in reasons
    assert daemon.worker_pid("honest") == honest and "WorkerBrokeProtocol" not in _reasons(daemon, "honest")


def test_a_worker_that_closed_its_socket_is_replaced_by_the_next_supervisor(lair, make_daemon):
    """Before, its disk could be neither recovered nor removed."""
    daemon, disk, worker, hostile, honest = _start_beside_an_honest_one(lair, make_daemon)
    worker.do("close")
    wait_until(worker.has_done, "the socket is closed")
    disk.write(0, block("a"))
    daemon.kill()
    daemon.start()
    _check_only_one_broke_the_protocol(daemon, hostile, honest)
    disk.write(0, block("b"))
    daemon.api.delete("hostile")


def test_a_worker_that_closes_its_channel_and_lives_on_is_replaced(lair, make_daemon):
    """Before, its disk did not grow, and its faults were not reported, until ublkd started again."""
    daemon, disk, worker, hostile, honest = _start_beside_an_honest_one(lair, make_daemon)
    worker.do("close-channel")
    _check_only_one_broke_the_protocol(daemon, hostile, honest)
    disk.write(0, block("b"))
    assert disk.read(0, 512) == bytes(512)  # of null


def test_a_worker_whose_main_thread_ended_is_replaced(lair, make_daemon):
    """Before, its queues kept its channel open, and it served on until ublkd started again."""
    daemon, disk, worker, hostile, honest = _start_beside_an_honest_one(lair, make_daemon)
    worker.do("end-main")
    _check_only_one_broke_the_protocol(daemon, hostile, honest)
    disk.write(0, block("b"))


def test_a_worker_whose_socket_was_removed_on_the_host_serves_on(make_daemon):
    """It has not done that itself, and its users must not notice."""
    daemon = make_daemon().start()
    disk = Disk(daemon.api.create(null_spec("disk"))["status"]["id"])
    pid = daemon.worker_pid("disk")
    daemon.kill()
    (name,) = (daemon.runtime / "workers").glob("*.sock")
    name.unlink()
    daemon.start()
    holds_for(lambda: os.path.exists(f"/proc/{pid}"), 3, "the worker lives")
    disk.write(0, block("a"))
    assert "WorkerBrokeProtocol" not in _reasons(daemon, "disk")


def test_a_worker_without_a_store_does_not_take_that_of_another_disk(lair, file_of, make_daemon):
    """It names it to the next supervisor. Before, the other disk was refused its own store at its next recovery."""
    daemon, disk, worker, hostile, _ = _start_beside_an_honest_one(lair, make_daemon)
    daemon.api.create(loop_spec("victim", file_of("victim")))
    (claim,) = (path for path in (daemon.runtime / "workers").glob("*.claim") if path.read_text() != "none\n")
    span, key = claim.read_text().splitlines()
    start, end = span.split()[:2]
    worker.claim(f'"claims":[{{"key":"{key}","start":"{start}","end":"{end}","writes":true,"mapped":false}}]')
    victim = daemon.worker_pid("victim")
    daemon.kill()
    daemon.start()
    daemon.api.wait_other_worker("hostile", hostile)
    assert "WorkerBrokeProtocol" in _reasons(daemon, "hostile")
    assert daemon.worker_pid("victim") == victim
    daemon.kill_worker("victim")
    daemon.api.wait_other_worker("victim", victim)
    disk.write(0, block("b"))


@pytest.mark.storm
def test_a_worker_whose_main_thread_ended_is_replaced_by_the_next_supervisor(lair, make_daemon):
    """Its queues serve, and its socket was closed with the thread that listened."""
    daemon, disk, worker, hostile, honest = _start_beside_an_honest_one(lair, make_daemon)
    worker.do("end-main")
    wait_until(lambda: pathlib.Path(f"/proc/{hostile}/stat").read_text().split(") ")[1][0] == "Z", "it is a zombie")
    disk.write(0, block("a"))
    daemon.kill()
    daemon.start()
    daemon.api.wait_other_worker("hostile", hostile, timeout=120)
    assert not os.path.exists(f"/proc/{hostile}") and daemon.worker_pid("honest") == honest
    disk.write(0, block("b"))
    daemon.api.delete("hostile")
