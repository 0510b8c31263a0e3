# SPDX-License-Identifier: MIT
"""From the version before this one to this one and back, in their real builds, with 16 disks under load."""

from contextlib import ExitStack

import machine
from harness.api import loop_spec
from harness.disk import Disk
from load import all_under_load, mounted_under_load, wait_all_progress

_DISKS = 16


def _create_disks(api, directory):
    """All but the one that is mounted."""
    disks = []
    for number in range(_DISKS - 1):
        path = directory / f"{number}.img"
        with open(path, "wb") as file:
            file.truncate(64 << 20)
        disks.append(Disk(api.create(loop_spec(f"disk-{number}", path))["status"]["id"]))
    return disks


def _records(api):
    """What the database keeps of each device."""
    return {
        name: (device["uid"], device["generation"], device["spec"], device["status"]["id"])
        for name, device in ((name, api.get(name)) for name in api.names())
    }


def _workers(api):
    """{name: (pid, version)}"""
    workers = {name: api.get(name)["status"]["worker"] for name in api.names()}
    return {name: (worker["pid"], worker["version"]) for name, worker in workers.items()}


def _writes(api):
    """What each region has counted: it starts at 0 where a region is not adopted."""
    return {name: api.ask("GET", f"/devices/{name}/stats", 200)["total"]["ops"]["write"]["requests"] for name in api.names()}


def _assert_not_less(after, before):
    assert [name for name in before if not 0 < before[name] <= after[name]] == [], f"{after} after {before}"


def _install_under_load(api, package, disks):
    """The manager is replaced and adopts every worker; then each worker is replaced, one by one."""
    version, manager = machine.version_of(package), machine.manager()
    records, workers, writes = _records(api), _workers(api), _writes(api)
    assert len(workers) == _DISKS and {old for _, old in workers.values()} != {version}
    machine.dpkg("--install", package)
    machine.api()
    assert machine.manager() not in (0, manager) and machine.is_serving()
    assert api.ask("GET", "/host", 200)["version"] == version
    assert _workers(api) == workers and _records(api) == records
    wait_all_progress(disks)
    for name in workers:
        machine.ctl("restart", name)
    replaced = _workers(api)
    assert {new for _, new in replaced.values()} == {version}
    assert not {pid for pid, _ in replaced.values()} & {pid for pid, _ in workers.values()}
    assert _records(api) == records
    _assert_not_less(_writes(api), writes)
    wait_all_progress(disks)


def test_an_upgrade_and_a_downgrade_under_load(directory, kernel_log):
    """No request fails, and each version adopts what the other one has created and serves."""
    machine.dpkg("--install", machine.OLDER)
    api = machine.api()
    disks = _create_disks(api, directory)
    with ExitStack() as load:
        mounted = load.enter_context(mounted_under_load(directory, kernel_log))
        load.enter_context(all_under_load(directory, disks))
        for package in (machine.THIS, machine.OLDER):
            _install_under_load(api, package, [*disks, mounted])
    assert {api.phase(name) for name in api.names()} == {"Live"}
