# SPDX-License-Identifier: MIT
"""stats and top: the counters, and their change over time."""
import json
import subprocess

from ctl import DEADLINE, NOT_FOUND, OK, USAGE
from ctl_terminal_test import Terminal

NULL = ["target.type=null", "size=1MiB"]
READ, WRITE = 0, 1


def count(server, name, operation, times, size=4096, nanoseconds=10000):
    server.tell(f"count {name} 0 {operation} {times} {size} {nanoseconds}")


def test_stats(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1000)
    count(server, "data", WRITE, 3, size=1 << 20, nanoseconds=5000000)
    read, write = ctl("stats", "data").rows
    assert read[:6] == ["data", "read", "1000", "3.91MiB", "0", "0"]
    assert all(time.endswith("us") and 9 <= float(time[:-2]) <= 11 for time in read[6:])
    assert write[:4] == ["data", "write", "3", "3MiB"] and write[6].endswith("ms")
    assert ctl("stats", "data", "-o", "json").json == server.ask("GET", "/devices/data/stats").json


def test_stats_of_all_and_of_an_unknown_device(ctl, server):
    ctl("create", "data", *NULL)
    ctl("create", "other", *NULL)
    count(server, "data", READ, 1)
    assert {row[0] for row in ctl("stats").rows} >= {"data"}
    assert isinstance(ctl("stats", "-o", "json").json, list)
    run = ctl("stats", "nope", "data", status=NOT_FOUND)
    assert run.rows[0][0] == "data" and "ublkctl: nope: " in run.err
    assert ctl("top", "nope", "-b", "-n", "1", status=NOT_FOUND).out == ""


def test_top_in_batch_mode(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1)
    process = ctl.start("top", "-b", "-n", "200", "-i", "100ms", stdout=subprocess.PIPE)
    try:
        for line in process.stdout:  # everything counted before the first reading is not load
            if line.startswith("data"):
                break
        assert line.split()[1:3] == ["0", "0"] and line.split()[4:6] == ["-", "-"]
        count(server, "data", READ, 100000)
        for line in process.stdout:
            if line.startswith("data") and line.split()[2] != "0":
                break
        cells = line.split()
        assert cells[2].endswith(("k", "M")) and cells[3].endswith("iB") and cells[4].endswith("us")
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE)


def test_top_counts_its_tables(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1)
    run = ctl("top", "-b", "-n", "2", "-i", "100ms")
    assert sum(line.startswith("NAME") for line in run.lines) == 2 and "\x1b" not in run.out
    ctl("top", "-n", "0", status=USAGE)
    ctl("top", "-i", "1us", status=USAGE)


def test_top_refreshes_a_terminal_and_leaves_it_as_it_was(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1)
    terminal = Terminal(ctl, "top", "-i", "100ms")
    terminal.read_until(b"data")
    terminal.read_until(b"data")
    terminal.send(b"\x03")  # Ctrl-C
    text, status = terminal.end()
    assert status == OK
    assert "\x1b[?1049h" in text and "\x1b[H\x1b[J" in text and text.endswith("\x1b[?25h\x1b[?1049l")


def test_top_ends_when_its_reader_leaves(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1)
    process = ctl.start("top", "-b", "-i", "100ms", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(DEADLINE) == 1 and process.stderr.read() == ""
    process.stderr.close()


def test_top_reports_a_daemon_that_disappears(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1)
    terminal = Terminal(ctl, "top", "-i", "100ms")
    terminal.read_until(b"data")
    server.stop()
    server.started = True
    text, status = terminal.end()
    assert status == 5 and "ublkd is not running" in text.split("\x1b[?1049l")[1]


def test_top_draws_the_load_of_the_last_intervals(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1)
    process = subprocess.Popen([ctl.program, "top", "-b", "-n", "200", "-i", "100ms"], text=True, stdout=subprocess.PIPE,
                               env=ctl.environment(LC_ALL="C"))
    try:
        curves = []
        for line in process.stdout:
            if not line.startswith("data"):
                continue
            curves.append(line.split()[-1])
            if len(curves) == 2:
                count(server, "data", READ, 1000)
            if len(curves) > 2 and "#" in curves[-1]:
                break
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert curves[0] == "_" and curves[1] == "__", "without UTF-8, from the first interval on"
    assert curves[-1].startswith("__") and curves[-1].endswith("#")


def test_top_as_data(ctl, server):
    ctl("create", "data", *NULL)
    count(server, "data", READ, 1)
    process = ctl.start("top", "-o", "json", "-i", "100ms", stdout=subprocess.PIPE)
    try:
        first = json.loads(process.stdout.readline())
        assert first["devices"][0]["read"] == {"requestsPerSec": 0, "bytesPerSec": 0, "p50Ns": None, "p99Ns": None}
        count(server, "data", READ, 1000)
        for line in process.stdout:
            interval = json.loads(line)
            (device,) = interval["devices"]
            if device["load"][-1] > 0:
                break
    finally:
        process.terminate()
        process.communicate(timeout=DEADLINE)
    assert device["name"] == "data" and abs(device["read"]["requestsPerSec"] * interval["seconds"] - 1000) < 1
    assert 9000 < device["read"]["p50Ns"] < 11000 and device["inFlight"] == 0 and len(device["load"]) <= 12
    ctl("top", "-o", "name", status=USAGE)
