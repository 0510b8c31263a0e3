# SPDX-License-Identifier: MIT
"""Devices that files describe: the real ublkd, without a driver. The disks themselves are in tests/kernel."""
import json
import os
import re
import signal
import subprocess

import pytest

from api_server import UnixConnection, ask
from daemon_process import PROGRAM, Daemon, until

SPEC = {"target": {"type": "null"}, "size": "1MiB"}


class Declared(Daemon):
    """With two directories: `etc` is more important than `lib`."""

    def __init__(self, directory):
        self.etc, self.lib = directory / "etc", directory / "lib"
        for place in (self.etc, self.lib):
            place.mkdir(mode=0o755)
        super().__init__(directory)

    def arguments(self):
        return ["--devices-dir", self.etc, "--devices-dir", self.lib]

    def put(self, name, place=None, **fields):
        path = (place or self.etc) / f"{name}.json"
        path.write_text(json.dumps({"name": name, **SPEC, **fields}, indent=1), encoding="utf-8")
        path.chmod(0o644)
        return path

    def reload(self):
        before = self.count_logged("Reloading the files")
        self.process.send_signal(signal.SIGHUP)
        until(lambda: self.count_logged("Reloading the files") > before)

    def device(self, name):
        answer = self.ask("GET", f"/devices/{name}")
        return answer.json if answer.status == 200 else None

    def condition(self, name):
        device = self.device(name) or {"status": {"conditions": []}}
        return next((c["reason"] for c in device["status"]["conditions"] if c["type"] == "Source"), None)

    def has_event(self, name, reason):
        """Read the stream until the event is there; the deadline of the socket ends it."""
        connection = UnixConnection(str(self.socket))
        connection.request("GET", f"/events?device={name}&after=0")
        response = connection.getresponse()
        try:
            while line := response.readline():
                if f'"reason":"{reason}"'.encode() in line:
                    return True
        except TimeoutError:
            pass
        finally:
            connection.close()
        return False

    def problems(self):
        return [p for p in self.ask("GET", "/host").json["problems"] if p["title"].startswith("File")]


@pytest.fixture(name="daemon")
def fixture_daemon(tmp_path):
    daemon = Declared(tmp_path)
    yield daemon
    if daemon.process.poll() is None:
        daemon.stop()


def test_devices_of_files_are_there_at_the_start(tmp_path):
    daemon = Declared.__new__(Declared)
    (tmp_path / "etc").mkdir(mode=0o755)
    (tmp_path / "lib").mkdir(mode=0o755)
    daemon.etc, daemon.lib = tmp_path / "etc", tmp_path / "lib"
    daemon.put("one")
    daemon.put("two", place=daemon.lib)
    daemon.put("bad", size="17 parrots")
    Daemon.__init__(daemon, tmp_path)
    until(lambda: daemon.ask("GET", "/readyz").status == 200)
    items = {item["name"]: item["source"] for item in daemon.ask("GET", "/devices").json["items"]}
    assert items == {"one": str(daemon.etc / "one.json"), "two": str(daemon.lib / "two.json")}
    (problem,) = daemon.problems()
    assert problem["title"] == "FileInvalid"
    assert problem["detail"].startswith(f"{daemon.etc}/bad.json:6: /size: "), problem
    assert daemon.count_logged(f"{daemon.etc}/bad.json:6: /size: ") == 1
    daemon.stop()
    daemon.start()
    until(lambda: daemon.ask("GET", "/readyz").status == 200)
    assert daemon.device("one")["generation"] == 1  # nothing was changed
    daemon.stop()


def test_the_api_does_not_change_what_a_file_owns(daemon):
    path = daemon.put("one", labels={"a": "b"})
    daemon.reload()
    until(lambda: daemon.device("one"))
    spec = daemon.device("one")["spec"]
    for method, target, body in [("PUT", "/devices/one", {**spec, "labels": {}}),
                                 ("POST", "/devices", {**spec, "labels": {}}),
                                 ("PATCH", "/devices/one", {"labels": None}),
                                 ("DELETE", "/devices/one", None),
                                 ("DELETE", "/devices/one?force=true", None),
                                 ("DELETE", "/devices/one?dryRun=true", None)]:
        connection = UnixConnection(str(daemon.socket))
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = ask(connection, method, target, body, {"Content-Type": kind} if body else None)
        connection.close()
        assert answer.status == 409, (method, answer.json)
        assert answer.json["type"].endswith("owned-by-file") and str(path) in answer.json["detail"], answer.json
    assert daemon.ask("PUT", "/devices/one", spec).status == 200  # a repetition changes nothing
    assert daemon.ask("POST", "/devices", spec).status == 200
    assert daemon.ask("POST", "/devices/one/recover").status == 202
    assert daemon.ask("POST", "/devices/one/restart").status == 202
    assert daemon.device("one")["source"] == str(path) and daemon.device("one")["generation"] == 1


