# SPDX-License-Identifier: MIT
"""apply: the devices become what the files describe."""
import json
import socket
import threading

from api_server import Server
from ctl import FAILED, NO_DAEMON, REFUSED, TIMED_OUT, USAGE, Ctl, spec
from server_fixture import write_policy


def write(tmp_path, name, *specs):
    (tmp_path / name).write_text("\n".join(json.dumps(item) for item in specs))
    return name


def test_created_changed_unchanged(ctl, server, tmp_path):
    write(tmp_path, "a.json", spec("a"), spec("b"))
    assert ctl("apply", "-f", "a.json").lines == ["a created", "b created"]
    assert ctl("apply", "-f", "a.json").lines == ["a unchanged", "b unchanged"]
    write(tmp_path, "a.json", spec("a", queueDepth=64), spec("b", size=1 << 20))
    assert ctl("apply", "-f", "a.json").lines == ["a changed", "b unchanged"]  # another spelling of the same size
    assert server.ask("GET", "/devices/a").json["spec"]["queueDepth"] == 64


def test_a_pool_without_the_path_of_its_image(tmp_path):
    """The path is ublkd's: a file without it describes the device that has it."""
    server = Server(tmp_path, *write_policy(tmp_path, pools={"fast": {"directory": "/srv/fast"}}))
    ctl = Ctl(server.path, tmp_path)
    image = spec("a", target={"type": "loop", "pool": "fast"})
    write(tmp_path, "a.json", image)
    assert ctl("apply", "-f", "a.json").lines == ["a created"]
    assert ctl("apply", "-f", "a.json").lines == ["a unchanged"]
    assert ctl("apply", "-f", "a.json", "--dry-run").lines == ["a unchanged"]
    write(tmp_path, "a.json", spec("a", target={**image["target"], "keep": True}))
    assert ctl("apply", "-f", "a.json", "--dry-run").lines[1] == "  target.keep: false -> true"
    server.stop()


def test_a_folder_and_several_files(ctl, tmp_path):
    (tmp_path / "specs").mkdir()
    write(tmp_path, "specs/2.json", spec("b"))
    write(tmp_path, "specs/1.json", spec("a"))
    write(tmp_path, "specs/.hidden.json", spec("hidden"))
    write(tmp_path, "specs/notes.txt", spec("text"))
    write(tmp_path, "c.json", spec("c"))
    assert ctl("apply", "-f", "specs", "-f", "c.json").lines == ["a created", "b created", "c created"]
    (tmp_path / "empty").mkdir()
    assert "no file *.json" in ctl("apply", "-f", "empty", status=FAILED).err


def test_what_list_prints_can_be_applied(ctl):
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a"), spec("b", labels={"x": "1"})]))
    listed = ctl("list", "-o", "json").out
    ctl("delete", "a", "b")
    assert ctl("apply", "-f", "-", stdin=listed).lines == ["a created", "b created"]
    assert ctl("apply", "-f", "-", stdin=listed).lines == ["a unchanged", "b unchanged"]
    assert ctl("apply", "-f", "-", stdin=ctl("get", "a").out).lines == ["a unchanged"]


def test_one_failure_does_not_stop_the_others(ctl):
    bad = {"name": "bad", "target": {"type": "nope"}}
    run = ctl("apply", "-f", "-", stdin=json.dumps([spec("a"), bad, spec("b"), spec("a"), {"size": 1}]), status=FAILED)
    assert run.lines == ["a created", "b created"]
    assert "bad: /target/type" in run.err and "described twice" in run.err and "has no name" in run.err
    assert "3 of 5 failed: bad, a (again), (no name)." in run.err


def test_every_fault_is_counted_once(ctl, tmp_path):
    (tmp_path / "specs").mkdir()
    write(tmp_path, "specs/1.json", spec("a"), spec("b"))
    write(tmp_path, "specs/2.json", spec("a"), spec("a"))
    (tmp_path / "specs" / "3.json").write_text('{"name": ')
    (tmp_path / "specs" / "4.json").write_text(json.dumps(spec("c")) + " 3 4")
    run = ctl("apply", "-f", "specs", "-f", "none.json", status=FAILED)
    assert run.lines == ["a created", "b created", "c created"]
    assert run.err.splitlines()[-1] == (
        "ublkctl: 5 of 8 failed: specs/3.json, specs/4.json, none.json, a (again), a (again).")
    (tmp_path / "empty").mkdir()
    assert ctl("apply", "-f", "empty", status=FAILED).err.endswith("ublkctl: 1 of 1 failed: empty.\n")
    assert ctl("apply", "-f", "-", stdin="{", status=FAILED).err.endswith("ublkctl: 1 of 1 failed: standard input.\n")


