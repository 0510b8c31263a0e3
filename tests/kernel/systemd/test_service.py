# SPDX-License-Identifier: MIT
"""ublkd as a service: what systemd keeps for it while it is away."""

import json
import os
import pathlib
import signal

import pytest

from harness import groups, programs
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.halt import halt
from harness.kernel_disks import loop_disk
from harness.shell import output, run
from harness.units import UNITS, main_pid
from harness.wait import wait_until


def _kept():
    return int(output("systemctl", "show", "-p", "NFileDescriptorStore", "--value", "ublkd.service"))


@pytest.mark.parametrize("unit", ["ublkd.service", "ublkd-workers.service"])
def test_no_number_of_tasks_keeps_a_worker_from_being_replaced(service, unit):  # pylint: disable=unused-argument
    """Whatever the manager of the system has as its default."""
    assert output("systemctl", "show", "-p", "TasksMax", "--value", unit).strip() == "infinity"


def test_systemd_keeps_the_store_of_a_disk(service, ext4, file_of):
    """ublkd and the worker die together, and the path leads to another file: the disk keeps the one that it had."""
    api, path = service, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    wait_until(lambda: _kept() == 1, "the store kept by systemd")
    fresh = path.with_suffix(".fresh")
    fresh.write_bytes(block("z") * (64 << 8))
    fresh.rename(path)
    old, worker = main_pid(), api.get("data")["status"]["worker"]["pid"]
    os.kill(old, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: main_pid() not in (0, old) and api.is_ready(), "the next ublkd")
    api.wait_other_worker("data", worker)
    assert disk.read(0, 4096) == block("a")
    assert api.get("data")["status"]["backing"]["kept"]
    api.delete("data")
    wait_until(lambda: _kept() == 0, "a store that systemd has let go")


@pytest.mark.variant
def test_systemd_keeps_the_claim_that_a_disk_inherited(service, directory):
    """Of two disks on parts of one block device the one with the claim is removed, then ublkd is replaced."""
    api, image = service, directory / "one.img"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    with loop_disk(image) as path:
        api.create(loop_spec("low", path, size="8MiB"))
        api.create(loop_spec("high", path, {"offset": "32MiB"}, size="8MiB"))
        api.delete("low")
        old = main_pid()
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: main_pid() not in (0, old) and api.is_ready(), "the next ublkd")
        with pytest.raises(OSError):
            os.close(os.open(path, os.O_RDWR | os.O_EXCL))
        api.delete("high")
        wait_until(lambda: _kept() == 0, "a claim that systemd has let go")
        os.close(os.open(path, os.O_RDWR | os.O_EXCL))


