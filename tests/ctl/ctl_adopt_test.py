# SPDX-License-Identifier: MIT
"""adopt and export: what a lost database contained comes back, from the runtime directory or from a backup."""
import json
import os
import subprocess

import pytest
from api_server import Server
from ctl import FAILED, NOT_FOUND, PROGRAM, REFUSED, USAGE, Ctl, spec


@pytest.fixture
def lost(tmp_path):
    """A daemon whose database lost the devices a and b; an earlier one is gone with it."""
    server = Server(str(tmp_path))
    ctl = Ctl(server.path, str(tmp_path))
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", labels={"x": "1"}), spec("b")]))
    uids = {device["name"]: device["uid"] for device in ctl("list", "-o", "json").json["items"]}
    server.stop()
    server = Server(str(tmp_path))
    yield ctl, uids
    server.stop()


def test_host_lists_them(lost):
    ctl, uids = lost
    run = ctl.run("host")
    assert "ublkctl adopt a" in run.out and "ublkctl adopt b" in run.out
    assert ctl.run("host", "-o", "name").lines == ["a", "b"] or sorted(ctl.run("host", "-o", "name").lines) == ["a", "b"]
    found = ctl.run("host", "-o", "json").json["adoptable"]
    assert {item["name"]: item["uid"] for item in found} == uids


def test_by_name_and_by_uid(lost):
    ctl, uids = lost
    assert ctl("adopt", "a", uids["b"]).lines == ["a adopted", "b adopted"]
    assert {device["name"]: device["uid"] for device in ctl("list", "-o", "json").json["items"]} == uids
    assert ctl("adopt", "a").lines == ["a adopted"]  # adopting again succeeds
    assert "--name was ignored" in ctl("adopt", "a", "--name", "z", status=REFUSED).err


def test_adopt_all_adopts_each_device_once(lost):
    ctl, uids = lost
    assert sorted(ctl("adopt", "--all").lines) == ["a adopted", "b adopted"]
    assert ctl("get", "a").json["uid"] == uids["a"]
    run = ctl.run("adopt", "--all")
    assert run.status == 0 and run.out == "" and "No device to adopt" in run.err


def test_unknown_names(lost):
    ctl, uids = lost
    run = ctl("adopt", "nope", "a", status=NOT_FOUND)
    assert run.lines == ["a adopted"] and "nope" in run.err
    unknown = uids["a"][:-4] + "0000"
    assert unknown in ctl("adopt", unknown, status=FAILED).err


def test_another_name(lost):
    ctl, uids = lost
    ctl("create", "a", "target.type=null", "size=1MiB")
    assert "--name" in ctl("adopt", "a", status=FAILED).err or ctl("get", "a").json["uid"] != uids["a"]
    assert ctl("adopt", "--name", "old", uids["a"]).lines == ["old adopted"]
    assert ctl("get", "old").json["uid"] == uids["a"]


@pytest.mark.parametrize("arguments", [[], ["--all", "a"], ["--all", "--name", "x"], ["--name", "x", "a", "b"]])
def test_wrong_usage(lost, arguments):
    ctl, _ = lost
    assert "adopt" in ctl("adopt", *arguments, status=USAGE).err


def test_completion(lost):
    ctl, _ = lost
    script = ('source <(ublkctl completion bash); COMP_WORDS=(ublkctl adopt ""); COMP_CWORD=2; _ublkctl; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60,
                          env={**ctl.environment(), "PATH": f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}"})
    assert sorted(done.stdout.split()) == ["a", "b"]


SPECS = [
    spec("a", labels={"x": "1", "y": "\u00e4"}, recovery={"onCrash": "fail"}),
    spec("b", size=2 << 20, queueDepth=64, enabled=False),
    spec("c", id=7, owner={"uid": 1000, "mode": "0600"}, cpus="0"),
]


def specs_of(ctl):
    return {device["name"]: device["spec"] for device in ctl("list", "-o", "json").json["items"]}


@pytest.mark.parametrize("folder", [False, True])
def test_export_and_apply(ctl, tmp_path, folder):
    ctl("apply", "-f", "-", stdin=json.dumps(SPECS))
    before = specs_of(ctl)
    if folder:
        assert ctl("export", "-o", "backup").out == ""
        assert sorted(path.name for path in (tmp_path / "backup").iterdir()) == ["a.json", "b.json", "c.json"]
        source, stdin = "backup", None
    else:
        source, stdin = "-", ctl("export").out
        assert json.loads(stdin) == SPECS
    assert ctl("apply", "-f", source, stdin=stdin).lines == ["a unchanged", "b unchanged", "c unchanged"]
    ctl("delete", "a", "b", "c")
    assert ctl("apply", "-f", source, stdin=stdin).lines == ["a created", "b created", "c created"]
    assert specs_of(ctl) == before
    if folder:  # over the older files
        ctl("set", "a", "queueDepth=32")
        ctl("export", "-o", "backup")
        assert json.loads((tmp_path / "backup" / "a.json").read_text())["queueDepth"] == 32


def test_export_by_label_and_of_nothing(ctl):
    assert ctl("export").json == []
    ctl("apply", "-f", "-", stdin=json.dumps(SPECS))
    assert [item["name"] for item in ctl("export", "-l", "x=1").json] == ["a"]


def test_an_unusable_folder(ctl, tmp_path):
    ctl("apply", "-f", "-", stdin=json.dumps(SPECS[:1]))
    (tmp_path / "file").write_text("")
    assert "file" in ctl("export", "-o", "file", status=FAILED).err
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".a.json.new").mkdir()
    assert ctl("export", "-o", "folder", status=FAILED).err
    assert not (tmp_path / "folder" / "a.json").exists()
