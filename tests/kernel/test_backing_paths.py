# SPDX-License-Identifier: MIT
"""The path of a served disk leads elsewhere: an event and a condition report it at once; the disk is served on."""

import contextlib
import os
import signal
import threading

import pytest

from harness.api import loop_spec
from harness.disk import Disk, block
from harness.halt import halt
from harness.kernel_disks import loop_disk
from harness.marks import variants
from harness.processes import path_watchers
from harness.programs import ublkctl
from harness.shell import output, run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_TYPE = "PathLeadsToStore"


def _path_condition(device):
    conditions = [c for c in device["status"]["conditions"] if c["type"] == _TYPE]
    return conditions[0] if conditions else None


def _await_condition(api, status, reason):
    """The condition of "data", once it is so."""

    def holds(device):
        condition = _path_condition(device)
        return condition and (condition["status"], condition["reason"]) == (status, reason)

    device = api.wait_for("data", holds, f"with {_TYPE} {status} ({reason})")
    assert device["status"]["phase"] == "Live"
    return _path_condition(device)


def _events(api, reason):
    items = api.ask("GET", "/events?device=data&limit=1000", 200, headers={"Accept": "application/json"})["items"]
    return [item for item in items if item["reason"] == reason]


def _await_warning(api, reason):
    """The condition and the event, which say the same."""
    condition = _await_condition(api, "False", reason)
    event = wait_until(lambda: _events(api, reason), f"an event {reason}")[-1]
    assert event["type"] == "Warning" and event["message"] == condition["message"]
    return event


def _await_right(api):
    _await_condition(api, "True", "PathLeadsToStore")


def _await_right_again(api, count=1):
    _await_right(api)
    events = wait_until(lambda: _events(api, "PathLeadsToStore"), "an event that it is right again")
    assert events[-1]["type"] == "Normal" and sum(event["count"] for event in events) >= count


class _Load:
    """Write and read back until the test stops it; fail on an error, or if other bytes come back."""

    def __init__(self, disk):
        self._disk, self._stop, self._problems = disk, threading.Event(), []
        self.rounds = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            while not self._stop.is_set():
                data = block("abcdefgh"[self.rounds % 8])
                self._disk.write(4096 * (self.rounds % 64), data)
                assert self._disk.read(4096 * (self.rounds % 64), 4096) == data
                self.rounds += 1
                self._stop.wait(0.02)
        except Exception as problem:  # pylint: disable=broad-except
            self._problems.append(problem)

    def end(self):
        """Stop, and return whether it went well."""
        before = self.rounds
        wait_until(lambda: self.rounds > before or self._problems, "that I/O goes on")
        self._stop.set()
        self._thread.join()
        assert not self._problems, self._problems


@contextlib.contextmanager
def _served(api, path):
    """A disk on that path, whose path is right, under load."""
    load = _Load(Disk(api.create(loop_spec("data", path))["status"]["id"]))
    try:
        _await_right(api)
        assert _events(api, "PathLeadsToStore") == []
        yield
    finally:
        load.end()


@pytest.fixture
def place(directory):
    """A directory of the backing file's own."""
    path = directory / "srv"
    path.mkdir()
    return path


def test_another_file_is_moved_over_it(api, place, file_of):
    path, other = file_of("a.img", where=place), file_of("b.img", where=place)
    os.link(path, place / "kept")
    with _served(api, path):
        os.rename(other, path)
        message = _await_warning(api, "PathLeadsElsewhere")["message"]
        assert str(path) in message and str(os.stat(path).st_ino) in message
        assert str(os.stat(place / "kept").st_ino) in message
        os.rename(place / "kept", path)
        _await_right_again(api)


def test_it_is_deleted_and_another_one_made(api, place, file_of):
    path = file_of("a.img", where=place)
    with _served(api, path):
        path.unlink()
        assert str(path) in _await_warning(api, "PathGone")["message"]
        file_of("a.img", where=place)
        _await_warning(api, "PathLeadsElsewhere")


