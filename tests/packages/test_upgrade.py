# SPDX-License-Identifier: MIT
"""From the version before this one to this one and back, in their real builds, with 16 disks under load."""

import json
import pathlib
import shutil
from contextlib import ExitStack, contextmanager

import machine
import pytest
from harness.api import loop_spec
from harness.disk import Disk
from harness.shell import output, run
from harness.wait import wait_until
from load import all_under_load, mounted_under_load, wait_all_progress

_DISKS = 16

pytestmark = pytest.mark.skipif(
    not machine.OLDER, reason="there is no package of the version before this one (its commit is not in this clone)")


@pytest.fixture(name="configuration")
def fixture_configuration():
    """A drop-in of the administrator, which does not exist yet."""
    directory = pathlib.Path("/etc/ublkd/ublkd.conf.d")
    directory.mkdir(parents=True)
    yield directory / "50-test.conf"
    shutil.rmtree(directory.parent, ignore_errors=True)


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


def _need_restart(api):
    """The devices whose workers are of another version; a ublkd from before this field shows none."""
    return sorted(name for name in api.names() if api.get(name)["status"].get("needsRestart"))


def _install(api, package, disks):
    """The manager is replaced, serves the same devices, and keeps their workers; return these."""
    version, manager, records, workers = machine.version_of(package), machine.manager(), _records(api), _workers(api)
    assert {old for _, old in workers.values()} != {version}
    machine.dpkg("--install", package)
    machine.api()
    assert machine.manager() not in (0, manager) and machine.is_serving()
    assert api.ask("GET", "/host", 200)["version"] == version
    assert _records(api) == records and _workers(api) == workers
    wait_all_progress(disks)
    return workers


def _assert_replaced(api, package, before):
    """Each worker is another process than before, of the version of the package."""
    workers = _workers(api)
    assert len(workers) == _DISKS and {version for _, version in workers.values()} == {machine.version_of(package)}
    assert not {pid for pid, _ in workers.values()} & {pid for pid, _ in before.values()}
    assert {api.phase(name) for name in api.names()} == {"Live"} and _need_restart(api) == []


@contextmanager
def _older_under_load(directory, kernel_log):
    """The version before this one with its disks under load: its API, and the disks."""
    machine.dpkg("--install", machine.OLDER)
    api = machine.api()
    disks = _create_disks(api, directory)
    with ExitStack() as load:
        mounted = load.enter_context(mounted_under_load(directory, kernel_log))
        load.enter_context(all_under_load(directory, disks))
        yield api, [*disks, mounted]
    assert {api.phase(name) for name in api.names()} == {"Live"}


def _changes(api):
    """[name] in the order in which ublkd began to replace workers. Fails if two were being replaced at a time."""
    events = [json.loads(line) for line in machine.ctl("events", "-o", "json").splitlines()]
    begun, open_ = [], None
    for event in sorted(events, key=lambda event: event["revision"]):
        if event["reason"] == "WorkerUpgrade":
            assert open_ is None, f"{event['device']['name']} while {open_} was being replaced"
            open_ = event["device"]["name"]
            begun.append(open_)
        elif event["reason"] == "Live" and event["device"]["name"] == open_:
            open_ = None
    return begun


def _replaces_workers():
    """Whether the version that is installed has the setting for that."""
    return "--upgrade-workers" in output("/usr/sbin/ublkd", "--help")


def _replace_all(api, configuration):
    """Have ublkd replace the workers of another version, one after the other."""
    configuration.write_text("[Manager]\nUpgradeWorkers=replace\n", encoding="utf-8")
    run("systemctl", "reload", "ublkd.service")
    wait_until(lambda: not _need_restart(api), lambda: f"workers replaced, all but {_need_restart(api)}", timeout=600)


def test_an_upgrade_and_a_downgrade_under_load(directory, kernel_log, bare, configuration):
    """No request fails, and each version adopts what the other one has created and serves. Workers are kept; then ublkd
    replaces one after the other when it is reloaded; after a downgrade to a version that cannot, the administrator does."""
    with _older_under_load(directory, kernel_log) as (api, disks):
        wait_all_progress(disks)
        writes = _writes(api)
        workers = _install(api, machine.THIS, disks)
        assert _need_restart(api) == sorted(workers)
        assert [line.split()[-1] for line in machine.ctl("list").splitlines()[1:]] == ["NeedsRestart"] * _DISKS
        _replace_all(api, configuration)
        _assert_replaced(api, machine.THIS, workers)
        assert _changes(api) == sorted(workers)
        assert api.ask("GET", "/host", 200)["problems"] == []
        wait_all_progress(disks)

        configuration.write_text("[Manager]\nUpgradeWorkers=keep\n", encoding="utf-8")
        workers = _install(api, machine.OLDER, disks)
        if _replaces_workers():
            changed = len(_changes(api))
            _replace_all(api, configuration)
            assert _changes(api)[changed:] == sorted(workers)
        else:
            for name in workers:
                machine.ctl("restart", name)
        _assert_replaced(api, machine.OLDER, workers)
        _assert_not_less(_writes(api), writes)
        wait_all_progress(disks)
