# SPDX-License-Identifier: MIT
"""On a terminal: colours, and a line of progress that disappears."""
import datetime
import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import pytest
from ctl import DEADLINE, TIMED_OUT
from terminal import Terminal

NULL = ["target.type=null", "size=1MiB"]
WRITE = 1


def test_colours(ctl):
    ctl("create", "data", *NULL)
    text, status = Terminal(ctl, "list").end()
    assert status == 0 and "\x1b[32mLive\x1b[0m" in text


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_on_request(ctl, environment):
    ctl("create", "data", *NULL)
    assert "\x1b" not in Terminal(ctl, "list", **environment).end()[0]


def test_an_empty_no_color_means_nothing(ctl):
    ctl("create", "data", *NULL)
    assert "\x1b[32m" in Terminal(ctl, "list", NO_COLOR="").end()[0]


def test_progress_while_it_waits(ctl, server):
    server.tell("auto off")
    terminal = Terminal(ctl, "create", "data", *NULL)
    server.until("waits", 1)
    server.tell("status data Starting Starting Its worker opens the backing store.")
    terminal.read_until(b"data: Starting, waiting until it is Live")
    server.tell("status data Live Live It serves.")
    text, status = terminal.end()
    assert status == 0
    assert text.endswith("\r\x1b[Kdata created, Live at /dev/ublkb0\r\n")  # the line disappears before the answer


def test_progress_of_wait_and_delete(ctl, server):
    server.tell("auto off")
    ctl("create", "data", *NULL, "--no-wait")
    text, status = Terminal(ctl, "wait", "data", "--timeout", "500ms").end()
    assert status == TIMED_OUT and "waiting until it is Live" in text and "\r\x1b[Kublkctl: data: The device is not" in text
    terminal = Terminal(ctl, "delete", "data")
    terminal.read_until(b"waiting until it is gone")
    server.tell("remove data")
    assert terminal.end()[0].endswith("data removed\r\n")


def test_progress_of_an_action_is_a_bar(ctl, server):
    """It is drawn over and over on one line while the action goes on, and wiped before the result."""
    ctl("create", "data", "target.type=loop", "target.path=/nowhere.img", "size=1MiB")
    terminal = Terminal(ctl, "action", "data", "scrub", LC_ALL="C.UTF-8", columns=100)
    terminal.read_until(b"data: scrub   0% ")
    server.tell("act data run 524288 1048576")
    terminal.read_until(b"data: scrub  50% ")
    server.tell("act data run 1048576 1048576")
    terminal.read_until(b"data: scrub 100% ")
    server.tell("act data succeed")
    text, status = terminal.end()
    assert re.search("\rdata: scrub  50% \\(512.*KiB of 1.*MiB\\) \u2588{15}\x1b\\[K\r", text)
    assert re.search("\rdata: scrub 100% \\(1.*MiB of 1.*MiB\\) \u2588{30}\x1b\\[K\r", text)
    drawn, result = text.rsplit("\r\x1b[K", 1)
    assert "\n" not in drawn and status == 0 and json.loads(result) == {"bytesRead": 4096}


def test_no_bar_of_an_action_without_a_terminal(ctl, server):
    ctl("create", "data", "target.type=loop", "target.path=/nowhere.img", "size=1MiB")
    terminal = Terminal(ctl, "action", "data", "scrub", streams=(0, 1))
    while not server.ask("GET", "/devices/data/actions").json["items"]:
        pass
    server.tell("act data run 524288 1048576")
    server.tell("act data fail")
    text, status = terminal.end()
    assert status != 0 and "scrub" not in text and "\x1b" not in text


IN_USE = "status data Stopping StillHeld The kernel waits for its last users: mounted at /mnt."


