# SPDX-License-Identifier: MIT
"""ublkd and its configuration files: what --check-config prints, what counts, with what ublkd does not start, and what
changes when it reloads them."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import types

import pytest
from api_server import spec
from daemon_process import Daemon, until
from other_user import NEEDS_ROOT, user

UBLKD = os.environ["UBLKD_PROGRAM"]


def write(root, name, *lines):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["[Manager]", *lines, ""]), encoding="utf-8")
    return path


def check(root, *options):
    return subprocess.run([UBLKD, "--config-root", root, "--check-config", *options],
                          capture_output=True, text=True, timeout=60, check=False)


def test_values_are_printed_with_their_places(tmp_path):
    main = write(tmp_path, "etc/ublkd/ublkd.conf", f"StateDirectory={tmp_path}/state", "LogLevel=debug")
    drop_in = write(tmp_path, "usr/lib/ublkd/ublkd.conf.d/10.conf", "Listen=/run/a.sock", "LogLevel=error")
    run = check(tmp_path, "--readers", "everyone", "--runtime-dir", tmp_path / "run")
    assert run.returncode == 0 and run.stderr == ""
    assert f"# {main}:2\nStateDirectory={tmp_path}/state\n" in run.stdout
    assert f"# {drop_in}:3\nLogLevel=error\n" in run.stdout and "debug" not in run.stdout
    assert f"# {drop_in}:2\nListen=/run/a.sock\n" in run.stdout
    assert "# command line\nReaders=everyone\n" in run.stdout
    assert "# default\nSandbox=required\n" in run.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["etc", "usr"]  # it has created nothing


def test_what_is_printed_is_a_file(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    write(first, "run/ublkd/ublkd.conf", "Listen=/a", "Listen=/b", "WorkerUids=5-6")
    printed = check(first).stdout
    (second / "etc/ublkd").mkdir(parents=True)
    (second / "etc/ublkd/ublkd.conf").write_text(printed, encoding="utf-8")
    again = check(second)
    assert again.returncode == 0

    def values(text):
        return [line for line in text.splitlines() if not line.startswith("#")]

    assert values(again.stdout) == values(printed) and "WorkerUids=5-6" in values(printed)


def test_all_problems_are_printed(tmp_path):
    main = write(tmp_path, "etc/ublkd/ublkd.conf", "Colour=red", "Sandbox=maybe", "LogLevel=debug")
    drop_in = write(tmp_path, "etc/ublkd/ublkd.conf.d/10.conf", "LogLevel=loud")
    run = check(tmp_path)
    assert run.returncode == 1 and run.stdout == ""
    assert [line.rsplit(":", 1)[0].split(": ")[0] for line in run.stderr.splitlines()] == [
        f"{main}:2", f"{main}:3", f"{drop_in}:2"]


def test_a_wrong_command_line_is_another_exit_status(tmp_path):
    assert check(tmp_path, "--log-level", "loud").returncode == 2


def test_only_the_group_of_the_socket_must_exist(tmp_path):
    """As at a start. Clients of the other groups only get fewer rights without them."""
    main = write(tmp_path, "etc/ublkd/ublkd.conf", "Readers=group:no-such-group", "Administrators=group:no-such-group")
    assert check(tmp_path).returncode == 0
    write(tmp_path, "etc/ublkd/ublkd.conf", "", "LogLevel=loud", "SocketGroup=no-such-group")
    run = check(tmp_path)
    assert run.returncode == 1 and run.stdout == ""
    assert [line.split(": ")[0] for line in run.stderr.splitlines()] == [f"{main}:3", f"{main}:4"]
    assert "no-such-group" in run.stderr.splitlines()[1]
    run = check(tmp_path, "--socket-group", "no-other-group")
    assert run.returncode == 1 and "command line: " in run.stderr and "no-other-group" in run.stderr


def start(tmp_path, *options):
    return subprocess.run(
        [UBLKD, "--config-root", tmp_path / "root", *options],
        capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "line", ["StateDirectory=state", "StateDirectoy=/srv", "Readers=all", "sandbox=best-effort", "Sandbox off", "WorkerUids=0-9"])
def test_ublkd_does_not_start_with_what_could_be_unsafe(tmp_path, line):
    main = write(tmp_path / "root", "etc/ublkd/ublkd.conf", "", line)
    run = start(tmp_path, "--state-dir", tmp_path / "state", "--runtime-dir", tmp_path / "run")
    assert run.returncode == 2
    assert run.stderr.startswith(f"{main}:3: ") or f" {main}:3: " in run.stderr.splitlines()[0]
    assert run.stderr.count("\n") == 2 and "--check-config" in run.stderr.splitlines()[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root"]


OURS = {"ConfigurationInvalid", "ConfigurationNotReloaded", "RestartNeeded"}


def problems_of(daemon):
    return [problem for problem in daemon.ask("GET", "/host").json["problems"] if problem["title"] in OURS]


def policy_of(daemon):
    """Without the group of administrators, which this machine may have or not."""
    policy = daemon.ask("GET", "/host").json["policy"]
    return {key: value for key, value in policy.items() if key in ("unstablePaths", "readers", "polkit")}


def test_ublkd_starts_with_the_values_of_files(tmp_path):
    """And with a problem that is only a warning: the disks must be back after a boot."""
    root = tmp_path / "root"
    main = write(root, "etc/ublkd/ublkd.conf", "UnstablePaths=refuse", "UnstablePaths=perhaps", "Readers=everyone",
                 f"Listen={tmp_path}/run/ublkd.sock", f"Listen={tmp_path}/other.sock")
    daemon = Daemon(tmp_path)
    try:
        assert daemon.count_logged(f"{main}:3: UnstablePaths: 'perhaps' is not valid; give warn or refuse (ignored)") == 1
        assert (tmp_path / "other.sock").is_socket()
        (problem,) = problems_of(daemon)
        assert problem["title"] == "ConfigurationInvalid" and problem["detail"].startswith(f"{main}:3: ")
        assert policy_of(daemon) == {"unstablePaths": "refuse", "readers": "everyone", "polkit": True}
    finally:
        daemon.stop()
    assert not (tmp_path / "other.sock").exists()


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.stop()


RELOADED, FAILED = "The configuration was reloaded", "Reloading the configuration failed"


def reload(daemon, *lines, logged=RELOADED):
    """Replace the file, reload, and wait for the line in the log. Return the path of the file."""
    path, before = write(daemon.root, "etc/ublkd/ublkd.conf", *lines), daemon.count_logged(logged)
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.count_logged(logged) > before)
    return path


def test_keys_take_effect_at_once(daemon):
    policy = {"unstablePaths": "warn", "readers": "group", "polkit": True}
    assert policy_of(daemon) == policy
    reload(daemon, "UnstablePaths=refuse", "Readers=everyone", "UpgradeWorkers=replace", "LogLevel=debug")
    assert policy_of(daemon) == {"unstablePaths": "refuse", "readers": "everyone", "polkit": True}
    assert problems_of(daemon) == []
    refused = daemon.ask("POST", "/devices", spec("one", target={"type": "loop", "path": "/dev/sdb"}))
    assert refused.status == 422, refused.json
    reload(daemon)
    assert policy_of(daemon) == policy


def test_the_level_of_the_log(daemon):
    """At the level "error" a reload logs nothing. The next reload logs, as it sets its level first."""
    reload(daemon)
    path = write(daemon.root, "etc/ublkd/ublkd.conf", "LogLevel=error", "UnstablePaths=refuse")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.ask("GET", "/host").json["policy"]["unstablePaths"] == "refuse")
    assert daemon.count_logged(RELOADED) == 1
    path.unlink()
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.count_logged(RELOADED) == 2)


def test_the_other_keys_need_a_restart(daemon, tmp_path):
    reload(daemon, f"StateDirectory={tmp_path}/never", "Sandbox=best-effort", "UnstablePaths=refuse",
           f"Listen={tmp_path}/other.sock")
    problems = problems_of(daemon)
    # --state-dir has priority over StateDirectory=.
    assert [problem["title"] for problem in problems] == 2 * ["RestartNeeded"]
    assert "Listen" in problems[0]["detail"] and "Sandbox" in problems[1]["detail"]
    assert daemon.count_logged("The new value of Sandbox takes effect when ublkd is restarted") == 1
    assert daemon.ask("GET", "/host").json["policy"]["unstablePaths"] == "refuse"
    assert not (tmp_path / "never").exists() and not (tmp_path / "other.sock").exists()
    reload(daemon, "UnstablePaths=refuse")
    assert problems_of(daemon) == []


@pytest.mark.parametrize("line", ["Colour=red", "StateDirectory=x", "UnstablePaths=perhaps", "garbage"])
def test_a_bad_file_changes_nothing(daemon, line):
    """A file with a fault changes nothing, not even by its valid lines."""
    reload(daemon, "Readers=everyone")
    path = reload(daemon, "UnstablePaths=refuse", line, logged=FAILED)
    assert policy_of(daemon) == {"unstablePaths": "warn", "readers": "everyone", "polkit": True}
    first, second = problems_of(daemon)
    assert first["title"] == "ConfigurationNotReloaded"
    assert second["title"] == "ConfigurationInvalid" and second["detail"].startswith(f"{path}:3: ")
    assert daemon.count_logged(f"{path}:3: ") == 1
    reload(daemon, "UnstablePaths=refuse")
    assert problems_of(daemon) == []
    assert policy_of(daemon) == {"unstablePaths": "refuse", "readers": "group", "polkit": True}


def test_many_reloads_at_once(daemon):
    """The last file counts, also if several signals become one."""
    for _ in range(50):
        daemon.process.send_signal(signal.SIGHUP)
    write(daemon.root, "etc/ublkd/ublkd.conf", "UnstablePaths=refuse")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.ask("GET", "/host").json["policy"]["unstablePaths"] == "refuse")


def test_systemd_learns_of_a_reload(tmp_path, monkeypatch):
    """Type=notify: RELOADING=1 with the time, then READY=1; also if the reload has failed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        daemon = Daemon(tmp_path)

        def next_state():
            while True:
                text = manager.recv(4096).decode()
                if "READY=1" in text or "RELOADING=1" in text:
                    return text

        assert next_state() == "READY=1"
        for lines, logged in ([], RELOADED), (["Colour=red"], FAILED):
            reload(daemon, *lines, logged=logged)
            assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", next_state())
            assert next_state() == "READY=1"
        daemon.stop()