def test_apply_waits_for_a_device_with_two_specs(ctl, server):
    """The first description is in force."""
    server.tell("auto off")
    run = ctl("apply", "-f", "-", "--wait", "--timeout", "100ms", stdin=json.dumps([spec("a"), spec("a")]), status=FAILED)
    assert "not Live in time" in run.err and "2 of 2 failed: a, a (again)." in run.err


def test_the_fault_of_a_file_that_is_not_json_has_its_line(ctl, tmp_path):
    (tmp_path / "bad.json").write_text('{"name": "a",\n "size": }\n')
    for verb in ("apply", "create"):
        assert "bad.json: Line 2 is not valid JSON, at column 10; look there" in ctl(verb, "-f", "bad.json", status=FAILED).err
    (tmp_path / "cut.json").write_text('{"name": "a"')
    assert "cut.json" in ctl("apply", "-f", "cut.json", status=FAILED).err
    (tmp_path / "nul.json").write_bytes(b'{"name"\0: "a"}')
    assert "NUL byte" in ctl("apply", "-f", "nul.json", status=FAILED).err
    assert "does not exist; check the path." in ctl("apply", "-f", "missing.json", status=FAILED).err


def test_yaml_is_refused_as_such(ctl, tmp_path):
    ctl("create", "data", "target.type=null", "size=1MiB")
    (tmp_path / "all.yaml").write_text(ctl("list", "-o", "yaml").out)
    error = ctl("apply", "-f", "all.yaml", status=FAILED).err
    assert "all.yaml: This is not JSON" in error and "-o json" in error


def test_prune_removes_devices_with_the_label_and_without_a_spec(ctl):
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", **ours), spec("b", **ours), spec("other")]))
    assert ctl("apply", "-f", "-", "--prune", "-l", "app=x", "--wait", stdin=json.dumps(spec("a", **ours))).lines == [
        "a unchanged", "b removed"]
    assert ctl("list", "-o", "name").lines == ["a", "other"]


def test_prune_needs_a_label_and_a_label_needs_prune(ctl):
    assert "-l" in ctl("apply", "-f", "-", "--prune", stdin="", status=USAGE).err
    assert "--prune" in ctl("apply", "-f", "-", "-l", "a=b", stdin="", status=USAGE).err
    assert "-f" in ctl("apply", status=USAGE).err


def test_nothing_is_pruned_when_a_spec_cannot_be_read(ctl):
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", **ours), spec("b", **ours)]))
    for text in (json.dumps(spec("a", **ours)) + " {", json.dumps([spec("a", **ours), {"size": 1}])):
        run = ctl("apply", "-f", "-", "--prune", "-l", "app=x", stdin=text, status=FAILED)
        assert "Nothing was removed" in run.err
    assert ctl("list", "-o", "name").lines == ["a", "b"]


def test_a_disk_in_use_is_not_pruned(ctl, server):
    ctl("apply", "-f", "-", stdin=json.dumps(spec("a", labels={"app": "x"}, id=0)))
    server.tell("busy 0 mounted at /srv")
    run = ctl("apply", "-f", "-", "--prune", "-l", "app=x", stdin="[]", status=REFUSED)
    assert "mounted at /srv" in run.err and run.out == ""
    assert run.err.index("Unmount it") < run.err.index("--prune-in-use"), "what destroys nothing comes first"


def test_force_takes_no_disk_from_its_users(ctl, server):
    """It once allowed a smaller disk and also the removal of a mounted one: the first must not imply the second."""
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", id=0, **ours), spec("b", size="2MiB", **ours)]))
    server.tell("busy 0 mounted at /srv")
    wanted, prune = json.dumps(spec("b", **ours)), ("apply", "-f", "-", "--prune", "-l", "app=x")
    output = ctl(*prune, "--force", stdin=wanted, status=USAGE).err
    assert "--allow-shrink" in output and "--prune-in-use" in output
    run = ctl(*prune, "--allow-shrink", stdin=wanted, status=REFUSED)
    assert run.lines == ["b changed"] and "mounted at /srv" in run.err
    assert ctl("list", "-o", "name").lines == ["a", "b"]


def test_a_disk_in_use_is_pruned_when_it_is_named(ctl, server):
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", id=0, **ours), spec("b", id=1, **ours), spec("other", id=2)]))
    server.tell("busy 0 mounted at /srv")
    prune = ("apply", "-f", "-", "--prune", "-l", "app=x", "--wait")
    run = ctl(*prune, "--prune-in-use", "b", stdin="[]", status=REFUSED)
    assert run.lines == ["b removed"] and "a: " in run.err
    run = ctl.run(*prune, "--prune-in-use", "a", "--prune-in-use", "other", stdin="[]")
    assert run.status == 0 and run.lines == ["a removed"]
    assert run.err.startswith("ublkctl: other: --prune-in-use names a device that would not")
    assert ctl("list", "-o", "name").lines == ["other"]
    assert "--prune" in ctl("apply", "-f", "-", "--prune-in-use", "other", stdin="[]", status=USAGE).err


