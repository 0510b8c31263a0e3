# SPDX-License-Identifier: MIT
"""Each verb: what it does, what it prints when it fails, and its exit status."""
import os
import re
import subprocess
import threading

import pytest
from ctl import DEADLINE, FAILED, NO_DAEMON, NOT_FOUND, REFUSED, TIMED_OUT, USAGE, Ctl, answering, field

NULL = ["target.type=null", "size=1MiB"]


# ---- create ----

def test_create_from_arguments(ctl, server):
    run = ctl("create", "data", *NULL, "labels.app=db", "labels.example.com/tier=1", "recovery.trigger=manual")
    assert run.out == "data created, Live at /dev/ublkb0\n"
    stored = server.ask("GET", "/devices/data").json["spec"]
    assert stored == {"name": "data", "target": {"type": "null"}, "size": "1MiB",
                      "labels": {"app": "db", "example.com/tier": "1"}, "recovery": {"trigger": "manual"}}


def test_create_from_a_file_and_from_standard_input(ctl, tmp_path):
    (tmp_path / "a.json").write_text('{"name": "a", "target": {"type": "null"}, "size": 4096}')
    assert ctl("create", "-f", "a.json").out.startswith("a created")
    assert ctl("create", "-f", "-", stdin='{"name": "b", "target": {"type": "null"}, "size": 4096}').out.startswith("b cr")


def test_create_again_changes_nothing_and_another_spec_is_refused(ctl):
    ctl("create", "data", *NULL)
    assert ctl("create", "data", *NULL).out.startswith("data unchanged")
    run = ctl("create", "data", "target.type=null", "size=2MiB", status=REFUSED)
    assert run.err.startswith("ublkctl: data: ")


def test_create_without_waiting(ctl, server):
    server.tell("auto off")
    assert ctl("create", "data", *NULL, "--no-wait").out == "data created\n"


def test_every_fault_of_a_spec_has_its_place(ctl):
    run = ctl("create", "data", "target.type=null", "size=x", "bogus=1", status=FAILED)
    assert "  /size: " in run.err and "  /bogus: " in run.err and "422" not in run.err


def test_the_only_fault_of_a_spec_is_one_line(ctl):
    run = ctl("create", "data", "target.type=null", "size=x", status=FAILED)
    assert run.err.startswith("ublkctl: data: /size: ") and run.err.count("\n") == 1


def test_create_reports_why_a_device_cannot_start(ctl, server):
    server.tell("auto off")
    answer = []
    thread = threading.Thread(target=lambda: answer.append(ctl.run("create", "data", *NULL)))
    thread.start()
    server.until("waits", 1)
    server.tell("status data Backoff BackingFileMissing The file is missing; trying again in 1 s.")
    thread.join()
    assert answer[0].status == FAILED and "The file is missing" in answer[0].err


def test_create_times_out(ctl, server):
    server.tell("auto off")
    run = ctl("create", "data", *NULL, "--timeout", "100ms", status=TIMED_OUT)
    assert "not ready yet" in run.err


@pytest.mark.parametrize("arguments", [[], ["data", "-f", "x"], ["data", "size"], ["data", "=1"]])
def test_create_needs_a_spec(ctl, arguments):
    assert ctl("create", *arguments, status=USAGE).err.startswith("ublkctl: ")


def test_no_field_is_given_twice(ctl):
    assert "'size=1MiB' and as 'size=2MiB'" in ctl("create", "data", *NULL, "size=2MiB", status=USAGE).err
    assert "name" in ctl("create", "data", *NULL, "name=other", status=USAGE).err
    ctl("create", "data", *NULL, "name=data")
    assert "leave one of them out" in ctl("set", "data", "labels.a=1", "labels.a=2", status=USAGE).err


# ---- get, list, describe ----

def test_get_and_describe_of_an_unknown_device(ctl):
    for verb in ("get", "describe", "delete", "recover", "wait", "disable", "restart", "stop", "start"):
        assert ctl(verb, "nope", status=NOT_FOUND).err.startswith("ublkctl: nope: ")


