# SPDX-License-Identifier: MIT
"""The memory of ublkd itself stays constant while clients create and remove many devices. Without a driver no device
gets a disk: tests/kernel/test_scale.py tests that part."""
import os
import socket
import subprocess
import tempfile
import time

from api_server import DEADLINE, UnixConnection, ask

PROGRAM, WORKER = os.environ["UBLKD_PROGRAM"], os.environ["UBLKD_WORKER"]
PAIRS = 1500
GROWTH_KIB = 140  # from the first to the last of three parts, so a leak of 140 bytes for a device shows
TRIES = 4  # a heap in pieces grows by some 100 KiB at a time, and then not for long; a leak grows in each try


def resident(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))


def listens(path):
    """A socket is there a moment before ublkd listens on it."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def await_socket(path, process):
    end = time.monotonic() + DEADLINE
    while not listens(path):
        assert process.poll() is None and time.monotonic() < end, "it does not start"
        time.sleep(0.01)


def come_and_go(connection, pairs):
    for i in range(pairs):
        name = f"device-{i % 7}"
        spec = {"name": name, "target": {"type": "null"}, "size": "1MiB", "labels": {"round": str(i)}}
        assert ask(connection, "POST", "/devices", spec).status == 201
        assert ask(connection, "DELETE", f"/devices/{name}?wait").status in (200, 204)


def highest(process, connection):
    """The highest value during a third of all pairs: malloc returns memory now and then, 128 KiB or more."""
    most = 0
    for _ in range(10):
        come_and_go(connection, PAIRS // 30)
        most = max(most, resident(process))
    return most


def growth(process, connection):
    before = highest(process, connection)
    come_and_go(connection, PAIRS // 3)
    return highest(process, connection) - before


def warm_up(connection):
    """Run until bounded things have reached their bounds: the event log, and by then the database's cache."""
    begin = ask(connection, "GET", "/devices").json["revision"]
    json_only = {"Accept": "application/json"}
    while ask(connection, "GET", f"/events?limit=1&after={begin}", headers=json_only).status != 410:
        come_and_go(connection, 100)
    come_and_go(connection, PAIRS // 3)


def test_memory_stays_constant_over_many_devices():
    with tempfile.TemporaryDirectory(prefix="ublkd-memory-", dir="/dev/shm") as directory:
        path = os.path.join(directory, "run", "ublkd.sock")
        command = [PROGRAM, "--config-root", f"{directory}/root", "--worker", WORKER,
                   "--state-dir", f"{directory}/state", "--runtime-dir", f"{directory}/run"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                await_socket(path, process)
                connection = UnixConnection(path)
                warm_up(connection)
                growths = []
                while not growths or (growths[-1] > GROWTH_KIB and len(growths) < TRIES):
                    growths.append(growth(process, connection))
                assert growths[-1] <= GROWTH_KIB, growths
            finally:
                process.terminate()
            assert process.wait(DEADLINE) == 0