def test_a_dry_run_of_a_prune_names_the_users(ctl, server):
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", id=0, **ours), spec("b", id=1, **ours)]))
    before = server.ask("GET", "/devices").json["items"]
    server.tell("busy 0 mounted at /srv")
    prune = ("apply", "-f", "-", "--prune", "-l", "app=x", "--dry-run")
    run = ctl(*prune, stdin="[]", status=REFUSED)
    assert run.lines == ["b would be removed"] and "mounted at /srv" in run.err
    run = ctl(*prune, "--prune-in-use", "a", stdin="[]")
    assert run.lines == ["a would be removed although it is in use: mounted at /srv", "b would be removed"]
    assert server.ask("GET", "/devices").json["items"] == before


def test_the_last_copy_is_neither_applied_over_nor_pruned(ctl, server):
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", id=0, **ours), spec("b", id=1, **ours)]))
    server.tell("reach 3")
    wanted = json.dumps([spec("a", id=0, queueDepth=64, **ours)])
    apply = ("apply", "-f", "-", "--prune", "-l", "app=x")
    run = ctl(*apply, "--dry-run", stdin=wanted, status=REFUSED)
    assert "  the disk would be recreated, because of queueDepth; ublkd refuses that, because the file was deleted and only " \
           "this disk has the data" in run.lines
    for more in [], ["--dry-run"]:
        run = ctl(*apply, *more, "--prune-in-use", "b", stdin=wanted, status=REFUSED)
        assert "ublkctl: b: " in run.err and "--drop-last-copy" in run.err
    assert server.ask("GET", "/devices/a").json["generation"] == 1
    assert server.ask("GET", "/devices/b").status == 200


def test_a_removal_that_waits_is_not_reported_as_done(ctl, server):
    ctl("apply", "-f", "-", stdin=json.dumps(spec("a", labels={"app": "x"})))
    server.tell("auto off")
    assert ctl("apply", "-f", "-", "--prune", "-l", "app=x", stdin="[]").lines == ["a is being removed"]
    server.tell("remove a")
    ctl("wait", "a", "--for", "gone")


def test_a_device_that_changed_after_the_list_is_not_pruned(ctl, server, tmp_path):
    """Another client may just have removed its label, so it stays."""
    ctl("apply", "-f", "-", stdin=json.dumps(spec("a", labels={"app": "x"})))
    meddler = Meddler(server, tmp_path / "meddler", 1, b"DELETE ")
    run = Ctl(meddler.path)("apply", "-f", "-", "--prune", "-l", "app=x", stdin="[]", status=REFUSED)
    assert meddler.times == 0 and "ublkctl: a: " in run.err
    assert ctl("list", "-o", "name").lines == ["a"]


def test_dry_run(ctl, server):
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", **ours), spec("b", **ours), spec("c", **ours)]))
    before = server.ask("GET", "/devices").json["items"]
    wanted = [spec("a", queueDepth=64, **ours), spec("b", queueDepth=128, size=1 << 20, **ours), spec("new")]
    run = ctl("apply", "-f", "-", "--dry-run", "--prune", "-l", "app=x", stdin=json.dumps(wanted))
    assert run.lines == ["a would be changed", "  queueDepth: 128 -> 64",
                         "  the disk would be recreated, because of queueDepth; the disk is not in use now", "b unchanged", "new would be created",
                         "c would be removed"]
    assert server.ask("GET", "/devices").json["items"] == before


def test_wait(ctl, server):
    server.tell("auto off")
    run = ctl("apply", "-f", "-", "--wait", "--timeout", "100ms", stdin=json.dumps(spec("a")), status=TIMED_OUT)
    assert run.lines == ["a created"] and "1 of 1 failed: a." in run.err
    server.tell("status a Live Live It serves.")
    ctl("apply", "-f", "-", "--wait", stdin=json.dumps(spec("a")))


def test_a_missing_daemon_is_reported_once(tmp_path):
    run = Ctl(str(tmp_path / "none"))("apply", "-f", "-", stdin=json.dumps([spec("a"), spec("b")]), status=NO_DAEMON)
    assert run.err.count("not running") == 1


