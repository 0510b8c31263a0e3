# SPDX-License-Identifier: MIT
"""-o yaml: a reader of YAML gets the values of -o json."""
import json
import subprocess

import pytest
import yaml
from ctl import FAILED, PROGRAM

NULL = ["target.type=null", "size=1MiB"]

# What a reader could take for something else than a string, or not read at all.
STRINGS = ["", " ", "true", "False", "yes", "NO", "on", "Off", "y", "null", "~", "Null", "1", "1.5", "1e3", "0x10", "0o7", "010", "1_000",
           "+1", "-1", ".5", ".inf", "-.inf", ".nan", "1:30", "12:30:45", "2026-11-25", "2026-11-25T10:00:00Z", "=", "<<", "- a", "-",
           "a: b", "a:b", "a #b", "#", "a,b", "[a]", "{a}", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'a'", '"a"', "a\\b", "\\n", "? a",
           "a ", " a", "a  b", "...", "---", "end.", "/dev/disk", "snake_case", "d\u00e4ta", "\u4e2d\u6587", "\U0001f600", "\u0085", "\u2028",
           "\ufeffx", "\x7f", "\x9b[31m", "\x1b[31m", "a\tb", "a\nb", "\n", "a\r\n", "x" * 200]


def test_strings_stay_strings(ctl):
    for part in range(0, len(STRINGS), 60):
        labels = {f"n{index}": text for index, text in enumerate(STRINGS[part:part + 60])}
        ctl("create", "-f", "-", stdin=json.dumps({"name": f"d{part}", "target": {"type": "null"}, "size": "1MiB", "labels": labels}))
        assert ctl("get", f"d{part}").json["spec"]["labels"] == labels
        assert yaml.safe_load(ctl("get", f"d{part}", "-o", "yaml").out) == ctl("get", f"d{part}", "-o", "json").json


def test_keys_stay_strings(ctl):
    keys = ["true", "1", "1.5", "no", "a/b", "2026-11-25", "null", "1e3"]
    ctl("create", "data", *NULL, *(f"labels.{key}=x" for key in keys))
    assert yaml.safe_load(ctl("get", "data", "-o", "yaml").out) == ctl("get", "data").json


def test_yaml_of_lists_and_empty_values_reads_as_the_json(ctl, server):
    assert yaml.safe_load(ctl("list", "-o", "yaml").out) == {"items": []}
    ctl("create", "data", "target.type=null", "size=4503599627370496", "labels={}")
    server.tell("count data 0 0 3 4096 10000")
    for arguments in (["list"], ["get", "data"], ["get", "data", "data"], ["stats", "data"], ["stats"], ["targets"],
                      ["latency", "data"]):
        assert yaml.safe_load(ctl(*arguments, "-o", "yaml").out) == ctl(*arguments, "-o", "json").json, arguments
    read = yaml.safe_load(ctl("host", "-o", "yaml", status=FAILED).out)
    assert read == ctl("host", "-o", "json", status=FAILED).json


def test_create_prints_it(ctl):
    created = yaml.safe_load(ctl("create", "data", *NULL, "-o", "yaml").out)
    assert created["name"] == "data" and created["spec"] == ctl("get", "data").json["spec"]


def test_events_are_documents(ctl):
    ctl("create", "data", *NULL)
    read = list(yaml.safe_load_all(ctl("events", "-o", "yaml").out))
    assert read == [json.loads(line) for line in ctl("events", "-o", "json").lines] and read


@pytest.mark.parametrize("rounds", [1, 2])
def test_top_is_documents(ctl, server, rounds):
    ctl("create", "data", *NULL)
    server.tell("count data 0 0 3 4096 10000")
    read = list(yaml.safe_load_all(ctl("top", "-o", "yaml", "-n", str(rounds), "-i", "100ms").out))
    assert [list(interval) for interval in read] == [["time", "seconds", "devices"]] * rounds
    assert read[-1]["devices"][0]["name"] == "data" and len(read[-1]["devices"][0]["load"]) == rounds


def test_the_locale_changes_nothing(ctl):
    ctl("create", "data", *NULL, "labels.a=d\u00e4ta")
    done = subprocess.run([PROGRAM, "get", "data", "-o", "yaml"], capture_output=True, check=True, env=ctl.environment(LC_ALL="C"))
    assert yaml.safe_load(done.stdout)["spec"]["labels"] == {"a": "d\u00e4ta"}
