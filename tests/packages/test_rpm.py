# SPDX-License-Identifier: MIT
"""The RPM package: what its scriptlets do. rpm installs it into a database of its own, in which no package is there that it
depends on; the files and the systemd are those of Debian."""

import os
import shutil

import machine
from harness.disk import Disk, block
from harness.shell import output, run

_RPM = os.environ["UBLKD_TEST_RPM"]
_GROUPS = ("ublk", "ublk-admin")


def _rpm(directory, *arguments, check=True):
    done = run("rpm", "--dbpath", directory / "rpm", *arguments, check=check, timeout=900)
    print(f"rpm {' '.join(map(str, arguments))}: {done.returncode}\n{done.stdout}")
    return done


def _is_enabled():
    return [unit for unit in ("ublkd.service", "ublkd.socket") if output("systemctl", "is-enabled", unit) == "enabled"]


def test_an_rpm_is_installed_used_installed_again_and_removed(directory, bare):  # pylint: disable=unused-argument
    """A removal is refused while there is a disk, and keeps the devices."""
    _rpm(directory, "--install", "--nodeps", _RPM)
    api = machine.api()
    assert machine.is_serving() and len(_is_enabled()) == 2
    assert all(run("getent", "group", group, check=False).returncode == 0 for group in _GROUPS)
    disk = Disk(machine.create("data", directory / "data.img")["status"]["id"])
    disk.write(0, block("a"))
    manager, worker = machine.manager(), api.get("data")["status"]["worker"]["pid"]

    refused = _rpm(directory, "--erase", "ublkd", check=False)
    assert refused.returncode != 0 and "data" in refused.stdout
    assert machine.is_serving() and machine.manager() == manager and len(_is_enabled()) == 2
    assert _rpm(directory, "--query", "ublkd").returncode == 0

    _rpm(directory, "--upgrade", "--replacepkgs", "--nodeps", _RPM)
    api = machine.api()
    assert machine.is_serving() and len(_is_enabled()) == 2
    assert api.get("data")["status"]["worker"]["pid"] == worker and disk.read(0, 4096) == block("a")

    machine.ctl("delete", "data")
    files = output("rpm", "--dbpath", directory / "rpm", "--query", "--list", "ublkd").splitlines()
    _rpm(directory, "--erase", "ublkd")
    assert machine.processes() == [] and machine.loaded_units() == [] and machine.unit_files() == ""
    assert [path for path in files if path.startswith("/usr/") and os.path.isfile(path)] == []
    assert (machine.STATE / "ublkd.db").exists(), "the devices stay for the next installation"
    for path in (machine.STATE, machine.RUNTIME):
        shutil.rmtree(path, ignore_errors=True)
    for group in _GROUPS:
        run("groupdel", group)