STREAM = """
import http.client
connection = UnixConnection(path)
connection.request("GET", "/events", headers={"Accept": "text/event-stream"})
response = connection.getresponse()
print(response.status, flush=True)
try:
    response.read()
except http.client.HTTPException:
    pass
print("closed", ask(UnixConnection(path), "GET", "/devices").status)
"""


@NEEDS_ROOT
def test_a_reader_that_may_not_read_any_more_is_cut_off():
    """A stream of events that is open already, too."""
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        os.chmod(directory, 0o755)
        write(pathlib.Path(directory) / "root", "etc/ublkd/ublkd.conf", "Readers=everyone")
        daemon = Daemon(pathlib.Path(directory))
        try:
            with user(types.SimpleNamespace(path=str(daemon.socket)), STREAM) as reader:
                assert reader.stdout.readline() == "200\n"
                reload(daemon, "Readers=everyone", "UnstablePaths=refuse")  # changes nothing for readers
                reload(daemon, "Readers=group:no-such-group")
                assert reader.stdout.readline() == "closed 403\n"
        finally:
            daemon.stop()


CHANGE_AND_READ = """
connection = UnixConnection(path)
print(ask(connection, "PUT", "/devices/other", spec("other", enabled=False)).status, flush=True)
sys.stdin.readline()
try:
    print(ask(connection, "GET", "/devices").status)
except (OSError, http.client.HTTPException):
    print("closed", ask(UnixConnection(path), "DELETE", "/devices/other").status)
"""


