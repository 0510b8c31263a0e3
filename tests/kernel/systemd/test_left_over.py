# SPDX-License-Identifier: MIT
"""The service leaves no process behind in its control group, whenever it ends: systemd would log each of them."""

import os
import pathlib
import signal
import time

import pytest

from harness import groups
from harness.api import loop_spec
from harness.shell import output, run
from harness.units import Log, main_pid
from harness.wait import wait_until

_LEFT = ("left-over process", "remains running after unit stopped")
_PAUSES = (0, 0.1, 0.7, 1.1)  # a spare starts a second after the last start or death of a worker


@pytest.fixture
def log():
    """The log of systemd with its lines about what a stop leaves, which have a low level."""
    before = output("systemctl", "log-level")
    run("systemctl", "log-level", "info")
    yield Log()
    run("systemctl", "log-level", before)


def _restart():
    run("systemctl", "restart", "ublkd.service")


def _stop_and_start():
    run("systemctl", "stop", "ublkd.service", "ublkd.socket")
    run("systemctl", "start", "ublkd.service")


def _kill():
    os.kill(main_pid(), signal.SIGKILL)


_WAYS = {"restart": _restart, "stop": _stop_and_start, "kill": _kill}


def _replace(api, way):
    """End ublkd in this way, and wait for the next one."""
    old = main_pid()
    _WAYS[way]()
    wait_until(lambda: main_pid() not in (0, old) and api.is_ready(), "the next ublkd")


def _worker(api, name):
    return api.get(name)["status"]["worker"]["pid"]


def _ends():
    """Each way after each pause; every change tries the restart only."""
    for pause in _PAUSES:
        for way in _WAYS:
            often = (way, pause) == ("restart", _PAUSES[0])
            yield pytest.param(way, pause, marks=[] if often else pytest.mark.storm, id=f"{way}-{pause}")


@pytest.mark.long
@pytest.mark.parametrize("way,pause", _ends())
def test_the_service_leaves_no_process(service, log, file_of, way, pause):
    """At once and a little later after a start and after the death of a worker."""
    api = service
    api.create(loop_spec("disk", file_of("disk.img", size=8 << 20)))
    time.sleep(pause)
    _replace(api, way)
    old = _worker(api, "disk")
    os.kill(old, signal.SIGKILL)
    api.wait_other_worker("disk", old)
    new = _worker(api, "disk")
    time.sleep(pause)
    _replace(api, way)
    assert _worker(api, "disk") == new
    lines = log.lines()
    assert any("ublkd.service: Main process exited" in line or "ublkd.service: Deactivated" in line for line in lines), lines
    assert not [line for line in lines if any(words in line for words in _LEFT)]
    api.delete("disk")


def _names_in(group):
    names = set()
    for pid in groups.read(group, "cgroup.procs").split():
        try:
            names.add(pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return names


def test_no_worker_is_in_the_group_of_the_service(service, file_of):
    """Neither one that has just started, nor a spare; each has its own group later."""
    api, own = service, groups.group_of(main_pid())
    unit = groups.ROOT / "ublkd.slice" / "ublkd-workers.service"
    assert own.name == "ublkd.service"
    api.create(loop_spec("data", file_of()))
    assert unit in groups.group_of(_worker(api, "data")).parents

    def has_a_spare():
        assert "ublkd-worker" not in _names_in(own)
        return len(list(unit.glob("worker-*"))) > 1

    wait_until(has_a_spare, "the group of a spare")
    groups.own_group(_worker(api, "data"))
    assert groups.read(unit / "rest", "cgroup.procs").split() == [
        output("systemctl", "show", "-p", "MainPID", "--value", "ublkd-workers.service")
    ]
    api.delete("data")
