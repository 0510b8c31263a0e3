# SPDX-License-Identifier: MIT
"""The Debian package through its life, under systemd and with disks in use."""

import contextlib
import json
import os
import pathlib
import re
import shutil

import machine
import pytest
from harness.api import null_spec
from harness.daemon import Daemon
from harness.disk import Disk, block
from harness.shell import output, run
from harness.wait import wait_until
from load import mounted_under_load

_SMOKE = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "debian" / "tests" / "smoke"


def _pids(api):
    return {name: api.get(name)["status"]["worker"]["pid"] for name in api.names()}


def _named(text):
    """The disks that the refusal of a removal names, sorted."""
    return sorted(re.search(r"it serves disks \((.*?)\);", text).group(1).split(", "))


def test_an_installation_serves(directory, kernel_log, installed):
    assert machine.is_serving()
    assert machine.group_of_readers().startswith("ublk:")
    assert machine.group_of_administrators().endswith(":"), "it has no members"
    rule = pathlib.Path("/lib/udev/rules.d/60-ublkd.rules")
    assert rule in machine.files_of_package() and rule.exists()
    assert output("dpkg", "--verify", "ublkd") == ""
    host = json.loads(machine.ctl("host", "-o", "json"))
    assert host["version"] == machine.version_of(machine.THIS) and host["problems"] == []
    assert [unit for unit in ("ublkd.service", "ublkd.socket")
            if output("systemctl", "is-enabled", unit) != "enabled"] == []
    with mounted_under_load(directory, kernel_log):
        (worker,) = _pids(installed).values()
        assert os.readlink(f"/proc/{worker}/exe") == "/usr/libexec/ublkd/ublkd-worker"


def test_the_documents_come_without_their_sources(installed):
    documents = [path for path in machine.files_of_package() if path.is_relative_to("/usr/share/doc/ublkd")]
    names = [path.name.removesuffix(".gz") for path in documents]
    assert "api.md" in names and "reasons.md" in names
    assert [name for name in names if name.endswith((".in", ".py", ".c", "CMakeLists.txt"))] == []


def test_the_smoke_test_of_the_package(installed):
    run("sh", _SMOKE)
    assert installed.names() == []


@pytest.mark.parametrize("action", ["--remove", "--purge"])
def test_a_removal_is_refused_while_there_are_disks(directory, kernel_log, installed, action):
    """The disks, their workers and the manager go on."""
    api = installed
    machine.create("spare-disk", directory / "spare.img")
    with mounted_under_load(directory, kernel_log):
        manager, workers = machine.manager(), _pids(api)
        refused = machine.dpkg(action, "ublkd", check=False)
        assert refused.returncode != 0
        assert "data" in refused.stdout and "spare-disk" in refused.stdout
        assert machine.status_of_package() == "installed" and machine.is_serving()
        assert machine.manager() == manager and _pids(api) == workers
        assert all(path.exists() for path in machine.files_of_package())


