# SPDX-License-Identifier: MIT
"""events: the kept ones, and new ones, also over a restart of the daemon."""
import json
import subprocess

from api_server import Server
from ctl import DEADLINE, FAILED, NO_DAEMON, NOT_FOUND, USAGE, Ctl

NULL = ["target.type=null", "size=1MiB"]


def test_kept_events_come_oldest_first(ctl):
    ctl("create", "data", *NULL)
    ctl("create", "other", *NULL)
    ctl("disable", "data")
    events = [json.loads(line) for line in ctl("events", "-o", "json").lines]
    assert [event["revision"] for event in events] == sorted(event["revision"] for event in events)
    assert {event["device"]["name"] for event in events} == {"data", "other"}
    named = ctl("events", "data").lines
    assert named and all(line.split()[2] == "data" for line in named)
    both = ctl("events", "data", "other").lines
    assert len(both) == len(events) > len(named)
    last = events[-1]["revision"]
    assert ctl("events", "--since", str(last)).out == ""
    assert len(ctl("events", "--since", str(events[0]["revision"])).lines) == len(events) - 1


def test_a_warning_and_its_message(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("status data Backoff BackingFileMissing It is missing; trying again in 4 s.")
    (line,) = [line for line in ctl("events", "data").lines if "BackingFileMissing" in line]
    assert line.endswith("It is missing; trying again in 4 s.")
    assert "BackingFileMissing" in ctl("describe", "data").out.split("Events:")[1]


def read_until(process, words):
    """The line of the output that contains the words."""
    for line in process.stdout:
        if words in line:
            return line
    raise AssertionError(f"the stream ended without {words}: {process.stderr.read()}")


def test_follow(ctl, server):
    ctl("create", "data", *NULL)
    process = ctl.start("events", "-f", "data", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    read_until(process, "data")
    ctl("create", "other", *NULL)
    server.tell("status data Backoff FirstTrouble It is missing.")
    assert "other" not in read_until(process, "FirstTrouble")
    process.stdout.close()
    server.tell("status data Failed SecondTrouble It is broken.")
    assert process.wait(DEADLINE) == 1  # the reader has left
    assert process.stderr.read() == ""
    process.stderr.close()


def test_follow_continues_after_a_restart_of_the_daemon(tmp_path):
    server = Server(tmp_path, "--sqlite")
    assert server.started
    ctl = Ctl(server.path)
    ctl("create", "data", *NULL)
    process = ctl.start("events", "-f", "-o", "json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    read_until(process, '"data"')
    server.stop()
    server = Server(tmp_path, "--sqlite")
    assert server.started
    server.tell("status data Backoff AfterRestart It is missing.")
    assert json.loads(read_until(process, "AfterRestart"))["device"]["name"] == "data"
    process.terminate()
    process.communicate(timeout=DEADLINE)
    server.stop()


def test_follow_without_a_daemon_ends(tmp_path):
    Ctl(str(tmp_path / "none"))("events", "-f", status=NO_DAEMON)


def test_since_is_a_number(ctl):
    ctl("events", "--since", "1KiB", status=USAGE)
    ctl("events", "--since", "-1", status=USAGE)


def test_events_have_no_names_to_print(ctl):
    assert "json" in ctl("events", "-o", "name", status=USAGE).err


def test_since_an_unknown_revision_speaks_of_the_option(ctl):
    run = ctl("events", "--since", "999999", status=FAILED)
    assert run.out == "" and "--since" in run.err and "GET" not in run.err


def test_since_accepts_revisions_of_wide(ctl):
    for name in ("one", "two"):
        ctl("create", name, *NULL)
    wide = ctl("events", "-o", "wide").lines
    assert [line.split(maxsplit=1)[1] for line in wide] == ctl("events").lines
    for index, line in enumerate(wide):
        assert ctl("events", "-o", "wide", "--since", line.split()[0]).lines == wide[index + 1:]


def test_events_of_an_unknown_name_are_an_error(ctl):
    ctl("create", "data", *NULL)
    for arguments in (["nope"], ["data", "nope"], ["-f", "nope"], ["-o", "json", "nope"]):
        run = ctl("events", *arguments, status=NOT_FOUND)
        assert run.out == "" and "ublkctl: nope: " in run.err


def test_events_of_a_removed_device_stay(ctl):
    ctl("create", "data", *NULL)
    ctl("delete", "data")
    assert "Removed" in ctl("events", "data").out
    last = json.loads(ctl("events", "-o", "json").lines[-1])["revision"]
    assert ctl("events", "data", "--since", str(last)).out == "", "nothing new, and not an error"