def group_of_this_machine():
    """A group of /etc/group other than root's: its name and number."""
    for line in pathlib.Path("/etc/group").read_text(encoding="utf-8").splitlines():
        name, _, number, _ = line.split(":")
        if int(number) > 0:
            return name, int(number)
    raise AssertionError("/etc/group has one group")


def test_the_group_of_readers_by_name(daemon):
    name, _ = group_of_this_machine()
    reload(daemon, f"Readers=group:{name}")
    assert daemon.ask("GET", "/host").json["policy"]["readersGroup"] == name
    reload(daemon, "Readers=group:no-such-group")
    policy = daemon.ask("GET", "/host").json["policy"]
    assert (policy["readers"], policy["readersGroup"]) == ("group", None)


@NEEDS_ROOT
def test_the_group_of_administrators_by_name():
    """A reload disconnects clients that lost the right; an unknown group grants nothing."""
    name, number = group_of_this_machine()
    with tempfile.TemporaryDirectory(prefix="ublkd-api-") as directory:
        os.chmod(directory, 0o755)
        write(pathlib.Path(directory) / "root", "etc/ublkd/ublkd.conf", f"Administrators=group:{name}")
        daemon = Daemon(pathlib.Path(directory))
        try:
            assert daemon.ask("GET", "/host").json["policy"]["administrators"] == name
            with user(types.SimpleNamespace(path=str(daemon.socket)), "import http.client" + CHANGE_AND_READ, groups=[number]) as member:
                assert member.stdout.readline() == "201\n"
                reload(daemon, "Administrators=group:no-such-group")
                member.stdin.write("\n")
                member.stdin.flush()
                assert member.stdout.readline() == "closed 403\n"
            assert daemon.count_logged("There is no group no-such-group: only root may change devices") == 1
            assert daemon.ask("GET", "/host").json["policy"]["administrators"] is None
            reload(daemon, "Administrators=none")
            assert daemon.ask("GET", "/host").json["policy"]["administrators"] is None
        finally:
            daemon.stop()


