# SPDX-License-Identifier: MIT
"""ublk-disk@NAME.service: a unit for each disk, which has the state of the disk."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import types

import pytest

from harness import console, groups, units
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.shell import output, run
from harness.tenants import User
from harness.wait import wait_until

_FSTAB = pathlib.Path("/run/systemd/system")
_TENANT = 1234
_TENANTS = {"name": "tenants", "who": {"users": [_TENANT]}, "targets": ["null"], "devices": 1, "size": "64MiB"}


@pytest.fixture(autouse=True)
def _rule(rule):
    """All of these tests."""


def _unit(name):
    return f"ublk-disk@{name}.service"


def _wait_state(name, *states):
    unit = _unit(name)
    wait_until(lambda: units.state(unit) in states, lambda: f"{unit} {' or '.join(states)}, but {units.state(unit)}")


def _printed(name):
    """What the processes of the unit have printed; not what the manager logs of its disk."""
    return output("journalctl", "--no-pager", "-o", "cat", f"_SYSTEMD_UNIT={_unit(name)}").splitlines()


def _property(unit, name):
    return output("systemctl", "show", "-p", name, "--value", unit).strip()


def _wait_printed(name, line):
    """The journal may lag behind."""
    wait_until(lambda: line in _printed(name), lambda: f"{line} in {_printed(name)}")


def _of_the_manager(name):
    """The workers of which the manager has logged something, as the journal has it for the unit of the disk."""
    lines = output("journalctl", "--no-pager", "-o", "json", "-u", _unit(name)).splitlines()
    entries = [entry for entry in map(json.loads, lines) if entry.get("_SYSTEMD_UNIT") == "ublkd.service"]
    assert {entry["DEVICE"] for entry in entries} <= {name}
    return {entry.get("WORKER") for entry in entries}


def _reason(api, name):
    return condition_of(api.get(name))["reason"]


def _mount_unit(point, *options):
    """What systemd makes of a line in fstab: a unit for the mount. Return its name."""
    name = output("systemd-escape", "--path", "--suffix=mount", str(point)).strip()
    (_FSTAB / name).write_text("\n".join(
        ["[Unit]", *options, "[Mount]", "What=/dev/ublk/by-name/data", f"Where={point}", "Type=ext4", ""]), encoding="utf-8")
    run("systemctl", "daemon-reload")
    return name


def test_a_unit_follows_its_disk(service, file_of):
    api = service
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    _wait_state("data", "active")
    worker = api.get("data")["status"]["worker"]["pid"]
    os.kill(worker, signal.SIGKILL)  # a recovery does not fail the unit
    api.wait_other_worker("data", worker)
    assert units.state(_unit("data")) == "active"
    after = api.get("data")["status"]["worker"]["pid"]
    _wait_status("data", f"served by worker {after} in {_group(after)}")
    wait_until(lambda: str(worker) in _of_the_manager("data"), "what the manager logs of the worker that died")
    disk.write(0, block("a"))
    assert units.state(_unit("data")) == "active"
    api.delete("data")
    _wait_state("data", "inactive")
    assert not pathlib.Path("/run/ublkd/live/data").exists()


def _wait_status(name, text):
    """What systemd shows in the status of the unit, once it is active."""
    _wait_state(name, "active")
    shown = ("systemctl", "show", "-p", "StatusText", "--value", _unit(name))
    wait_until(lambda: output(*shown).strip() == text, lambda: f"{text!r}, but {output(*shown)!r}")
    assert f'Status: "{text}"' in output("systemctl", "status", "--no-pager", "--full", _unit(name))


def _group(worker):
    return f"/ublkd.slice/ublkd-workers.service/worker-{worker}"


def test_the_status_of_a_unit_has_the_worker(service, file_of):
    """And its control group, which systemd lists; also of the next worker, and not while there is none."""
    api = service
    api.create(loop_spec("data", file_of(), recovery={"trigger": "manual"}))
    first = api.get("data")["status"]["worker"]["pid"]
    _wait_status("data", f"served by worker {first} in {_group(first)}")
    assert re.search(rf"\b{first} .*ublkd-worker", output("systemd-cgls", "--no-pager", "--full", _group(first)))
    api.ask("POST", "/devices/data/restart?wait=ready", 200)
    second = api.get("data")["status"]["worker"]["pid"]
    assert second != first
    _wait_status("data", f"served by worker {second} in {_group(second)}")
    os.kill(second, signal.SIGKILL)
    _wait_state("data", "failed")
    api.ask("POST", "/devices/data/recover?wait=ready", 200)
    third = api.get("data")["status"]["worker"]["pid"]
    _wait_status("data", f"served by worker {third} in {_group(third)}")
    api.delete("data")


def test_what_systemd_shows_of_a_disk(service, file_of):
    """Its unit below the target, what its link wants, what watches it, and its worker in the unit of all workers."""
    api = service
    api.create(loop_spec("data", file_of()))
    _wait_state("data", "active")
    worker = api.get("data")["status"]["worker"]["pid"]
    groups.own_group(worker)
    assert {_unit("data"), "ublk-disk@data.path"} <= set(output("systemctl", "list-dependencies", "--plain", "ublkd.target").split())
    of_link = output("systemctl", "list-dependencies", "--plain", "dev-ublk-by\\x2dname-data.device").split()
    assert "ublk-reason@data.service" in of_link
    shown = output("systemctl", "status", "--no-pager", "--full", _unit("data"))
    assert f"{output('systemctl', 'show', '-p', 'MainPID', '--value', _unit('data')).strip()} " in shown and "ublkd-follow" in shown
    assert "ublkd-worker" not in output("systemd-cgls", "--no-pager", "--unit", _unit("data"))
    workers = output("systemd-cgls", "--no-pager", "--full", "--unit", "ublkd-workers.service")
    assert re.search(rf"worker-{worker}\b.*\n.*[^\d]{worker} .*ublkd-worker", workers), workers
    assert f"worker-{worker}" in output("systemctl", "status", "--no-pager", "--full", "ublkd-workers.service")
    api.delete("data")


def _of_unit(what, unit):
    return shlex.split(output("systemctl", "show", "--property", what, "--value", unit))


def test_the_mounts_below_a_disk_stay_until_it_is_taken_down(service, file_of, directory):
    """The unit of the disk is ordered after them, and gives them up when it stops."""
    api, point, mounts = service, directory / "a 50% store", "ublk-disk-mounts@data.service"
    point.mkdir()
    run("mount", "-t", "tmpfs", "tmpfs", point)
    try:
        mount = output("systemd-escape", "--path", "--suffix=mount", str(point)).strip()
        disk = Disk(api.create(loop_spec("data", file_of(where=point)))["status"]["id"])
        _wait_state("data", "active")
        assert mounts in _of_unit("After", _unit("data"))
        assert mount in _of_unit("After", mounts)
        run("systemctl", "daemon-reload")  # systemd reads its unit again from the file that it wrote
        assert mount in _of_unit("After", mounts)
        assert _unit("data") in _of_unit("Before", mounts)
        assert run("systemctl", "stop", mount, check=False).returncode != 0
        disk.write(0, block("a"))
        assert units.state(_unit("data")) == "active"
        run("systemctl", "restart", _unit("data"))
        wait_until(lambda: mount in _of_unit("After", mounts), "the mounts of the next start")
        api.delete("data")
        _wait_state("data", "inactive")
        wait_until(lambda: units.state(mounts) == "inactive", "the mounts are given up")
        api.create(null_spec("data"))
        _wait_state("data", "active")
        assert units.state(mounts) == "inactive"
        api.delete("data")
    finally:
        run("umount", point)


@pytest.mark.variant
def test_a_mount_with_a_long_path_and_a_mounted_file_are_below_a_disk(service, file_of, directory):
    """systemd has a hash in the place of a name with more than 255 characters."""
    api, mounts = service, "ublk-disk-mounts@data.service"
    point = directory / ("long-" * 30) / ("name-" * 30)
    point.mkdir(parents=True)
    run("mount", "-t", "tmpfs", "tmpfs", point)
    try:
        path = file_of(where=point)
        run("mount", "--bind", path, path)
        names = [output("systemctl", "show", "-p", "Id", "--value", "--", place).strip() for place in (point, path)]
        assert all(name.endswith(".mount") and len(name) <= 255 for name in names)
        api.create(loop_spec("data", path))
        _wait_state("data", "active")
        assert set(names) <= set(_of_unit("After", mounts))
        api.delete("data")
        _wait_state("data", "inactive")
    finally:
        run("umount", path, check=False)
        run("umount", point)


@contextlib.contextmanager
def _systemd_stopped():
    """As a debugger stops it, for a signal cannot."""
    seize, interrupt, detach = 0x4206, 0x4207, 17  # linux/ptrace.h
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes, ptrace.restype = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p), ctypes.c_long
    assert ptrace(seize, 1, None, None) == 0 and ptrace(interrupt, 1, None, None) == 0, os.strerror(ctypes.get_errno())
    os.waitpid(1, 0)
    try:
        yield
    finally:
        assert ptrace(detach, 1, None, None) == 0, os.strerror(ctypes.get_errno())


def test_a_disk_that_is_made_while_its_name_goes(service, directory):
    """systemd takes the next disk in before it has stopped what watched for the last one, and then learns that it is Live."""
    api, mark, kept = service, pathlib.Path("/run/ublkd/live/data"), directory / "mark"
    api.create(null_spec("data"))
    _wait_state("data", "active")
    run("udevadm", "control", "--stop-exec-queue")
    try:
        api.delete("data")
        _wait_state("data", "inactive")
        with _systemd_stopped():
            api.create(null_spec("data"))
            shutil.move(mark, kept)
            run("udevadm", "control", "--start-exec-queue")
            run("udevadm", "settle")
    finally:
        run("udevadm", "control", "--start-exec-queue")
    wait_until(lambda: units.state("dev-ublk-by\\x2dname-data.device") == "active", "the device of the disk")
    assert not output("systemctl", "list-jobs", "--no-legend").strip()
    shutil.move(kept, mark)
    _wait_state("data", "active")
    api.delete("data")


def test_a_change_of_a_disk_starts_no_process(service):
    """udev announces each close after a write, and the owner of a disk may write as often as he likes."""
    disk = Disk(service.create(null_spec("data"))["status"]["id"])
    _wait_state("data", "active")
    watch, started = "ublk-watch@data.service", "ExecMainStartTimestampMonotonic"
    wait_until(lambda: _property(watch, "ExecMainExitTimestampMonotonic") != "0", "the end of what the new disk has started")
    before = _property(watch, started)
    for _ in range(3):
        run("udevadm", "trigger", "--settle", "--action=change", f"/sys/block/{pathlib.Path(disk.path).name}")
    service.create(null_spec("other"))
    _wait_state("other", "active")  # systemd has taken in what came before
    assert _property(watch, started) in (before, "0")  # systemd unloads what the disk no longer wants
    service.delete("data")
    service.delete("other")


def test_a_disk_that_fails(service, file_of):
    """Failed with the sentence of the status, here of a manual device that lost its worker; then active again."""
    api = service
    api.create(loop_spec("data", file_of(), recovery={"trigger": "manual"}))
    _wait_state("data", "active")
    os.kill(api.get("data")["status"]["worker"]["pid"], signal.SIGKILL)
    _wait_state("data", "failed")
    line = f"data: {condition_of(api.get('data'))['message']}"
    _wait_printed("data", line)
    wait_until(lambda: line in console.lines_of("ublkd-follow"), "the reason on the console")
    api.ask("POST", "/devices/data/recover?wait=ready", 200)
    _wait_state("data", "active")
    api.delete("data")
    _wait_state("data", "inactive")


def _takes_down(line):
    """Whether a line has how many disks stay in service, one, and what takes it down."""
    return re.findall(r"\d+", line) == ["1"] and "'systemctl start ublkd'" in line and "'systemctl stop ublkd.target'" in line


def test_a_stop_of_the_manager_stops_no_disk(service, file_of):
    api = service
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    _wait_state("data", "active")
    invocation = output("systemctl", "show", "-p", "InvocationID", "--value", "ublkd.service").strip()
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    disk.write(0, block("a"))
    assert units.state(_unit("data")) == "active"
    assert units.state("ublkd.service") == "inactive"  # the unit of the disk starts no manager
    assert _takes_down(output("systemctl", "show", "-p", "StatusText", "--value", "ublkd.service"))
    log = ("journalctl", "--no-pager", "-o", "cat", "_SYSTEMD_UNIT=ublkd.service", f"_SYSTEMD_INVOCATION_ID={invocation}")
    wait_until(lambda: any(map(_takes_down, output(*log).splitlines())), lambda: output(*log))
    run("systemctl", "start", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    assert units.state(_unit("data")) == "active"
    api.delete("data")


def test_nothing_waits_for_the_link_of_a_tenant(service, rules):
    """Its device wants the reason why it is not there, as each one below /dev/ublk does, and it is there."""
    rules(_TENANTS)
    tenant = User(types.SimpleNamespace(api=service, runtime=pathlib.Path("/run/ublkd")), _TENANT)
    name = tenant.create(null_spec(f"u{_TENANT}-data"))["name"]
    reason = f"ublk-reason@ublkb{service.get(name)['status']['id']}.service"
    wait_until(lambda: _property(reason, "ConditionTimestampMonotonic") != "0", "the start of the unit")
    assert _property(reason, "ConditionResult") == "no" and units.state(reason) == "inactive"
    service.delete(name)


def test_stop_and_start_of_a_unit(service, file_of):
    api = service
    api.create(loop_spec("data", file_of()))
    _wait_state("data", "active")
    run("systemctl", "stop", _unit("data"))
    assert _reason(api, "data") == "Stopped" and api.get("data")["spec"].get("enabled", True)
    assert not pathlib.Path("/dev/ublk/by-name/data").exists()
    run("systemctl", "restart", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    assert _reason(api, "data") == "Stopped"
    run("systemctl", "start", _unit("data"))
    assert api.phase("data") == "Live" and units.state(_unit("data")) == "active"
    api.delete("data")


def test_a_start_of_an_unknown_device_fails(service):  # pylint: disable=unused-argument
    assert run("systemctl", "start", _unit("unknown"), check=False).returncode != 0
    assert units.state(_unit("unknown")) == "failed"


def test_a_stop_waits_until_the_disk_is_unused(mounted):
    """The mount has no order against the disk, as a plain line of fstab."""
    api, _, point = mounted
    unit = _mount_unit(point)
    run("systemctl", "start", unit)
    _wait_state("data", "active")
    run("systemctl", "stop", "--no-block", _unit("data"))
    wait_until(lambda: "stop-sigterm" in output("systemctl", "show", "-p", "SubState", _unit("data")), "the stop that waits")
    (point / "file").write_text("still here", encoding="utf-8")
    assert api.phase("data") == "Live"
    run("systemctl", "stop", unit)
    _wait_state("data", "inactive")
    assert _reason(api, "data") == "Stopped"
    api.delete("data")


@pytest.mark.variant
def test_the_target_takes_disks_down_in_order(mounted, rules):
    """First the mount that requires its disk, then the disk, then that of a tenant, which has no unit, then the manager."""
    api, _, point = mounted
    unit = _mount_unit(point, f"Requires={_unit('data')}", f"After={_unit('data')}")
    run("systemctl", "start", unit)
    rules(_TENANTS)
    tenant = User(types.SimpleNamespace(api=api, runtime=pathlib.Path("/run/ublkd")), _TENANT)
    name = tenant.create(null_spec(f"u{_TENANT}-data"))["name"]
    run("systemctl", "stop", "ublkd.target")
    for stopped in (unit, _unit("data"), "ublkd.service", "ublkd.socket"):
        assert units.state(stopped) == "inactive", stopped
    assert not list(pathlib.Path("/dev").glob("ublkb*"))
    run("systemctl", "start", unit)  # brings all of it back
    assert (point / "lost+found").is_dir() and api.phase("data") == "Live"
    assert _reason(api, name) == "Stopped"
    api.delete(name)
    run("systemctl", "stop", unit)
    api.delete("data")


@pytest.mark.variant
def test_a_mount_that_only_waits_for_the_link(service, file_of, directory):
    """As a plain line of fstab: nothing has started the unit of the disk, and the reason is on the console."""
    api, path, point = service, file_of().with_suffix(".missing"), directory / "mnt"
    point.mkdir()
    api.create(loop_spec("data", path, size="8MiB"), wait="")
    unit = _mount_unit(point)
    run("systemctl", "start", "--no-block", unit)
    try:
        cause = api.wait_phase("data", "Backoff")["status"]["cause"]
        assert str(path) in cause
        wait_until(lambda: console.lines_of("ublkd-reason") == [f"data: {cause}"], lambda: console.lines_of("ublkd-reason"))
        assert units.state(_unit("data")) == "inactive" and units.state(unit) != "active"
    finally:
        run("systemctl", "stop", unit)
    api.delete("data")


def test_a_mount_without_its_backing_file(service, file_of, directory):
    """The mount fails with its disk, and the reason of the device, alone, is on the console."""
    api, path, point = service, file_of(), directory / "mnt"
    point.mkdir()
    api.create(loop_spec("data", path.with_suffix(".missing"), size="8MiB"), wait="")
    drop_in = units.UNITS / "ublk-disk@.service.d" / "fast.conf"
    drop_in.parent.mkdir(exist_ok=True)
    drop_in.write_text(units.impatient("2s"), encoding="utf-8")
    try:
        unit = _mount_unit(point, f"Requires={_unit('data')}", f"After={_unit('data')}")
        assert run("systemctl", "start", unit, check=False).returncode != 0
        assert units.state(_unit("data")) == "failed"
        cause = api.get("data")["status"]["cause"]
        assert str(path.with_suffix(".missing")) in cause
        _wait_printed("data", f"data: {cause}")
        wait_until(lambda: console.lines_of("ublkd-start")[-1:] == [f"data: {cause}"], lambda: console.lines_of("ublkd-start"))
        assert len([line for line in console.lines_of("ublkd-start") if str(path.with_suffix(".missing")) in line]) == 1
    finally:
        drop_in.unlink()
        run("systemctl", "daemon-reload")
    api.delete("data")