def test_a_removal_is_refused_while_a_dead_disk_waits(directory, installed):
    """Neither a manager nor a worker lives, nor does the refusal start one: an administrator has stopped them. The disk of a
    tenant has no name for it."""
    api = installed
    disk = Disk(machine.create("data", directory / "data.img")["status"]["id"])
    disk.write(0, block("a"))
    number = machine.create_for_tenant(null_spec(f"u{machine.TENANT}-data"))["status"]["id"]
    shown = f"/dev/ublkb{number} of user {machine.TENANT}"
    refused = machine.dpkg("--remove", "ublkd", check=False)
    assert refused.returncode != 0 and _named(refused.stdout) == [shown, "data"], "each once"
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    machine.kill_all()
    assert disk.exists()
    refused = machine.dpkg("--remove", "ublkd", check=False)
    assert refused.returncode != 0 and _named(refused.stdout) == [shown, "data"]
    assert "systemctl start ublkd.socket ublkd.service" in refused.stdout
    assert machine.manager() == 0 and not machine.is_serving()
    run("systemctl", "start", "ublkd.socket", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    api.wait_phase("data", "Live")
    assert machine.is_serving()
    assert disk.read(0, 4096) == block("a")
    machine.end_tenant(f"u{machine.TENANT}-data")


def test_a_removal_finds_disks_in_another_runtime_directory(directory, installed):
    """The one that the configuration names; no process lives that would show the disk."""
    api, configuration = installed, pathlib.Path("/etc/ublkd/ublkd.conf")
    configuration.parent.mkdir(exist_ok=True)
    configuration.write_text(f"[Manager]\nRuntimeDirectory={directory}/run\n", encoding="utf-8")
    run("systemctl", "restart", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    disk = Disk(machine.create("data", directory / "data.img")["status"]["id"])
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    machine.kill_all()
    refused = machine.dpkg("--remove", "ublkd", check=False)
    assert refused.returncode != 0 and machine.manager() == 0
    run("systemctl", "start", "ublkd.socket", "ublkd.service")
    wait_until(api.is_ready, "ublkd ready")
    api.wait_phase("data", "Live")
    disk.write(0, block("a"))
    api.delete("data", drop_last_copy=True)
    configuration.unlink()
    run("systemctl", "restart", "ublkd.service")


def test_a_removal_is_refused_while_a_manager_runs_by_hand(directory, installed):
    """It has no disk. The service of the package goes on."""
    api, place = installed, directory / "by-hand"
    place.mkdir()
    manager = Daemon(place, program="/usr/sbin/ublkd", worker="/usr/libexec/ublkd/ublkd-worker").start()
    try:
        refused = machine.dpkg("--remove", "ublkd", check=False)
        assert refused.returncode != 0 and str(manager.pid) in refused.stdout
        assert manager.running and manager.api.is_ready()
        wait_until(api.is_ready, "ublkd ready")
        assert machine.is_serving()
    finally:
        manager.stop()


@contextlib.contextmanager
def _chroot(directory):
    """A root of its own with the package, in which what runs on the machine can be seen."""
    root = directory / "root"
    for name in ("root", "upper", "work"):
        (directory / name).mkdir()
    layers = ",".join(f"{what}={path}" for what, path in (
        ("lowerdir", "/"), ("upperdir", directory / "upper"), ("workdir", directory / "work")))
    run("mount", "-t", "overlay", "-o", layers, "overlay", root)
    # In an overlay that lies on another one, Linux 6.12 has answered ESTALE, and the group was kept.
    for name in ("etc", "var/lib/dpkg"):
        run("mount", "-t", "tmpfs", "tmpfs", root / name)
        run("cp", "-a", f"/{name}/.", root / name)
    for name in ("proc", "sys", "dev", "run"):
        run("mount", "--rbind", "--make-rslave", f"/{name}", root / name)
    try:
        yield root
    finally:
        run("umount", "--recursive", root)


def test_a_purge_in_a_chroot_leaves_the_machine_alone(directory, installed):
    """It removes what is in the chroot."""
    api = installed
    disk = Disk(machine.create("data", directory / "data.img")["status"]["id"])
    manager, workers = machine.manager(), _pids(api)
    with _chroot(directory) as root:
        assert (root / "var/lib/ublkd/ublkd.db").exists()
        print(output("chroot", root, "dpkg", "--purge", "ublkd", timeout=300))
        assert not (root / "var/lib/ublkd").exists() and not (root / "usr/sbin/ublkd").exists()
        assert "ublk" not in (root / "etc/group").read_text(encoding="utf-8")
        assert machine.group_of_readers() != ""
        assert machine.is_serving() and machine.manager() == manager and _pids(api) == workers
        disk.write(0, block("a"))
        run("systemctl", "restart", "ublkd.service")
        wait_until(api.is_ready, "ublkd ready")
        assert _pids(api) == workers


def test_a_removal_keeps_devices_for_the_next_installation(directory, installed):
    api = installed
    device = machine.create("data", directory / "data.img")
    disk = Disk(device["status"]["id"])
    disk.write(0, block("a"))
    machine.ctl("disable", "data")
    files = machine.files_of_package()
    machine.dpkg("--remove", "ublkd")
    assert machine.status_of_package() == "config-files"
    assert machine.processes() == []
    assert machine.loaded_units() == [] and machine.unit_files() == ""
    assert [path for path in files if path.exists()] == [machine.CONFFILE]
    assert not machine.RUNTIME.exists() and not pathlib.Path("/dev/ublk").exists()
    assert (machine.STATE / "ublkd.db").exists()
    machine.dpkg("--install", machine.THIS)
    wait_until(api.is_ready, "ublkd ready")
    assert machine.is_serving()
    assert api.get("data")["uid"] == device["uid"] and api.phase("data") == "Disabled"
    machine.ctl("enable", "data")
    assert api.get("data")["status"]["id"] == disk.number
    assert disk.read(0, 4096) == block("a")


def test_a_purge_leaves_nothing(directory, bare):
    """Neither straight from an installation nor after a removal; stores stay."""
    before = machine.traces()
    for steps in (["--purge"], ["--remove", "--purge"]):
        machine.dpkg("--install", machine.THIS)
        machine.api()
        run("systemctl", "enable", "--now", "ublkd-volumes.service")
        store = directory / "data.img"
        Disk(machine.create("data", store)["status"]["id"]).write(0, block("a"))
        machine.ctl("disable", "data")
        assert machine.traces() != before
        files = machine.files_of_package()
        for step in steps:
            machine.dpkg(step, "ublkd")
        assert not machine.has_package()
        assert machine.processes() == [] and run("pgrep", "ublkd", check=False).stdout == ""
        assert machine.loaded_units() == [] and machine.unit_files() == ""
        assert machine.group_of_readers() == machine.group_of_administrators() == ""
        assert [path for path in files if path.exists() or path.is_symlink()] == []
        assert machine.traces() == before
        assert store.read_bytes()[:4096] == block("a")


def test_a_purge_keeps_files_of_the_administrator(installed):
    """In the state directory and in that of the configuration."""
    assert installed.names() == []
    files = [machine.STATE / "notes", pathlib.Path("/etc/ublkd/ublkd.conf")]
    for path in files:
        path.parent.mkdir(exist_ok=True)
        path.write_text("# mine\n", encoding="utf-8")
    machine.dpkg("--purge", "ublkd")
    assert not machine.has_package()
    for path in files:
        assert os.listdir(path.parent) == [path.name]
        shutil.rmtree(path.parent)


def test_a_purge_keeps_what_a_dead_ublkd_from_elsewhere_needs(directory, installed):
    """It has the same directories, and no process; its disk waits for the next one."""
    copies = directory / "bin"
    copies.mkdir()
    for program in ("/usr/sbin/ublkd", "/usr/libexec/ublkd/ublkd-helper", "/usr/libexec/ublkd/ublkd-worker"):
        shutil.copy(program, copies)
    assert installed.names() == []
    machine.dpkg("--remove", "ublkd")
    place = directory / "elsewhere"
    place.mkdir()
    other = Daemon(
        place, program=str(copies / "ublkd"), worker=str(copies / "ublkd-worker"), state=machine.STATE,
        runtime=machine.RUNTIME,
    ).start()
    with open(directory / "data.img", "wb") as file:
        file.truncate(64 << 20)
    device = other.api.create({"name": "data", "target": {"type": "loop", "path": f"{directory}/data.img"}})
    disk = Disk(device["status"]["id"])
    disk.write(0, block("a"))
    other.kill()
    machine.kill_all()
    machine.dpkg("--purge", "ublkd")
    other.start()
    other.api.wait_phase("data", "Live")
    assert disk.read(0, 4096) == block("a")
    other.api.delete("data", drop_last_copy=True)
    other.stop()
    for path in (machine.STATE, machine.RUNTIME):
        shutil.rmtree(path)
    run("groupdel", "ublk")