def test_several_names_go_on_after_a_failure(ctl):
    ctl("create", "data", *NULL)
    run = ctl("get", "nope", "data", "-o", "name", status=NOT_FOUND)
    assert run.lines == ["data"] and "nope" in run.err


@pytest.mark.parametrize("name", [".", "..", "a/b", "a b", "ä", "%41", "x?force=true", "#"])
def test_no_name_leads_elsewhere(ctl, name):
    ctl("get", name, status=NOT_FOUND)


# ---- set, patch, resize, enable, disable ----

def test_set(ctl, server):
    ctl("create", "data", *NULL, "labels.a=1", "labels.b=2")
    assert ctl("set", "data", "labels.a=null", "queueDepth=64", "recovery.onCrash=queue").out == "data changed and ready\n"
    stored = server.ask("GET", "/devices/data").json["spec"]
    assert stored["labels"] == {"b": "2"} and stored["queueDepth"] == 64 and stored["recovery"] == {"onCrash": "queue"}


def test_a_disk_that_moves_to_another_node_is_named(ctl):
    """The change removes an unused disk and makes another one, without a question."""
    ctl("create", "data", *NULL, "id=5")
    assert ctl("set", "data", "id=7").out == "data changed and ready; its disk is /dev/ublkb7 now, and not /dev/ublkb5 any more\n"
    assert ctl("set", "data", "queueDepth=64").out == "data changed and ready\n"


def test_patch(ctl, server, tmp_path):
    ctl("create", "data", *NULL)
    ctl("patch", "data", '{"queueDepth": 32}')
    (tmp_path / "patch.json").write_text('{"queueDepth": null, "queues": 1}')
    ctl("patch", "data", "-f", "patch.json")
    stored = server.ask("GET", "/devices/data").json["spec"]
    assert stored["queues"] == 1 and "queueDepth" not in stored
    ctl("patch", "data", "{", status=USAGE)
    (tmp_path / "patch.json").write_text("queues: 1")
    assert "spec" not in ctl("patch", "data", "-f", "patch.json", status=FAILED).err
    ctl("patch", "data", status=USAGE)


def test_resize(ctl, server):
    ctl("create", "data", *NULL)
    ctl("resize", "data", "2GiB")
    assert server.ask("GET", "/devices/data").json["spec"]["size"] == "2GiB"
    ctl("resize", "data", "4294967296")
    assert server.ask("GET", "/devices/data").json["spec"]["size"] == 4 << 30
    ctl("resize", "data", "8G")
    assert server.ask("GET", "/devices/data").json["spec"]["size"] == "8GiB"
    assert "is not a valid size" in ctl("resize", "data", "1" * 40, status=USAGE).err
    assert "is not a valid size" in ctl("resize", "data", "2GB", status=USAGE).err
    assert "/size" in ctl("resize", "data", "1", "--allow-shrink", status=FAILED).err


def test_one_way_to_write_a_size(ctl, server):
    """A FIELD=VALUE accepts every size that resize accepts."""
    ctl("create", "data", "target.type=null", "size=1G", "maxIoSize=512K")
    stored = server.ask("GET", "/devices/data").json["spec"]
    assert (stored["size"], stored["maxIoSize"]) == ("1GiB", "512KiB")
    assert ctl("resize", "data", "1G").out == ctl("set", "data", "size=1G").out == "data unchanged\n"
    assert "is not a valid size" in ctl("resize", "data", "1g", status=USAGE).err
    assert "/size: " in ctl("set", "data", "size=1g", status=FAILED).err


def fail_to_grow(ctl, server, *arguments):
    """Run a change that ublkd accepts and that the backing store then refuses. Return the output as lines."""
    server.tell("auto off")
    process = ctl.start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    server.until("waits", 1)
    server.tell("status data Live CannotGrow Serving as before; the file ends at 1 MiB. | It is tried again; 'ublkctl resize data 1' undoes it.")
    while server.ask("GET", "/devices/data").json["spec"]["size"] != "1MiB":
        assert process.poll() is None, process.communicate()
    server.until("waits", 1)
    server.tell("status data Live Live It serves.")
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == FAILED and out == ""
    return err.splitlines()