class Meddler:
    """Stands between ublkctl and the daemon, and changes the device between the client's GET and its PUT."""

    def __init__(self, server, path, times, method=b"PUT "):
        self.server, self.times, self.method = server, times, method
        self.path = str(path)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        connection, _ = self.listener.accept()
        upstream = self.server.socket()
        while data := connection.recv(65536):
            if data.startswith(self.method) and self.times > 0:
                self.times -= 1
                depth = 100 + self.times
                self.server.ask("PUT", "/devices/a", spec("a", queueDepth=depth))
            upstream.sendall(data)
            connection.sendall(upstream.recv(65536))
        connection.close()
        upstream.close()


def test_two_editors_do_not_overwrite_each_other_unseen(ctl, server, tmp_path):
    ctl("apply", "-f", "-", stdin=json.dumps(spec("a")))
    meddler = Meddler(server, tmp_path / "meddler", 1)
    assert Ctl(meddler.path)("apply", "-f", "-", stdin=json.dumps(spec("a", queueDepth=7))).lines == ["a changed"]
    assert meddler.times == 0
    assert server.ask("GET", "/devices/a").json["spec"]["queueDepth"] == 7
    meddler = Meddler(server, tmp_path / "meddler2", 1000)
    run = Ctl(meddler.path)("apply", "-f", "-", stdin=json.dumps(spec("a", queueDepth=8)), status=REFUSED)
    assert "keeps changing" in run.err


def test_a_disk_becomes_smaller_only_by_its_own_option(ctl, server):
    ctl("apply", "-f", "-", stdin=json.dumps(spec("a", size="2MiB")))
    for arguments in ([], ["--dry-run"]):
        run = ctl("apply", "-f", "-", *arguments, stdin=json.dumps(spec("a")), status=REFUSED)
        assert "would shrink" in run.err and "--allow-shrink" in run.err
    assert server.ask("GET", "/devices/a").json["spec"]["size"] == "2MiB"
    assert ctl("apply", "-f", "-", "--allow-shrink", stdin=json.dumps(spec("a"))).lines == ["a changed"]


def test_prune_asks_for_all_before_it_waits_for_the_first(ctl, server):
    ours = {"labels": {"app": "x"}}
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a", **ours), spec("b", **ours), spec("c", **ours)]))
    server.tell("auto off")
    run = ctl("apply", "-f", "-", "--prune", "-l", "app=x", "--wait", "--timeout", "100ms", stdin="[]", status=TIMED_OUT)
    assert run.err.count("The device is not gone in time") == 3
    for name in "abc":
        server.tell(f"remove {name}")
    ctl("wait", "a", "b", "c", "--for", "gone")


def test_a_name_that_is_a_path_is_refused_as_written(ctl):
    run = ctl("apply", "-f", "-", stdin=json.dumps(spec("../../x")), status=FAILED)
    assert "../../x" in run.err and '"."' not in run.err


def test_dry_run_checks_specs_as_the_daemon_does(ctl, server):
    bad = {"name": "bad", "target": {"type": "loop", "path": "relative"}, "sise": 1, "queues": "x"}
    run = ctl("apply", "-f", "-", "--dry-run", stdin=json.dumps([bad, spec("good")]), status=FAILED)
    assert run.lines == ["good would be created"]
    assert all(f"ublkctl: bad: {place}: " in run.err for place in ("/sise", "/queues", "/target/path"))
    real = ctl("apply", "-f", "-", stdin=json.dumps([bad]), status=FAILED)
    for line in run.err.splitlines()[:3]:
        assert line.removeprefix("ublkctl: bad: ") in real.err
    assert server.ask("GET", "/devices").json["items"] == []


def test_dry_run_shows_what_happens_to_the_disk(ctl):
    ctl("apply", "-f", "-", stdin=json.dumps([spec("a"), spec("b"), spec("c")]))
    wanted = [spec("a", enabled=False), spec("b", labels={"x": "y"}), spec("c", queues=1)]
    lines = ctl("apply", "-f", "-", "--dry-run", stdin=json.dumps(wanted)).lines
    assert [line for line in lines if "the disk" in line] == [
        "  the disk would be removed; the disk is not in use now",
        "  the disk would be recreated, because of queues; the disk is not in use now"]


def test_dry_run_names_the_users_of_a_disk_to_recreate(ctl, server):
    ctl("apply", "-f", "-", stdin=json.dumps(spec("a", id=0)))
    server.tell("busy 0 mounted at /srv")
    for more in ({"queues": 1}, {"enabled": False}):
        run = ctl("apply", "-f", "-", "--dry-run", stdin=json.dumps(spec("a", id=0, **more)), status=REFUSED)
        (line,) = [line for line in run.lines if "the disk" in line]
        assert line.endswith("ublkd refuses that, because the disk is in use: mounted at /srv")
