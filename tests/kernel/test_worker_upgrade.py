# SPDX-License-Identifier: MIT
"""Workers of another version after an upgrade or downgrade of ublkd: kept and reported, or replaced one by one. The other
version is the same programs with another name in them; tests/packages has real builds of an older commit."""

import pathlib
import shutil
import signal

import pytest

from harness import programs
from harness.api import condition_of, loop_spec
from harness.daemon import Daemon
from harness.disk import Disk
from harness.fio import Disks, Fio
from harness.shell import output
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_DISKS = 3


def _version(program):
    return output(program, "--version").split()[-1]


def _other_version(directory, end):
    """ublkd and a worker of another version of the same length, which ends with `end`: (ublkd, worker, their version)."""
    version = _version(programs.ublkd())
    other = version[:-1] + end
    copies = []
    for program in map(pathlib.Path, (programs.ublkd(), programs.worker())):
        data = program.read_bytes()
        assert version.encode() + b"\0" in data and other != version, f"{program} has no version {version}"
        copy = directory / program.name
        copy.write_bytes(data.replace(version.encode() + b"\0", other.encode() + b"\0"))
        shutil.copymode(program, copy)
        assert _version(copy) == other
        copies.append(str(copy))
    (directory / "ublkd-helper").symlink_to(programs.ublkd_helper())  # it has no version of its own
    return (*copies, other)


class Versions:
    """Versions of ublkd with the same directories, of which one runs."""

    def __init__(self, directory):
        self._directory = directory
        self.this = Daemon(directory)
        self.names = {self.this: _version(programs.ublkd())}
        self.other = self.add("x")

    def add(self, end):
        """One more version."""
        place = self._directory / f"version-{end}"
        place.mkdir()
        ublkd, worker, version = _other_version(place, end)
        daemon = Daemon(self._directory, program=ublkd, worker=worker)
        self.names[daemon] = version
        return daemon

    def change(self, old, new, *options):
        """Stop one and start the other, as a package does."""
        old.stop()
        new.more_options = options
        new.start()


@pytest.fixture(name="versions")
def fixture_versions(directory):
    """Neither runs."""
    versions = Versions(directory)
    yield versions
    running = [daemon for daemon in versions.names if daemon.running]
    for daemon in running or [versions.this.start()]:
        for name in daemon.api.names():
            daemon.api.delete(name, force=True)
        daemon.stop()


def _create(api, file_of, count=_DISKS, **more):
    names = [f"disk-{number}" for number in range(count)]
    for name in names:
        api.create(loop_spec(name, file_of(name=f"{name}.img"), **more))
    return names


def _workers(api, names):
    """{name: (pid, version, needsRestart)}; without a worker the first two are None."""
    found = {name: api.get(name)["status"] for name in names}
    return {name: (worker["pid"], worker["version"], found[name]["needsRestart"])
            for name, worker in ((name, status["worker"] or {"pid": None, "version": None}) for name, status in found.items())}


def _wait_version(api, names, version):
    """Wait until each has a worker of that version; return {name: pid}."""
    def others():
        return {name: worker for name, worker in _workers(api, names).items()
                if worker[1:] != (version, False) or api.phase(name) != "Live"}

    wait_until(lambda: not others(), lambda: f"workers of {version}: {others()}", timeout=120, pause=0.1)
    return {name: worker[0] for name, worker in _workers(api, names).items()}


def _requests(daemon, names, reason):
    """[(revision, name)] of the events with that reason, oldest first."""
    return sorted((event["revision"], name) for name in names for event in daemon.events(name)
                  if event["reason"] == reason)


def test_workers_of_another_version_are_kept_and_reported(versions, file_of):
    """Over one more upgrade, until the administrator replaces them."""
    first, second, third = versions.other.start(), versions.this, versions.add("z")
    replaced, kept = _create(first.api, file_of, count=2)
    workers = _workers(first.api, (replaced, kept))
    assert {worker[1:] for worker in workers.values()} == {(versions.names[first], False)}
    for old, new in ((first, second), (second, third)):
        workers = {name: (*worker[:2], True) for name, worker in workers.items()}
        versions.change(old, new)
        assert _workers(new.api, workers) == workers
        condition = condition_of(new.api.get(kept), "NeedsRestart")
        assert condition["status"] == "True" and condition["reason"] == "OtherVersion"
        assert [line.split()[-1] for line in new.ctl("list").splitlines()[1:]] == ["NeedsRestart"] * 2
        new.api.restart(replaced)
        pid = workers[replaced][0]
        workers[replaced] = _workers(new.api, [replaced])[replaced]
        assert workers[replaced][0] != pid and workers[replaced][1:] == (versions.names[new], False)
        assert _workers(new.api, [kept])[kept] == workers[kept]