def test_a_file_changes_and_goes(daemon):
    path = daemon.put("one")
    daemon.reload()
    until(lambda: daemon.device("one"))
    daemon.put("one", labels={"new": "yes"})
    daemon.reload()
    until(lambda: daemon.device("one")["generation"] == 2)
    until(lambda: daemon.condition("one") == "OwnedByFile")
    path.unlink()
    daemon.reload()
    until(lambda: daemon.device("one") is None)  # no disk, so it is not in use


def test_a_mask_removes_and_a_move_does_not(daemon):
    daemon.put("one", place=daemon.lib)
    daemon.reload()
    until(lambda: daemon.device("one"))
    uid = daemon.device("one")["uid"]
    (daemon.lib / "one.json").rename(daemon.etc / "other.json")
    daemon.reload()
    until(lambda: daemon.device("one")["source"] == str(daemon.etc / "other.json"))
    assert daemon.device("one")["uid"] == uid and daemon.device("one")["generation"] == 1
    (daemon.etc / "other.json").rename(daemon.lib / "other.json")
    daemon.reload()
    until(lambda: daemon.device("one")["source"] == str(daemon.lib / "other.json"))
    os.symlink("/dev/null", daemon.etc / "other.json")
    daemon.reload()
    until(lambda: daemon.device("one") is None)


def test_a_bad_file_keeps_its_device_and_the_others_apply(daemon):
    path = daemon.put("one")
    daemon.reload()
    until(lambda: daemon.device("one"))
    path.write_text('{"name": "one",\n "target": {"type": "null"},\n "size": }', encoding="utf-8")
    daemon.put("two")
    daemon.reload()
    until(lambda: daemon.device("two"))
    until(lambda: daemon.condition("one") == "FileInvalid")
    assert daemon.device("one")["spec"]["size"] == "1MiB"
    assert daemon.problems()[0]["detail"].startswith(f"{path}:3: ")
    assert daemon.has_event("one", "FileInvalid")
    assert daemon.ask("DELETE", "/devices/one").status == 409  # the file still owns it
    daemon.put("one")
    daemon.reload()
    until(lambda: daemon.condition("one") == "OwnedByFile")
    assert not daemon.problems()


def test_unknown_is_not_gone(daemon):
    daemon.put("one")
    daemon.put("two", place=daemon.lib)
    daemon.reload()
    until(lambda: daemon.device("one") and daemon.device("two"))
    daemon.etc.rename(daemon.etc.with_name("away"))  # a file system that is not mounted
    daemon.put("three", place=daemon.lib)
    daemon.reload()
    until(lambda: daemon.condition("one") == "FileInvalid")
    assert daemon.device("three") and daemon.condition("two") == "OwnedByFile"
    daemon.etc.write_text("not a directory", encoding="utf-8")
    (daemon.lib / "two.json").unlink()
    daemon.put("four", place=daemon.lib)
    daemon.reload()
    until(lambda: daemon.condition("two") == "FileInvalid")  # its file may have moved to what cannot be read
    assert daemon.device("four") is None  # which may mask it
    daemon.stop()
    daemon.start()
    until(lambda: daemon.ask("GET", "/readyz").status == 200)
    assert {i["name"] for i in daemon.ask("GET", "/devices").json["items"]} == {"one", "two", "three"}
    daemon.etc.unlink()
    daemon.etc.with_name("away").rename(daemon.etc)
    daemon.reload()
    until(lambda: daemon.device("two") is None and daemon.device("four"))
    assert daemon.condition("one") == "OwnedByFile"


def test_a_device_of_a_client_is_not_taken(daemon):
    assert daemon.ask("POST", "/devices", {"name": "one", **SPEC}).status == 201
    path = daemon.put("one", labels={"a": "b"})
    daemon.reload()
    until(daemon.problems)
    (problem,) = daemon.problems()
    assert problem["title"] == "FileRefused" and str(path) in problem["detail"]
    device = daemon.device("one")
    assert device["source"] is None and "labels" not in device["spec"]
    assert daemon.ask("DELETE", "/devices/one?wait").status == 204
    until(lambda: (daemon.device("one") or {}).get("source") == str(path))  # without a reload
    until(lambda: not daemon.problems())


