# SPDX-License-Identifier: MIT
"""ublkd and its configuration files: what --check-config prints, what counts, with what ublkd does not start."""

import json
import os
import subprocess

import pytest
from daemon_process import Daemon

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


def test_ublkd_starts_with_the_values_of_files(tmp_path):
    """And with a problem that is only a warning: the disks must be back after a boot."""
    root = tmp_path / "root"
    main = write(root, "etc/ublkd/ublkd.conf", "UnstablePaths=refuse", "UnstablePaths=perhaps", "Readers=everyone",
                 f"Listen={tmp_path}/run/ublkd.sock", f"Listen={tmp_path}/other.sock")
    daemon = Daemon(tmp_path)
    try:
        assert daemon.said(f"{main}:3: UnstablePaths: 'perhaps' is not valid; give warn or refuse (ignored)") == 1
        assert (tmp_path / "other.sock").is_socket()
        host = daemon.ask("GET", "/host").json
        assert host["policy"] == {"unstablePaths": "refuse", "readers": "everyone"}, json.dumps(host["policy"])
    finally:
        daemon.stop()
    assert not (tmp_path / "other.sock").exists()
