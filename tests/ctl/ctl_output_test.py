# SPDX-License-Identifier: MIT
"""Tables, JSON and names; readers that leave; output that is not a terminal."""
import json
import os
import re
import resource
import subprocess

import pytest
from ctl import FAILED, PROGRAM, USAGE

NULL = ["target.type=null", "size=1MiB"]


def test_an_aligned_table(ctl):
    ctl("create", "a", *NULL)
    ctl("create", "a-long-name", "target.type=null", "size=10GiB")
    lines = ctl("list").lines
    assert lines[0].split() == ["NAME", "PHASE", "DEVICE", "SIZE", "TARGET", "BACKING", "AGE"]
    column = lines[0].index("PHASE")
    assert all(line[column - 1] == " " and line[column:].startswith(("PHASE", "Live")) for line in lines)
    assert [row[3] for row in ctl("list").rows] == ["1MiB", "10GiB"]
    assert not any(line.endswith(" ") for line in lines)


def test_wide_name_and_json(ctl, server):
    ctl("create", "data", *NULL, "labels.app=db", "labels.tier=1")
    (row,) = ctl("list", "-o", "wide").rows
    assert "app=db,tier=1" in row and row[-1] == "-"
    assert ctl("list", "-o", "name").out == "data\n"
    listed = ctl("list", "-o", "json").json
    assert listed["items"] == server.ask("GET", "/devices").json["items"]
    assert ctl("get", "data").json == listed["items"][0]
    assert ctl("get", "data", "data").json == listed["items"] * 2
    assert ctl("get", "data", "-o", "table").rows[0][0] == "data"


def test_labels_and_pages(ctl, tmp_path):
    specs = [{"name": f"d{i:04}", "target": {"type": "null"}, "size": "1MiB", "labels": {"n": str(i % 2), "x": "a&b=c d"}}
             for i in range(1200)]
    (tmp_path / "many.json").write_text(json.dumps(specs))
    assert len(ctl("apply", "-f", "many.json").lines) == 1200
    names = ctl("list", "-o", "name").lines
    assert names == [spec["name"] for spec in specs]  # three pages
    assert ctl("list", "-l", "n=1", "-l", "x=a&b=c d", "-o", "name").lines == names[1::2]
    assert ctl("list", "-l", "n=7", "-o", "name").out == ""
    assert "not KEY=VALUE" in ctl("list", "-l", "nonsense", status=USAGE).err


def test_big_numbers_stay_whole(ctl):
    ctl("create", "data", "target.type=null", "size=4503599627370496")
    assert ctl("get", "data").json["spec"]["size"] == 4503599627370496


def test_control_characters_do_not_reach_the_terminal(ctl, server):
    ctl("create", "data", *NULL, "labels.evil=\x1b]0;x\x07")
    server.tell("status data Backoff Evil \x1b[31mred\x9b")
    for arguments in (["list", "-o", "wide"], ["describe", "data"], ["events"]):
        assert "\x1b" not in ctl(*arguments).out and "\x07" not in ctl(*arguments).out


DANGEROUS = "\x1b\x07\x7f\x9b\u061c\u200f\u2028\u202e\u2066"  # ESC, BEL, DEL, CSI, what breaks a line or turns a text


@pytest.mark.parametrize("arguments", [
    ["get", "data"], ["get", "data", "data"], ["get", "data", "-o", "yaml"], ["list"], ["list", "-o", "wide"],
    ["list", "-o", "json"], ["list", "-o", "yaml"], ["describe", "data"], ["events"], ["events", "-o", "wide"],
    ["events", "-o", "json"], ["events", "-o", "yaml"], ["export"], ["stats", "-o", "json"],
    ["apply", "--dry-run", "-f", "-"]], ids=" ".join)
def test_a_text_of_a_client_moves_no_terminal(ctl, server, arguments):
    """Of labels, of a path, and of a message. Where the whole text is shown, the data is the same."""
    target = {"type": "loop", "path": f"/home/{DANGEROUS}\u00e9"}
    spec = {"name": "data", "target": target, "size": "1MiB", "labels": {"evil": DANGEROUS}}
    assert server.ask("POST", "/devices?wait", spec).status == 201
    server.tell(f"status data Backoff Evil {DANGEROUS}")
    run = ctl(*arguments, stdin=json.dumps({**spec, "labels": {"evil": DANGEROUS * 2}}))
    assert run.out and not set(DANGEROUS) & set(run.out + run.err)
    if arguments[0] == "get" and "yaml" not in arguments:
        (*_, device) = run.json if isinstance(run.json, list) else [run.json]
        assert device["spec"]["target"]["path"] == target["path"] and "\u00e9" in run.out


def test_nothing_is_coloured_and_no_progress_is_shown_without_a_terminal(ctl, server):
    ctl("create", "data", *NULL)
    for arguments in (["list"], ["describe", "data"], ["apply", "-f", "-"]):
        run = ctl(*arguments, stdin='{"name": "x", "target": {"type": "null"}, "size": "1MiB"}')
        assert "\x1b" not in run.out and run.err == ""


def closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def test_a_broken_pipe_is_silent(ctl):
    ctl("create", "data", *NULL)
    for arguments in (["list"], ["get", "data"], ["--help"], ["events"]):
        writing = closed_pipe()
        done = subprocess.run([PROGRAM, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60,
                              env=ctl.environment())
        os.close(writing)
        assert done.returncode == FAILED and done.stderr == b"", arguments


def test_a_broken_pipe_leaves_nothing_half_done(ctl, tmp_path):
    specs = [{"name": f"d{i}", "target": {"type": "null"}, "size": "1MiB"} for i in range(20)]
    (tmp_path / "many.json").write_text(json.dumps(specs))
    writing = closed_pipe()
    subprocess.run([PROGRAM, "apply", "-f", str(tmp_path / "many.json")], stdout=writing, check=False, timeout=60,
                   env=ctl.environment())
    os.close(writing)
    assert len(ctl("list", "-o", "name").lines) == 20


def test_a_full_disk_is_reported(ctl):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                              env=ctl.environment(), timeout=60)
    assert done.returncode == FAILED and "cannot write" in done.stderr


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_standard_streams(ctl, closed):
    subprocess.run([PROGRAM, "list"], check=False, timeout=60, env=ctl.environment(), capture_output=closed != 1,
                   preexec_fn=lambda: os.close(closed))
    assert resource.getrusage(resource.RUSAGE_CHILDREN)


def test_json_is_indented_with_spaces(ctl):
    ctl("create", "data", "target.type=null", "size=1MiB", "labels.a=b\tc: \t")
    text = ctl("get", "data").out
    assert "\t" not in text and '\n    "name": "data",\n' in text
    assert json.loads(text)["spec"]["labels"] == {"a": "b\tc: \t"}


VERBS = ["create", "get", "list", "events", "stats", "top", "latency", "host", "targets"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_names_the_formats_that_a_verb_has(ctl, verb):
    """And the error that lists them names the same."""
    words = " ".join(ctl(verb, "--help").out.split())
    offered = set(re.search(r"how to print: ([a-z, ]+? or [a-z]+)", words).group(1).replace(" or ", ", ").split(", "))
    refused = ctl(verb, "x", "-o", "xml", status=USAGE).err
    assert offered == set(re.search(r"give one of ([a-z, ]+)\.", refused).group(1).split(", "))
    assert ("name" in offered) == (verb not in ("events", "top", "latency"))