@NEEDS_ROOT
def test_the_group_of_the_socket(tmp_path):
    name, number = group_of_this_machine()
    write(tmp_path / "root", "etc/ublkd/ublkd.conf", f"SocketGroup={name}")
    daemon = Daemon(tmp_path)
    info = daemon.socket.stat()
    daemon.stop()
    assert (info.st_mode & 0o777, info.st_uid, info.st_gid) == (0o660, 0, number)


class ActivatedDaemon(Daemon):
    """It inherits its socket, as from systemd."""

    def start(self):
        script = 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" 3<&0 0</dev/null'
        self.run.mkdir(mode=0o755)
        with open(self.log, "ab") as log, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.socket))
            os.chmod(self.socket, 0o666)
            listener.listen(8)
            self.process = subprocess.Popen(
                ["bash", "-c", script, "bash", UBLKD, "--config-root", self.root, "--state-dir", self.state,
                 "--runtime-dir", self.run, *self.arguments()], stdin=listener, stderr=log)
        until(self.answers)


@NEEDS_ROOT
def test_the_group_of_a_socket_of_systemd(tmp_path):
    name, number = group_of_this_machine()
    write(tmp_path / "root", "etc/ublkd/ublkd.conf", f"SocketGroup={name}")
    daemon = ActivatedDaemon(tmp_path)
    host = daemon.ask("GET", "/host").json
    daemon.stop()
    assert host["policy"]["socketGroup"] == {"name": name, "effective": False}
    assert [(one["openedBy"], one["group"], one["mode"]) for one in host["sockets"]] == [("systemd", "root", "0666")]
    assert daemon.count_logged(f"SocketGroup={name} is not in effect") == 1