@pytest.mark.parametrize("change", [["resize", "data", "2GiB"], ["set", "data", "size=2GiB"]])
def test_a_growth_that_fails_changes_nothing(ctl, server, change):
    ctl("create", "data", *NULL)
    refused, undone = fail_to_grow(ctl, server, *change)
    assert refused == "ublkctl: data: Serving as before; the file ends at 1 MiB."  # neither retried nor left
    assert undone == "ublkctl: data: The old size was put back; the disk is unchanged."
    device = server.ask("GET", "/devices/data").json
    assert device["spec"]["size"] == "1MiB" and device["status"]["phase"] == "Live"


def test_a_failed_growth_is_not_undone_after_a_change_by_another_client(ctl, server):
    """The client that changed the spec meanwhile decides what it says."""
    ctl("create", "data", *NULL)
    server.tell("auto off")
    process = ctl.start("resize", "data", "2GiB", stderr=subprocess.PIPE)
    server.until("waits", 1)
    server.ask("PATCH", "/devices/data", {"labels": {"a": "b"}}, {"Content-Type": "application/merge-patch+json"})
    server.tell("status data Live CannotGrow Serving as before.")
    _out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == FAILED and "put back" not in err
    assert server.ask("GET", "/devices/data").json["spec"]["size"] == "2GiB"


def test_disable_and_enable(ctl, server):
    ctl("create", "data", *NULL)
    ctl("disable", "data")
    assert server.ask("GET", "/devices/data").json["status"]["phase"] == "Disabled"
    ctl("wait", "data")
    ctl("enable", "data")
    assert server.ask("GET", "/devices/data").json["status"]["phase"] == "Live"


def test_a_change_that_needs_a_new_disk_is_refused_while_it_is_in_use(ctl, server):
    ctl("create", "data", *NULL, "id=0")
    server.tell("busy 0 fio (pid 12)")
    assert "fio (pid 12)" in ctl("set", "data", "queueDepth=7", status=REFUSED).err


# ---- delete ----

def test_delete(ctl, server):
    ctl("create", "a", *NULL)
    ctl("create", "b", *NULL)
    assert ctl("delete", "a", "b").lines == ["a removed", "b removed"]
    assert server.ask("GET", "/devices").json["items"] == []


def test_delete_of_all_devices_is_a_pipe(ctl):
    """There is no --all, which a slip of the hand could add: the help has the command instead."""
    (command,) = re.findall(r"'(ublkctl list -o name \|[^']*)'", " ".join(ctl("delete", "--help").out.split()))
    path = f"{os.path.dirname(ctl.program)}:{os.environ['PATH']}"
    for count in (3, 0):
        for number in range(count):
            ctl("create", f"disk-{number}", *NULL)
        subprocess.run(["sh", "-c", command], env=ctl.environment(PATH=path), check=True, stdout=subprocess.DEVNULL, timeout=60)
        assert ctl("list", "-o", "name").out == ""


def test_delete_names_the_users_of_the_disk(ctl, server):
    ctl("create", "data", *NULL, "id=0")
    server.tell("busy 0 mounted at /srv; fio (pid 12)")
    assert "mounted at /srv; fio (pid 12)" in ctl("delete", "data", status=REFUSED).err
    assert ctl("delete", "data", "--force").out == "data removed\n"


@pytest.mark.parametrize("verb", [("delete", "data"), ("detach", "data"), ("disable", "data"), ("set", "data", "queueDepth=7"),
                                  ("patch", "data", '{"queueDepth": 7}'), ("resize", "data", "2MiB")], ids=lambda verb: verb[0])
def test_the_last_copy_is_dropped_only_by_its_option(ctl, server, verb):
    ctl("create", "data", *NULL, "id=0")
    server.tell("reach 3")
    error = ctl(*verb, status=REFUSED).err
    assert "--drop-last-copy" in error
    if verb[0] in ("delete", "detach"):
        assert "--drop-last-copy" in ctl(*verb, "--force", status=REFUSED).err
    ctl(*verb, "--drop-last-copy")


