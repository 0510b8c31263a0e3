# SPDX-License-Identifier: MIT
"""latency: histograms in the terminal, and as data."""
import json

import pytest
from ctl import FAILED, NOT_FOUND, REFUSED, USAGE
from ctl_terminal_test import Terminal

NULL = ["target.type=null", "size=1MiB"]
READ, WRITE = 0, 1
UTF_8 = {"LC_ALL": "C.UTF-8"}
BLOCK = "\u2588"


def count(server, operation, times, nanoseconds):
    server.tell(f"count data 0 {operation} {times} 4096 {nanoseconds}")


@pytest.fixture
def data(ctl, server):
    ctl("create", "data", *NULL)
    count(server, READ, 100, 20000)
    count(server, READ, 1000, 70000)
    count(server, WRITE, 50, 9000000)
    return ctl


def test_a_histogram_of_each_operation(data):
    device, read, counts, *rows = data("latency", "data", environment=UTF_8).lines
    assert device == "data" and read.split()[:3] == ["read", "REQUESTS", "P50"]
    assert counts.split()[0] == "1100" and counts.split()[1].endswith("us")
    first, between, last = (row.split() for row in rows[:3])
    assert first[:4] == ["16.4us", "-", "32.8us", "100"] and between[2:] == ["65.5us", "0"]
    assert last[:4] == ["65.5us", "-", "131us", "1k"] and len(first[4]) < len(last[4]) and set(last[4]) == {BLOCK}
    assert max(map(len, rows)) <= 80
    assert [row.split()[0] for row in rows if row and row[0] != " "] == ["write"], "only operations with requests"


def test_without_utf_8_it_draws_with_ascii(data):
    out = data("latency", "data", environment={"LC_ALL": "C"}).out
    assert out.isascii() and "####" in out


def test_it_fits_a_terminal(data):
    text, status = Terminal(data, "latency", "data", columns=50, LC_ALL="C.UTF-8").end()
    assert status == 0 and BLOCK in text
    assert max(len(line) for line in text.split("\r\n") if BLOCK in line) <= 50


def test_one_operation(data):
    assert "write" not in data("latency", "data", "--operation", "read").out
    assert list(data("latency", "data", "--operation", "write", "-o", "json").json["ops"]) == ["write"]
    assert data("latency", "data", "--operation", "flush").out == ""
    data("latency", "data", "--operation", "bogus", status=USAGE)


def test_data_is_that_of_the_api(data, server):
    stats = server.ask("GET", "/devices/data/stats").json
    printed = data("latency", "data", "-o", "json").json
    assert (printed["name"], printed["uid"]) == ("data", stats["uid"])
    for name, operation in stats["total"]["ops"].items():
        assert printed["ops"][name]["requests"] == operation["requests"]
        assert printed["ops"][name]["latencyNs"]["histogram"] == operation["latencyNs"]["histogram"]
        if operation["requests"]:
            assert printed["ops"][name]["latencyNs"]["p99"] == operation["latencyNs"]["p99"]


@pytest.mark.parametrize("verb", ["latency", "stats"])
def test_before_and_since(data, server, tmp_path, verb):
    """A reading before a recovery or a restart, and what came after."""
    (tmp_path / "before.json").write_text(data(verb, "data", "-o", "json").out)
    count(server, READ, 500, 700000)
    printed = data("latency", "data", "--before", "before.json", "-o", "json").json
    assert printed["before"]["ops"]["read"]["requests"] == 1100 and printed["since"]["ops"]["read"]["requests"] == 500
    since = printed["since"]["ops"]["read"]["latencyNs"]
    assert sum(bucket[2] for bucket in since["histogram"]) == 500 and 680000 < since["p50"] < 720000
    assert printed["since"]["ops"]["write"]["latencyNs"]["p50"] is None
    lines = data("latency", "data", "--before", "before.json", environment=UTF_8).lines
    assert [line.split()[:2] for line in lines[2:4]] == [["before", "1100"], ["since", "500"]]
    assert max(map(len, lines)) <= 80


def test_before_of_another_disk_is_refused(data, server, tmp_path):
    (tmp_path / "before.json").write_text(data("latency", "data", "-o", "json").out)
    data("delete", "data")
    data("create", "data", *NULL)
    count(server, READ, 1, 10000)
    assert "begun again" in data("latency", "data", "--before", "before.json", status=REFUSED).err


def test_before_with_more_requests_than_now_is_refused(data, tmp_path):
    reading = data("latency", "data", "-o", "json").json
    reading["ops"]["read"]["latencyNs"]["histogram"][0][2] += 1
    (tmp_path / "before.json").write_text(json.dumps(reading))
    assert data("latency", "data", "--before", "before.json", status=REFUSED).out == ""


def test_before_without_counters_of_the_device(data, tmp_path):
    (tmp_path / "before.json").write_text("[]")
    assert "no counters of this device" in data("latency", "data", "--before", "before.json", status=USAGE).err


def test_several_devices_and_an_unknown_one(data):
    data("create", "other", *NULL)
    assert [device["name"] for device in data("latency", "data", "other", "-o", "json").json] == ["data", "other"]
    run = data("latency", "nope", "data", status=NOT_FOUND)
    assert run.lines[0] == "data" and "ublkctl: nope: " in run.err
    data("latency", "data", "-o", "name", status=USAGE)


@pytest.mark.parametrize("text", ["root:x:0:0::/root:/bin/sh", "{} {}"])
def test_before_is_not_a_reading(data, tmp_path, text):
    (tmp_path / "before").write_text(text)
    fault = data("latency", "data", "--before", "before", status=FAILED).err
    assert "'ublkctl latency -o json'" in fault and "spec" not in fault