def test_workers_are_replaced_one_by_one_under_load(versions, file_of, directory):
    """Without an I/O error, both ways; never two at a time."""
    other, this = versions.other.start(), versions.this
    names = _create(other.api, file_of)
    disks = [Disk(other.api.get(name)["status"]["id"]) for name in names]
    # With pauses: ublkd needs the CPUs, too.
    load = Fio(directory, Disks(disks), depth=_DISKS, size="16M", name="load",
               more=("--file_service_type=roundrobin", "--thinktime=20ms", f"--thinktime_blocks={_DISKS}"))
    try:
        load.wait_running()
        for old, new in ((other, this), (this, other)):
            workers = _workers(old.api, names)
            versions.change(old, new, "--upgrade-workers", "replace")
            pids = _wait_version(new.api, names, versions.names[new])
            assert not set(pids.values()) & {pid for pid, _, _ in workers.values()}
            begun = _requests(new, names, "WorkerUpgrade")[-_DISKS:]
            assert [name for _, name in begun] == names
            # Each is Live again before the request for the next one.
            for (own, name), (following, _) in zip(begun, begun[1:]):
                served = _requests(new, [name], "Live")[-1][0]
                assert own < served < following, f"{name}: {served}, {begun}"
            assert new.api.ask("GET", "/host", 200)["problems"] == []
            for disk in disks:
                disk.wait_progress()
        load.finish().assert_clean()
    finally:
        load.kill()


class Replaceable:
    """A path at which the program of the workers is replaced, as by a package."""

    def __init__(self, directory):
        self.path = directory / "replaceable-worker"
        self._next = directory / "next-worker"

    def put(self, script):
        """From now on it is this shell script."""
        self._next.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        self._next.chmod(0o755)
        self._next.rename(self.path)

    def put_program(self, program):
        """From now on it is a copy of that program."""
        shutil.copy(program, self._next)
        self._next.rename(self.path)

    def remove(self):
        """From now on there is none."""
        self.path.unlink()


class Failing:
    """An upgrade of three disks by a ublkd whose workers are of no use; each reload continues it. Openers of a fourth one
    would notice a restart."""

    def __init__(self, versions, file_of, directory):
        other, self.this = versions.other.start(), versions.this
        self.names = _create(other.api, file_of, count=3)
        other.api.create(loop_spec("noticed", file_of(name="noticed.img"), recovery={"onCrash": "none"}))
        self.old = _workers(other.api, [*self.names, "noticed"])
        self.worker = Replaceable(directory)
        self.worker.put_program(programs.worker())
        self.file = directory / "root/etc/ublkd/ublkd.conf"
        self.file.parent.mkdir(parents=True)
        self.this.worker = self.worker.path
        versions.change(other, self.this, "--config-root", str(directory / "root"))
        self.file.write_text("[Manager]\nUpgradeWorkers=replace\n", encoding="utf-8")

    def disk(self, name):
        """The disk of a device."""
        return Disk(self.this.api.get(name)["status"]["id"])

    def reload(self):
        """As systemctl reload."""
        self.this.process.send_signal(signal.SIGHUP)

    def problem(self):
        """The details of UpgradeStopped."""
        return [problem["detail"] for problem in self.this.api.ask("GET", "/host", 200)["problems"]
                if problem["title"] == "UpgradeStopped"]

    def reload_and_wait_stopped(self, name):
        """Wait until it has stopped at that device; return what Ready says of the device."""
        self.reload()
        wait_until(lambda: any(name in detail for detail in self.problem()), lambda: f"stopped at {name}: {self.problem()}")
        assert [request[1] for request in _requests(self.this, self.names, "UpgradeStopped")][-1] == name
        return condition_of(self.this.api.get(name))

    def assert_kept(self, names):
        """Their old workers serve."""
        assert _workers(self.this.api, names) == {name: (*self.old[name][:2], True) for name in names}
        assert [self.disk(name).read_later(0, 4096).result() for name in names] == [None] * len(names)


@pytest.fixture(name="failing")
def fixture_failing(versions, file_of, directory):
    """Nothing is replaced yet."""
    return Failing(versions, file_of, directory)


@pytest.mark.variant
def test_each_failure_stops_the_upgrade_and_a_reload_continues_it(failing, versions):
    """A program that is missing, one that exits, one that can open a store and not serve it: one disk sees each."""
    first, second, third = failing.names
    failing.worker.remove()
    assert failing.reload_and_wait_stopped(first)["reason"] == "CannotRestart"
    failing.worker.put("exit 1")
    assert failing.reload_and_wait_stopped(second)["reason"] == "CannotRestart"
    failing.assert_kept([first, second, third])
    failing.worker.put(f'[ "$1" != "(preflight)" ] || exec {programs.worker()} "$@"\nexit 1')
    assert failing.reload_and_wait_stopped(third)["status"] == "False"
    waiting = failing.disk(third).read_later(0, 4096)
    failing.assert_kept([first, second])
    assert [name for _, name in _requests(failing.this, failing.names, "WorkerUpgrade")] == failing.names
    assert not waiting.done

    failing.worker.put_program(programs.worker())
    failing.reload()
    _wait_version(failing.this.api, failing.names, versions.names[failing.this])
    assert waiting.result() is None and failing.problem() == []
    failing.assert_kept(["noticed"])