def test_a_restart_that_makes_another_disk_drops_no_last_copy(ctl, server):
    ctl("create", "data", *NULL, "id=0", "recovery.onCrash=none")
    server.tell("reach 3")
    assert "--drop-last-copy" in ctl("restart", "data", status=REFUSED).err
    ctl("restart", "data", "--drop-last-copy")


def test_recover_of_another_store_is_answered_at_once(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("auto off")
    server.tell("status data Failed BackingChanged It is another store.")
    assert "It is another store." in ctl("recover", "data", status=FAILED).err


def test_another_store_is_not_accepted_under_users(ctl, server):
    ctl("create", "data", *NULL, "id=0")
    server.tell("status data Failed BackingChanged It is another store.")
    server.tell("busy 0 mounted at /srv")
    accept = ("recover", "data", "--accept-backing", "diskseq:9+0", "--no-wait")
    assert "mounted at /srv" in ctl(*accept, status=REFUSED).err
    ctl(*accept, "--force")


def test_delete_of_many_needs_few_searches(ctl, server):
    """ublkctl sends all requests at once, and one search of ublkd serves all clients that wait for it."""
    names = [f"disk{number}" for number in range(100)]
    for number, name in enumerate(names):
        assert server.ask("POST", "/devices?wait=ready", {"name": name, "target": {"type": "null"}, "size": "1MiB", "id": number}).status == 201
    server.tell("busy 70 mounted at /srv")
    run = ctl("delete", *names, status=REFUSED)
    assert run.lines == [f"{name} removed" for name in names if name != "disk70"]
    assert run.err.startswith("ublkctl: disk70: ") and "mounted at /srv" in run.err and len(run.err.splitlines()) == 2
    assert server.tell("searches") <= 25


def test_delete_reports_a_missing_daemon_once(tmp_path):
    run = Ctl(str(tmp_path / "none"))("delete", *[f"disk{number}" for number in range(100)], status=NO_DAEMON)
    assert run.err.count("ublkd is not running") == 1 and len(run.err.splitlines()) == 1


def test_delete_of_an_unknown_device(ctl):
    assert ctl("delete", "nope", "--ignore-missing").status == 0


def test_delete_without_waiting(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("auto off")
    assert ctl("delete", "data", "--no-wait").out == "data is being removed\n"
    run = ctl("wait", "data", "--for", "gone", "--timeout", "100ms", status=TIMED_OUT)
    assert "not gone in time" in run.err
    server.tell("remove data")
    ctl("wait", "data", "--for", "gone")


# ---- wait, recover, restart ----

def test_wait_until_it_is_live(ctl, server):
    server.tell("auto off")
    ctl("create", "data", *NULL, "--no-wait")
    assert "BackingFile" not in ctl("wait", "data", "--timeout", "10ms", status=TIMED_OUT).err
    process = ctl.start("wait", "data")
    server.tell("status data Live Live It serves.")
    assert process.wait(DEADLINE) == 0


def _asked(server, route):
    """How many requests the server has answered there, or has begun to."""
    lines = server.ask("GET", "/metrics").body.decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines if "http_requests_total{" in line and f'route="{route}"' in line)


def test_wait_is_woken_by_events(ctl, server):
    server.tell("auto off")
    ctl("create", "data", *NULL, "--no-wait")
    process = ctl.start("wait", "data")
    for nth in range(5):
        server.until("watches", 1)
        streams = _asked(server, "/events")
        server.tell(f"status data Backoff Reason{nth} It is tried again.")
        while _asked(server, "/events") == streams:
            assert process.poll() is None
    server.tell("status data Live Live It serves.")
    assert process.wait(DEADLINE) == 0


def test_wait_works_without_events(ctl, server):
    """All streams are taken."""
    server.tell("auto off")
    ctl("create", "data", *NULL, "--no-wait")
    connections = [server.connect() for _ in range(64)]
    for connection in connections:
        connection.request("GET", "/events")
    server.until("watches", 64)
    process = ctl.start("wait", "data")
    server.tell("status data Live Live It serves.")
    assert process.wait(DEADLINE) == 0
    for connection in connections:
        connection.close()


def test_recover_with_consent_to_another_store(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("status data Failed BackingChanged It is another store.")
    run = ctl("describe", "data")
    assert field(run, "Backing") == "wwid:first (wwid)"
    assert field(run, "Found") == "diskseq:9+0 (diskseq; until the next boot), which is another store"
    ctl("recover", "data", "--accept-backing", "wwid:first", "--no-wait", status=REFUSED)
    ctl("recover", "data", "other", "--accept-backing", "diskseq:9+0", status=USAGE)
    assert ctl("recover", "data", "--accept-backing", "diskseq:9+0", "--no-wait").out == "data is being recovered\n"


def test_recover(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("status data Quiesced WorkerDied It waits for 'recover'.")
    run = ctl("recover", "data", "--no-wait")
    assert run.out == "data is being recovered\n"
    run = ctl("recover", "data", "--timeout", "100ms", status=TIMED_OUT)
    assert "It waits for 'recover'." in run.err
    server.until("watches", 0)  # that of the command above
    process = ctl.start("recover", "data", stdout=subprocess.PIPE)
    server.until("watches", 1)
    server.tell("status data Live Live It serves.")
    assert process.communicate(timeout=DEADLINE)[0] == "data is Live\n"


@pytest.mark.parametrize("options", [[], ["--no-wait"]])
def test_recover_of_a_live_disk_names_restart(ctl, options):
    """It replaces no worker, not even one that hangs."""
    ctl("create", "data", *NULL)
    before = ctl("get", "data").json["status"]["worker"]
    run = ctl("recover", "data", *options)
    assert run.out.startswith("data is Live already") and "'ublkctl restart'" in run.out
    assert ctl("get", "data").json["status"]["worker"] == before


def test_restart_with_consent_to_a_loss(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("status data Live FlushFailed It serves.")
    ctl("restart", "data", "--accept-write-errors", "flush-2-2a", "--no-wait", status=REFUSED)
    ctl("restart", "data", "other", "--accept-write-errors", "flush-1-2a", status=USAGE)
    assert ctl("restart", "data", "--accept-write-errors=flush-1-2a", "--no-wait").out == "data is being restarted\n"


def test_restart(ctl):
    ctl("create", "data", *NULL)
    assert ctl("restart", "data").out == "data restarted\n"
    assert ctl("restart", "data", "--no-wait").out == "data is being restarted\n"
    ctl("disable", "data")
    assert "is disabled" in ctl("restart", "data", status=REFUSED).err


# ---- host, targets ----

def test_host_shows_problems(ctl, server):
    run = ctl("host", status=FAILED)
    assert "The ublk driver is not loaded." in run.out and os.uname().release in run.out
    assert ctl("host", "-o", "json", status=FAILED).json == server.ask("GET", "/host").json


def test_host_shows_who_may_connect(ctl, server):
    (line,) = [line for line in ctl("host", status=FAILED).out.splitlines() if line.startswith("Socket:")]
    gid = os.stat(server.path).st_gid
    group = "root" if gid == 0 else str(gid)  # another one is named only if it is that of SocketGroup=
    assert line.split()[1:] == [f"{server.path},", "group", f"{group},", "mode", "0666"]


def test_host_shows_who_may_read(ctl, server):
    (line,) = [line for line in ctl("host", status=FAILED).out.splitlines() if line.startswith("Readers:")]
    assert line.split()[1:] == ["-"]


@pytest.mark.parametrize("walls,lines", [
    ({"landlock": 11, "callFilter": True, "noPaths": True}, ["Sandbox:  best-effort"]),
    ({"landlock": 0, "callFilter": False, "noPaths": True}, ["Sandbox:  best-effort", "Lacks:    Landlock, a filter of system calls"]),
    ({"landlock": 6, "callFilter": True, "noPaths": False}, ["Sandbox:  best-effort", "Lacks:    failfs"]),
    (None, []),  # an earlier ublkd
])
def test_host_shows_which_walls_are_missing(tmp_path, walls, lines):
    host = {"version": "1", "kernel": "7", "ublk": {"available": True, "features": []}, "problems": [], "foreignDisks": [],
            "adoptable": [], **({"walls": walls, "policy": {"sandbox": "best-effort"}} if walls else {})}
    with answering(host) as url:
        shown = Ctl(None, tmp_path)("--url", url, "host").out
    assert [line for line in shown.splitlines() if line.startswith(("Sandbox:", "Lacks:"))] == lines


def test_host_shows_a_disk_to_adopt_only_among_those(tmp_path):
    def foreign(number, maker):
        return {"id": number, "device": f"/dev/ublkb{number}", "state": "live", "madeBy": maker, "managed": False,
                "process": {"pid": 70 + number, "command": "ublkd-worker c"}, "detail": "It is another's."}

    def shown(foreign_disks):
        adoptable = [{"name": "c", "uid": "7", "id": 3, "device": "/dev/ublkb3", "served": True, "detail": "Adopt it."}]
        host = {"version": "1", "kernel": "7", "ublk": {"available": True, "features": []}, "problems": [],
                "foreignDisks": foreign_disks, "adoptable": adoptable}
        with answering(host) as url:
            return Ctl(None, tmp_path)("--url", url, "host").out

    out = shown([foreign(3, "ublkd"), foreign(4, "other")])
    assert out.count("/dev/ublkb3") == 1 and out.index("/dev/ublkb4") < out.index("to adopt") < out.index("/dev/ublkb3")
    out = shown([foreign(3, "ublkd")])
    assert out.count("/dev/ublkb3") == 1 and "other programs" not in out


def test_targets(ctl):
    assert {"loop", "null"} <= set(ctl("targets", "-o", "name").lines)
    assert {row[0] for row in ctl("targets").rows} >= {"loop", "null"}


# ---- the command line ----

def test_usage():
    ctl = Ctl("/nowhere")
    assert "try 'ublkctl --help'" in ctl("bogus", status=USAGE).err
    assert "Verbs:" in ctl(status=USAGE).err
    assert "--bogus is not an option of this verb" in ctl("list", "--bogus", status=USAGE).err
    assert "-z is not an option of this verb" in ctl("list", "-z", status=USAGE).err
    assert "needs a value" in ctl("list", "-o", status=USAGE).err
    assert "give one of" in ctl("list", "-o", "xml", status=USAGE).err
    assert "with its unit" in ctl("wait", "x", "--timeout", "5", status=USAGE).err
    assert "--timeout 0: give a time from 1us to 24h.\n" in ctl("wait", "x", "--timeout", "0", status=USAGE).err
    assert "--rounds 0: give a number from 1 to 4294967296.\n" in ctl("top", "-n", "0", status=USAGE).err
    assert "--interval 1ms: give a time from 100ms to 1h.\n" in ctl("top", "-i", "1ms", status=USAGE).err
    assert "does not support TLS; give http://" in ctl("list", "--url", "https://host:1", status=USAGE).err
    assert "http://127.0.0.1:8080" in ctl("list", environment={"UBLKD_URL": "host:1"}, status=USAGE).err
    assert "usage: ublkctl describe" in ctl("describe", status=USAGE).err
    ctl("host", "extra", status=USAGE)
    assert "each file needs an -f of its own" in ctl("apply", "-f", "a", "b", status=USAGE).err
    ctl("help", "bogus", status=USAGE)


def test_help_of_the_program_and_of_every_verb():
    ctl = Ctl("/nowhere")
    program = ctl("--help").out
    verbs = [line.split()[0] for line in program.split("Verbs:\n")[1].split("\n\n")[0].splitlines()]
    assert len(verbs) > 15 and program == ctl("help").out
    for verb in verbs:
        text = ctl(verb, "--help").out
        assert text.startswith(f"Usage: ublkctl {verb}") and "--socket" in text
        assert text == ctl("help", verb).out
        assert all(len(line) < 80 for line in text.splitlines())
    assert ctl("--version").out.startswith("ublkctl 0")


def test_no_verb_has_two_options_of_one_letter():
    ctl = Ctl("/nowhere")
    for verb in ctl("--help").out.split("Verbs:\n")[1].split("\n\n")[0].splitlines():
        letters = [line[3] for line in ctl("help", verb.split()[0]).lines if line.startswith("  -")]
        assert len(letters) == len(set(letters)), verb


# ---- a disk that becomes smaller ----

@pytest.mark.parametrize("shrink", [["resize", "data", "1MiB"], ["set", "data", "size=1048576"], ["patch", "data", '{"size": "1024KiB"}']])
def test_a_disk_becomes_smaller_only_by_its_own_option(ctl, server, shrink):
    ctl("create", "data", "target.type=null", "size=2MiB")
    run = ctl(*shrink, status=REFUSED)
    assert "1MiB (1048576 bytes) from 2MiB" in run.err and "--allow-shrink" in run.err and run.out == ""
    assert "--allow-shrink" in ctl(*shrink, "--force", status=USAGE).err, "what --force meant here once"
    assert server.ask("GET", "/devices/data").json["spec"]["size"] == "2MiB"
    assert ctl(*shrink, "--allow-shrink").out == "data changed and ready\n"
    assert server.ask("GET", "/devices/data").json["spec"]["size"] != "2MiB"


# ---- words that are true ----

def test_a_change_of_nothing_is_reported_as_unchanged(ctl):
    ctl("create", "data", *NULL)
    assert ctl("enable", "data").out == "data unchanged\n"
    assert ctl("disable", "data").out == "data disabled\n"
    assert ctl("disable", "data").out == "data unchanged\n"
    assert ctl("enable", "data").out == "data enabled and ready\n"
    assert ctl("set", "data", "size=1048576").out == "data unchanged\n"
    assert ctl("delete", "nope", "--ignore-missing").out == "nope does not exist\n"


def test_messages_of_the_daemon_name_options_too(ctl, server):
    ctl("create", "data", *NULL, "id=0")
    server.tell("busy 0 mounted at /srv")
    for verb in ("delete", "detach"):
        output = ctl(verb, "data", status=REFUSED).err
        assert "--force" in output and "I/O errors" in output and "?force" not in output
        assert output.index("Unmount it") < output.index("--force"), "what destroys nothing comes first"
    assert "PUT" not in ctl("create", "data", "target.type=null", "size=2MiB", status=REFUSED).err


@pytest.mark.parametrize("label", ["set", "=x"])
def test_a_label_has_a_key_and_a_value(ctl, label):
    assert "not KEY=VALUE" in ctl("list", "-l", label, status=USAGE).err


def test_a_missing_driver_is_reported_at_once(ctl, server):
    server.tell("auto off")
    answer = []
    thread = threading.Thread(target=lambda: answer.append(ctl.run("create", "data", *NULL, "--timeout", "10min")))
    thread.start()
    server.until("waits", 1)
    server.tell("status data Pending HostNotReady The ublk driver is not loaded.")
    thread.join()
    assert answer[0].status == FAILED and "data: The ublk driver is not loaded." in answer[0].err
    assert "stays in force" in answer[0].err
    assert ctl("list", "-o", "name").lines == ["data"]


@pytest.mark.parametrize("verb", [["resize", "data", "2MiB"], ["recover", "data"], ["restart", "data"],
                                  ["apply", "--wait", "-f", "-"], ["attach", "data.img"]])
def test_every_verb_but_wait_reports_a_missing_driver(ctl, server, tmp_path, verb):
    (tmp_path / "data.img").write_bytes(bytes(1 << 20))
    spec = '{"name": "data", "target": {"type": "loop", "path": "%s"}}' % (tmp_path / "data.img")
    ctl("create", "-f", "-", stdin=spec)
    server.tell("auto off")
    server.tell("status data Pending HostNotReady The ublk driver is not loaded.")
    run = ctl(*verb, "--timeout", "10min", stdin=spec, status=FAILED)
    assert "data: The ublk driver is not loaded." in run.err and "data: The request stays in force" in run.err
    ctl("wait", "data", "--timeout", "100ms", status=TIMED_OUT)