def test_no_socket_for_a_group_that_does_not_exist(tmp_path):
    """ublkd does not start, rather than make a socket that every user can connect to."""
    run = subprocess.run([UBLKD, "--config-root", tmp_path, "--state-dir", tmp_path / "state", "--runtime-dir", tmp_path / "run",
                          "--socket-group", "no-such-group"], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1 and "no-such-group" in run.stderr and run.stderr.count("\n") == 1, run.stderr
    assert not (tmp_path / "run").exists()


RULE = {"name": "one", "who": {"users": [1000]}, "targets": ["null"], "devices": 1, "size": "1GiB"}
POLICY_TITLES = {"PolicyInvalid", "PolicyNotLoaded", "PolicyNotReloaded", "PolicyNameUnknown", "PolicyMemoryTooLow"}


def write_policy(directory, document, mode=0o644):
    directory.mkdir(exist_ok=True)
    path = directory / "50.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    path.chmod(mode)
    return path


def policy_problems_of(daemon):
    problems = daemon.ask("GET", "/host").json["problems"]
    return [(problem["title"], problem["detail"]) for problem in problems if problem["title"] in POLICY_TITLES]


def test_the_policy_is_checked_with_the_configuration(tmp_path):
    policy = tmp_path / "policy.d"
    write(tmp_path / "root", "etc/ublkd/ublkd.conf", f"PolicyDirectory={policy}")
    run = check(tmp_path / "root")
    assert run.returncode == 0 and run.stderr == ""
    assert f"PolicyDirectory={policy}\n" in run.stdout
    path = write_policy(policy, {"rules": [RULE]})
    assert check(tmp_path / "root").returncode == 0
    path = write_policy(policy, '{"rules": [\n{"name": "one", "who": {"users": [0]},\n"colour": 1}]}')
    run = check(tmp_path / "root")
    assert run.returncode == 1 and run.stdout == ""
    assert sorted(line.split(": ")[:2] for line in run.stderr.splitlines()) == [
        [f"{path}:2", "/rules/0/who/users/0"], [f"{path}:3", "/rules/0/colour"]]
    write_policy(policy, {"rules": [RULE]}, 0o666)
    assert check(tmp_path / "root").returncode == 1


def test_a_name_that_does_not_exist_is_only_a_warning(tmp_path):
    path = write_policy(tmp_path / "policy.d", {"rules": [{**RULE, "who": {"users": ["no-such-user"]}}]})
    run = check(tmp_path, "--policy-dir", tmp_path / "policy.d")
    assert run.returncode == 0 and run.stderr.startswith(f"{path}:1: ") and "no-such-user" in run.stderr
    daemon = Daemon(tmp_path)
    try:
        ((title, detail),) = policy_problems_of(daemon)
        assert title == "PolicyNameUnknown" and "no-such-user" in detail
        assert daemon.count_logged(detail) == 1
    finally:
        daemon.stop()


def test_a_rule_that_no_device_can_keep_is_only_a_warning(tmp_path):
    rule = {**RULE, "devices": 1, "resources": {"memoryMax": "16MiB"}}
    path = write_policy(tmp_path / "policy.d", {"rules": [rule]})
    run = check(tmp_path, "--policy-dir", tmp_path / "policy.d")
    assert run.returncode == 0 and run.stderr.startswith(f"{path}:1: /rules/0/resources/memoryMax: ")
    daemon = Daemon(tmp_path)
    try:
        ((title, detail),) = policy_problems_of(daemon)
        assert title == "PolicyMemoryTooLow" and detail == run.stderr.splitlines()[0]
        write_policy(tmp_path / "policy.d", {"rules": [{**rule, "resources": {"memoryMax": "1GiB"}}]})
        reload(daemon, logged="The policy was loaded")
        assert not policy_problems_of(daemon)
    finally:
        daemon.stop()


def test_tenants_whose_disks_udev_would_not_know(tmp_path):
    """The rule of udev reads /run/ublkd: without the announcement there it takes what a tenant has written for root's."""
    def checked(runtime):
        run = check(tmp_path, "--policy-dir", tmp_path / "policy.d", "--runtime-dir", runtime)
        assert run.returncode == 0
        return "60-ublkd.rules" in run.stderr

    write_policy(tmp_path / "policy.d", {"rules": [RULE]})
    assert [checked(path) for path in ("/run/ublkd", "/var/run/ublkd/", tmp_path / "run")] == [False, False, True]
    daemon = Daemon(tmp_path)
    try:
        def titles():
            return [problem["title"] for problem in daemon.ask("GET", "/host").json["problems"]]
        assert titles().count("RuntimeDirectoryElsewhere") == 1 and daemon.count_logged("60-ublkd.rules") == 1
        reload(daemon, logged="The policy was loaded")
        assert titles().count("RuntimeDirectoryElsewhere") == 1 and daemon.count_logged("60-ublkd.rules") == 2
        write_policy(tmp_path / "policy.d", {"rules": [{**RULE, "devices": 0}]})
        assert not checked(tmp_path / "run")
        reload(daemon, logged="The policy was loaded")
        assert "RuntimeDirectoryElsewhere" not in titles()
    finally:
        daemon.stop()


def test_ublkd_starts_without_a_rule_if_the_policy_has_a_fault(tmp_path):
    """The disks must be back after a boot."""
    path = write_policy(tmp_path / "policy.d", {"rules": [RULE, {"name": "two"}]})
    daemon = Daemon(tmp_path)
    try:
        (first, _), (second, detail) = policy_problems_of(daemon)
        assert (first, second) == ("PolicyNotLoaded", "PolicyInvalid") and detail.startswith(f"{path}:1: /rules/1/who: ")
        assert daemon.count_logged(detail) == 1 and daemon.count_logged("Loading the policy failed") == 1
        pooled = {"name": "one", "target": {"type": "loop", "pool": "fast"}, "size": "1MiB"}
        assert daemon.ask("POST", "/devices", pooled).status == 422 and daemon.ask("GET", "/healthz").status == 200
        write_policy(tmp_path / "policy.d", {"rules": [RULE]})
        reload(daemon)
        assert policy_problems_of(daemon) == []
    finally:
        daemon.stop()


def test_a_reload_reads_the_policy_again(daemon):
    write_policy(daemon.policy, {"rules": [RULE]})
    reload(daemon, logged="The policy was loaded")
    path = write_policy(daemon.policy, "{")
    reload(daemon, logged="Loading the policy failed")
    (first, _), (second, detail) = policy_problems_of(daemon)
    assert (first, second) == ("PolicyNotReloaded", "PolicyInvalid") and detail.startswith(f"{path}:1: ")
    reload(daemon, "Colour=red", logged=FAILED)
    assert [title for title, _ in policy_problems_of(daemon)] == ["PolicyNotReloaded", "PolicyInvalid"]
    path.unlink()
    reload(daemon)
    assert policy_problems_of(daemon) == []


def test_the_example_of_a_policy_is_good(tmp_path):
    """But for its users and groups, which this machine need not have."""
    (example,) = (pathlib.Path(__file__).resolve().parents[2] / "examples/policy").iterdir()
    path = write_policy(tmp_path / "policy.d", example.read_text(encoding="utf-8"))
    run = check(tmp_path, "--policy-dir", tmp_path / "policy.d")
    assert run.returncode == 0, run.stderr
    assert all(line.startswith(f"{path}:") for line in run.stderr.splitlines())


def test_a_reload_changes_the_pools(daemon):
    """A device keeps the image that it has."""
    def put(name, pool):
        return daemon.ask("PUT", f"/devices/{name}", {"name": name, "target": {"type": "loop", "pool": pool}, "size": "1MiB"})

    assert put("one", "fast").status == 422
    write_policy(daemon.policy, {"rules": [RULE], "pools": {"fast": {"directory": "/srv/fast"}}})
    reload(daemon, logged="The policy was loaded")
    first = put("one", "fast")
    assert first.status == 201 and first.json["spec"]["target"]["path"].startswith("/srv/fast/one-")
    write_policy(daemon.policy, {"rules": [RULE], "pools": {"slow": {"directory": "/srv/slow"}}})
    reload(daemon, logged="The policy was loaded")
    assert put("one", "fast").json["spec"] == first.json["spec"]
    assert (put("two", "fast").status, put("two", "slow").status) == (422, 201)