def test_a_name_of_a_tenant_is_refused(daemon):
    """A device from before the rule stays, and its file changes it."""
    old = daemon.put("u4001-old")
    daemon.reload()
    until(lambda: daemon.device("u4001-old"))
    daemon.policy.mkdir(mode=0o755)
    rules = [{"name": "test", "who": {"users": [4001]}, "targets": ["null"], "devices": 1, "size": "1GiB"}]
    (daemon.policy / "10.json").write_text(json.dumps({"rules": rules}), encoding="utf-8")
    daemon.put("u4001-old", labels={"a": "b"})
    path = daemon.put("u4001-new")
    daemon.put("u4002-new")
    daemon.reload()
    until(lambda: daemon.device("u4002-new") and daemon.problems())
    (problem,) = daemon.problems()
    assert problem["title"] == "FileRefused" and str(path) in problem["detail"]
    assert daemon.device("u4001-new") is None
    device = daemon.device("u4001-old")
    assert device["source"] == str(old) and device["spec"]["labels"] == {"a": "b"}


def test_of_two_files_the_one_that_the_device_is_from_counts(daemon):
    daemon.put("one")
    (daemon.etc / "zwei.json").write_text(json.dumps({"name": "one", **SPEC, "labels": {"x": "y"}}), encoding="utf-8")
    daemon.reload()
    until(daemon.problems)
    (problem,) = daemon.problems()
    assert problem["title"] == "FileRefused" and "one.json" in problem["detail"] and "zwei.json" in problem["detail"]
    assert daemon.device("one")["source"].endswith("/one.json")


def test_a_lost_database_makes_no_second_device(daemon):
    """The record in the runtime directory names a disk that may be in service."""
    daemon.put("one")
    daemon.reload()
    until(lambda: daemon.device("one"))
    uid = daemon.device("one")["uid"]
    daemon.stop()
    for file in daemon.state.iterdir():
        file.unlink()
    daemon.start()
    until(lambda: daemon.ask("GET", "/readyz").status == 200)
    assert daemon.device("one") is None
    (problem,) = daemon.problems()
    assert "'ublkctl adopt" in problem["detail"]
    assert daemon.ask("POST", "/devices/adopt", {"all": True}).json["items"][0]["adopted"]
    assert daemon.device("one")["uid"] == uid
    assert daemon.device("one")["source"] == str(daemon.etc / "one.json")
    daemon.reload()
    until(lambda: daemon.condition("one") == "OwnedByFile")


def test_ublkctl_names_the_file(daemon, tmp_path):
    path = daemon.put("one", labels={"a": "b"})
    daemon.reload()
    until(lambda: daemon.device("one"))
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({**daemon.device("one")["spec"], "labels": {"a": "c"}}), encoding="utf-8")

    def ctl(*words):
        program = os.path.join(os.path.dirname(PROGRAM), "ublkctl")
        return subprocess.run([program, "-s", daemon.socket, *words], capture_output=True, text=True, timeout=60,
                              check=False)

    run = ctl("apply", "-f", mine, "--dry-run")
    assert run.returncode == 7 and f"one owned by {path}, would be refused" in run.stdout, run
    run = ctl("apply", "-f", mine)
    assert run.returncode == 7 and str(path) in run.stderr and "systemctl reload" in run.stderr, run
    assert re.search(rf"^Source: +{re.escape(str(path))}$", ctl("describe", "one").stdout, re.MULTILINE)
    assert str(path) in ctl("list", "-o", "wide").stdout
    run = ctl("describe", "one", "--users")  # as a removal would find them, which the file does not allow
    assert run.returncode != 0 and run.stderr == "" and re.search(r"^Users: +not known", run.stdout, re.MULTILINE), run
    assert re.search(r"^Name: +one$", run.stdout, re.MULTILINE), run
    mine.write_text(json.dumps(daemon.device("one")["spec"]), encoding="utf-8")
    for words in (["--dry-run"], []):
        run = ctl("apply", "-f", mine, *words)
        assert run.returncode == 0 and "unchanged" in run.stdout, run
    run = ctl("detach", "--force", "one")
    assert run.returncode == 7 and str(path) in run.stderr, run


@pytest.mark.parametrize("word", ["relative/path", "/ends/with/"])
def test_a_directory_that_is_not_absolute(word):
    run = subprocess.run([PROGRAM, "--devices-dir", word], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2 and "--devices-dir" in run.stderr