def test_delete_prints_at_once_what_it_waits_for(ctl, server):
    """It waited for a minute without a word where there was no terminal; a line of progress has no room for the names."""
    server.tell("auto off")
    for verb in ("delete", "detach"):
        ctl("create", "data", *NULL, "--no-wait")
        process = ctl.start(verb, "data", "--force", stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        server.until("watches", 1)
        server.tell(IN_USE)
        line = process.stderr.readline()
        assert all(value in line for value in ("data: ", "/mnt", "--timeout"))
        server.tell(IN_USE.replace("its last", "the last"))
        server.tell("remove data")
        out, err = process.communicate(timeout=DEADLINE)
        assert (process.returncode, out, err) == (0, "data removed\n", "")
    ctl("create", "data", *NULL, "--no-wait")
    terminal = Terminal(ctl, "delete", "data", "--force", "--timeout", "20s")
    server.until("watches", 1)
    server.tell(IN_USE)
    terminal.read_until(b"--timeout")
    terminal.read_until(b"waiting until it is gone")
    server.tell("remove data")
    text, status = terminal.end()
    assert status == 0 and text.count("--timeout") == 1 and text.endswith("data removed\r\n")


def test_progress_is_for_a_terminal_at_stderr_only(ctl, server):
    server.tell("auto off")
    ctl("create", "data", *NULL, "--no-wait")
    text, _ = Terminal(ctl, "wait", "data", "--timeout", "500ms", streams=(0, 1)).end()
    assert text == ""


def test_an_empty_list_has_a_message_on_a_terminal(ctl):
    assert "No devices." in Terminal(ctl, "list").end()[0]
    assert ctl("list").err == ""


def test_top_ends_while_the_daemon_does_not_answer(ctl, server):
    ctl("create", "data", *NULL)
    terminal = Terminal(ctl, "top", "-i", "100ms")
    terminal.read_until(b"ERR/s")
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        terminal.send(b"\x03")
        text, status = terminal.end()
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    assert status == 0 and text.endswith("\x1b[?1049l") and "does not answer" not in text


def local(time):
    """A time of the API as a terminal in Tokyo shows it."""
    moment = datetime.datetime.fromisoformat(time).astimezone(datetime.timezone(datetime.timedelta(hours=9)))
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def test_times_are_local_with_their_age_on_a_terminal(ctl):
    ctl("create", "data", *NULL)
    device = ctl("get", "data").json
    text = Terminal(ctl, "describe", "data", TZ="Asia/Tokyo", NO_COLOR="1").end()[0]
    assert re.search(rf"Created: +{local(device['createdAt'])} \([0-9]+s ago\)\r\n", text)
    assert f"since {local(device['status']['worker']['startedAt'])} (" in text
    assert f"  {local(device['status']['conditions'][0]['lastTransitionTime'])}  " in text
    events = Terminal(ctl, "events", TZ="Asia/Tokyo", NO_COLOR="1").end()[0].splitlines()
    assert events and all(re.match(r"20..-..-.. ..:..:..  [0-9]+s +Normal ", line) for line in events), events


def test_the_time_of_an_error_is_local_too(ctl, server):
    ctl("create", "data", *NULL)
    server.tell(f"failed data {WRITE} {errno.EIO} 1 0 4096")
    text = Terminal(ctl, "describe", "data", TZ="Asia/Tokyo", NO_COLOR="1").end()[0]
    at = local(ctl("get", "data").json["status"]["ioErrors"][0]["at"])
    assert re.search(rf"EIO, {at} \([0-9a-z]+ ago\)\r\n", text)


def test_times_are_in_utc_without_a_terminal(ctl):
    ctl("create", "data", *NULL)
    device = ctl("get", "data").json
    text = ctl("describe", "data", environment={"TZ": "Asia/Tokyo"}).out
    assert f"Created:        {device['createdAt']} (" in text
    for line in ctl("events", environment={"TZ": "Asia/Tokyo"}).lines:
        assert re.match(r"20..-..-..T..:..:..\....Z  Normal ", line)


def test_a_repeated_event_shows_since_when(ctl, server):
    server.tell("auto off")
    ctl("create", "data", *NULL, "--no-wait")
    for phase in ("Backoff", "Starting") * 3:
        server.tell(f"status data {phase} {phase} It is the same.")
    repeated = [event for event in map(json.loads, ctl("events", "-o", "json").lines) if event["count"] > 1]
    assert repeated and f"({repeated[0]['count']} times since {repeated[0]['firstTime']})" in ctl("events").out


def table_of_top(ctl, columns):
    """The lines of a table of top in a terminal that is so wide."""
    terminal = Terminal(ctl, "top", "-i", "100ms", columns=columns, NO_COLOR="1", LC_ALL="C.UTF-8")
    terminal.read_until(b"IN FLIGHT")
    terminal.read_until(b"\x1b[H\x1b[J")
    while terminal.text.count(b"\x1b[H\x1b[J") < 3:
        terminal.read()
    terminal.send(b"\x03")
    return terminal.end()[0].split("\x1b[H\x1b[J")[2].split("\r\n")


def test_top_in_80_columns_keeps_what_is_in_flight(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("count data 0 0 123456 1048576 12345678")
    heading, data, *_ = table_of_top(ctl, 80)
    assert "ERR/s" in heading and "READ/s" in heading and "WRITE/s" in heading and "IN FLIGHT" in heading
    assert len(heading) <= 80 and len(data) <= 80 and data.startswith("data ")
    assert "OTHER/s" not in heading, "the least important one makes room"


def test_top_shortens_a_long_name_at_last(ctl, server):
    ctl("create", "a-name-that-is-as-long-as-the-names-of-some-virtual-machines-63", *NULL)
    heading, data, *_ = table_of_top(ctl, 80)
    assert "IN FLIGHT" in heading and len(heading) <= 80 and data.startswith("a-name-that-is-")


def test_top_in_a_wide_terminal_has_all_columns_and_a_curve(ctl):
    ctl("create", "data", *NULL)
    heading, data, *_ = table_of_top(ctl, 160)
    assert heading.endswith("OTHER/s  IN FLIGHT  LOAD") and data.split()[-1].startswith("\u2581")