def test_a_stop_and_a_start_keep_the_store(service, ext4, file_of):
    """systemd drops what it keeps when a service is stopped: the worker that lives passes the store again."""
    api, path = service, file_of(where=ext4)
    disk = Disk(api.create(loop_spec("data", path))["status"]["id"])
    disk.write(0, block("a"))
    path.unlink()
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    run("systemctl", "start", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    worker = api.get("data")["status"]["worker"]["pid"]
    os.kill(worker, signal.SIGKILL)
    api.wait_other_worker("data", worker)
    assert disk.read(0, 4096) == block("a")
    api.delete("data")


def _reload_state():
    return output("systemctl", "show", "-p", "ActiveState,Result,ReloadResult", "ublkd.service")


def _host(api):
    return api.ask("GET", "/host", 200)


def _titles(api):
    return {problem["title"] for problem in _host(api)["problems"]}


def test_systemctl_reload(service, file_of):
    """systemd waits for the reload, a bad file does not end the service, and a disk serves meanwhile."""
    api, path = service, pathlib.Path("/etc/ublkd/ublkd.conf")
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    pid, worker = main_pid(), api.get("data")["status"]["worker"]["pid"]
    path.parent.mkdir(exist_ok=True)
    try:
        path.write_text("[Manager]\nUnstablePaths=refuse\nSandbox=best-effort\n", encoding="utf-8")
        run("systemctl", "reload", "ublkd.service")
        wait_until(lambda: _host(api)["policy"]["unstablePaths"] == "refuse", "the new policy")
        wait_until(lambda: "ActiveState=active" in _reload_state(), "the end of the reload")
        assert "RestartNeeded" in _titles(api)
        path.write_text("[Manager]\nSandbox=maybe\n", encoding="utf-8")
        run("systemctl", "reload", "ublkd.service")
        wait_until(lambda: "ConfigurationNotReloaded" in _titles(api), "a refused reload")
        wait_until(lambda: "ActiveState=active" in _reload_state(), "the end of the reload")
        assert _host(api)["policy"]["unstablePaths"] == "refuse"
        disk.write(0, block("a"))
        assert disk.read(0, 4096) == block("a")
        assert main_pid() == pid and api.get("data")["status"]["worker"]["pid"] == worker
    finally:
        path.unlink()
        run("systemctl", "reload", "ublkd.service")
    wait_until(lambda: not _titles(api) & {"ConfigurationNotReloaded", "RestartNeeded"}, "the values from the start")
    assert main_pid() == pid
    api.delete("data")


def test_workers_have_groups_of_their_own_unit(service, file_of):
    """They outlive the service, which starts again beside them."""
    api = service
    api.create(loop_spec("data", file_of(), resources={"cpuWeight": 50, "memoryMax": "256MiB", "pidsMax": 200}))
    worker = api.get("data")["status"]["worker"]["pid"]
    group = groups.own_group(worker)
    assert group.parent == groups.ROOT / "ublkd.slice" / "ublkd-workers.service"
    _wait_resources(api, "True")
    assert groups.read(group, "memory.max") == str(256 << 20)
    run("systemctl", "restart", "ublkd.service")
    wait_until(api.is_ready, "the next ublkd")
    assert api.get("data")["status"]["worker"]["pid"] == worker
    assert groups.group_of(worker) == group
    _wait_resources(api, "True")
    api.delete("data")
    wait_until(lambda: not group.exists(), "the group of a worker that is gone")


def _status_line():
    return output("systemctl", "show", "-p", "StatusText", "--value", "ublkd.service")


def test_the_status_line_names_what_is_wrong(service, file_of):
    api, path = service, file_of()
    wait_until(lambda: _status_line().startswith("0 devices, 0 Live"), "the line of a service without devices")
    api.create(loop_spec("data", path))
    wait_until(lambda: _status_line().startswith("1 device, 1 Live"), "the line of a service with one disk")
    api.create(loop_spec("missing", path.with_suffix(".missing"), size="8MiB"), wait="")
    wait_until(lambda: "; missing: " in _status_line(), "the line that names the device without a file")
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    run("systemctl", "start", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    wait_until(lambda: _status_line().startswith("2 devices, 1 Live; missing: "), "the line of the next ublkd")


@pytest.fixture
def impatient(service):
    """A ublkd with a watchdog of two seconds."""
    drop_in = UNITS / "ublkd.service.d" / "watchdog.conf"
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text("[Service]\nWatchdogSec=2\n", encoding="utf-8")
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "ublkd.service")
    wait_until(service.is_ready, "a ublkd with that watchdog")
    yield
    drop_in.unlink()
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", "ublkd.service")


def test_the_watchdog_replaces_a_loop_that_stands_still(impatient, service, file_of):  # pylint: disable=unused-argument
    """The worker serves on meanwhile, and the next ublkd adopts it."""
    api = service
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    old, worker = main_pid(), api.get("data")["status"]["worker"]["pid"]
    halt(old)
    disk.write(0, block("a"))
    wait_until(lambda: main_pid() not in (0, old) and api.is_ready(), "the next ublkd")
    assert api.get("data")["status"]["worker"]["pid"] == worker
    assert disk.read(0, 4096) == block("a")
    api.delete("data")


def _has_event(name, reason):
    events = output(programs.ublkctl(), "events", "-o", "json", name).splitlines()
    return any(json.loads(event)["reason"] == reason for event in events)


def _unit_state():
    return output("systemctl", "show", "-p", "ActiveState", "--value", "ublkd-workers.service")


def _log_of_systemd():
    return [line for line in output("dmesg").splitlines() if "systemd[1]: ublkd" in line]


def _wait_resources(api, status):
    def is_there(device):
        condition = condition_of(device, "Resources")
        return condition and condition["status"] == status

    return api.wait_for("data", is_there, f"the condition Resources {status}")


def test_no_stop_of_a_unit_ends_a_worker(service, file_of):
    """Neither does a start, and the groups stay: a worker that comes later has one as well."""
    api, spec = service, loop_spec("data", file_of(), resources={"pidsMax": 200})
    disk = Disk(api.create(spec)["status"]["id"])
    worker = api.get("data")["status"]["worker"]["pid"]
    group = groups.own_group(worker)
    _wait_resources(api, "True")
    wait_until(lambda: len(list(group.parent.glob("worker-*"))) > 1, "the group of a spare")
    assert run("systemctl", "stop", "ublkd-workers.service", check=False).returncode != 0  # refused
    assert _unit_state() == "active"
    run("systemctl", "stop", "ublkd.slice")
    assert _unit_state() == "inactive"
    disk.write(0, block("a"))
    os.kill(worker, signal.SIGKILL)
    api.wait_other_worker("data", worker)
    worker = api.get("data")["status"]["worker"]["pid"]
    group = groups.own_group(worker)
    wait_until(lambda: groups.read(group, "pids.max") == "200", "the limit of the next worker")
    run("systemctl", "restart", "ublkd.service")
    wait_until(api.is_ready, "the next ublkd")
    assert api.get("data")["status"]["worker"]["pid"] == worker and groups.group_of(worker) == group
    assert groups.read(group, "pids.max") == "200"
    assert disk.read(0, 4096) == block("a")
    assert _unit_state() == "inactive"
    for line in _log_of_systemd():
        assert "ublkd-workers" not in line, line
    api.delete("data")
    wait_until(lambda: not group.parent.exists(), "no group of a worker")
    run("systemctl", "start", "ublkd-workers.service")


@pytest.mark.storm
def test_limits_hold_again_once_the_unit_of_the_workers_runs(service):
    """ublkd looks for it every half minute."""
    api = service
    run("systemctl", "stop", "ublkd.slice")
    api.create(null_spec("data", resources={"pidsMax": 200}))
    _wait_resources(api, "False")
    run("systemctl", "start", "ublkd-workers.service")
    _wait_resources(api, "True")
    api.delete("data")


@pytest.mark.variant
def test_a_worker_that_runs_out_of_memory_dies_alone(service):
    """Neither the OOM killer nor systemd, which sees it, ends other workers."""
    api = service
    disk = Disk(api.create(null_spec("data", **groups.HUNGRY))["status"]["id"])
    api.create(null_spec("other"))
    other, first = (api.get(name)["status"]["worker"]["pid"] for name in ("other", "data"))
    groups.own_group(other)
    _wait_resources(api, "True")
    writes = groups.write_more_than_fits(disk)
    api.wait_other_worker("data", first)
    wait_until(lambda: _has_event("data", "WorkerOutOfMemory"), "the event of the death")
    api.put(null_spec("data", **groups.SATISFIED))
    for write in writes:
        assert write.result() is None
    assert api.get("other")["status"]["worker"]["pid"] == other
    assert _unit_state() == "active"
    for name in ("data", "other"):
        api.delete(name)


@pytest.mark.variant
def test_a_reload_applies_the_files_that_describe_devices(service):
    """In the directory of the administrator; systemd waits for a ublkd that reloads, and does not start another."""
    api, before = service, main_pid()
    folder = pathlib.Path("/etc/ublkd/devices.d")
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    path = folder / "declared.json"
    path.write_text(json.dumps(null_spec("declared")), encoding="utf-8")
    path.chmod(0o644)
    try:
        run("systemctl", "reload", "ublkd.service")
        wait_until(lambda: "declared" in api.names(), "the device of the file")
        assert api.wait_phase("declared", "Live")["source"] == str(path)
        wait_until(lambda: output("systemctl", "is-active", "ublkd.service").strip() == "active", "active again")
        run("systemctl", "restart", "ublkd.service")  # the file is applied at the start, too
        wait_until(api.is_ready, "ublkd ready")
        assert api.get("declared")["generation"] == 1 and main_pid() != before
    finally:
        path.unlink()
    run("systemctl", "reload", "ublkd.service")
    wait_until(lambda: "declared" not in api.names(), "the device to go with its file")