def test_its_directory_is_renamed(api, place, file_of):
    path = file_of("a.img", where=place)
    with _served(api, path):
        place.rename(place.with_name("away"))
        _await_warning(api, "PathGone")
        place.with_name("away").rename(place)
        _await_right_again(api)
        place.rename(place.with_name("away"))
        place.symlink_to("away")
        _await_right_again(api)
        place.unlink()
        _await_warning(api, "PathGone")
        place.with_name("away").rename(place)
        _await_right_again(api, 2)


def test_its_directory_is_covered_by_a_mount(api, place, file_of):
    path = file_of("a.img", where=place)
    with _served(api, path):
        run("mount", "-t", "tmpfs", "none", place)
        try:
            _await_warning(api, "PathGone")
            file_of("a.img", where=place)
            _await_warning(api, "PathLeadsElsewhere")
        finally:
            run("umount", place)
        _await_right_again(api)
        other = file_of("b.img", where=place)
        run("mount", "--bind", other, path)
        try:
            _await_warning(api, "PathLeadsElsewhere")
        finally:
            run("umount", path)
        _await_right_again(api, 2)


def test_a_link_below_dev_is_re_pointed(directory, api, file_of):
    link = "/dev/test-backing"
    with loop_disk(file_of("a.img")) as one, loop_disk(file_of("b.img")) as other:
        os.symlink(one, link)
        try:
            with _served(api, link):
                os.symlink(other, directory / "new")
                run("mv", "-T", directory / "new", link)
                message = _await_warning(api, "PathLeadsElsewhere")["message"]
                numbers = [os.stat(disk).st_rdev for disk in (one, other)]
                for number in numbers:
                    assert f"{os.major(number)}:{os.minor(number)}" in message
                os.symlink(one, directory / "new")
                run("mv", "-T", directory / "new", link)
                _await_right_again(api)
        finally:
            os.unlink(link)
            api.delete("data")


def test_the_condition_ends_with_the_disk(api, place, file_of):
    path = file_of("a.img", where=place)
    with _served(api, path):
        assert len(path_watchers()) == 1
    spec = loop_spec("data", path, enabled=False)
    api.put(spec)
    assert _path_condition(api.wait_phase("data", "Disabled")) is None
    wait_until(lambda: not path_watchers(), "no process without a disk")
    api.put({**spec, "enabled": True})
    _await_right(api)


def _kill(pid):
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("lose", [_kill, pytest.param(halt, marks=pytest.mark.storm)])
def test_the_process_that_watches_is_lost(api, place, file_of, lose):
    path = file_of("a.img", where=place)
    with _served(api, path):
        (pid,) = path_watchers()
        lose(pid)
        path.rename(place / "away")
        _await_warning(api, "PathGone")
        wait_until(lambda: path_watchers() not in ([], [pid]), "another process")
        assert len(path_watchers()) == 1
        (place / "away").rename(path)
        _await_right_again(api)


@pytest.mark.parametrize("end", ["kill", *variants("stop")])
def test_the_next_ublkd_sees_a_path_that_moved(daemon, place, file_of, end):
    path = file_of("a.img", where=place)
    with _served(daemon.api, path):
        getattr(daemon, end)()
        wait_until(lambda: not path_watchers(), "the end of the process with its supervisor")
        path.rename(place / "away")
        daemon.start()
        _await_warning(daemon.api, "PathGone")
        (place / "away").rename(path)
        _await_right_again(daemon.api)


def test_users_of_the_command_line_see_it(daemon, place, file_of):
    def ctl(*arguments):
        return output(ublkctl(), "--socket", daemon.runtime / "ublkd.sock", *arguments)

    path = file_of("a.img", where=place)
    with _served(daemon.api, path):
        path.rename(place / "away")
        _await_warning(daemon.api, "PathGone")
        assert f"{path} (gone)" in ctl("list")
        assert "PathGone" in ctl("describe", "data")
        problems = daemon.api.ask("GET", "/host", 200)["problems"]
        assert [problem["title"] for problem in problems if str(path) in problem["detail"]] == ["PathGone"]
        metrics = daemon.api.request("GET", "/metrics").text
        assert 'ublkd_device_path_leads_to_store{device="data"} 0' in metrics
        file_of("a.img", where=place)
        _await_warning(daemon.api, "PathLeadsElsewhere")
        assert f"{path} (elsewhere)" in ctl("list")
