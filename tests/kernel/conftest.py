# SPDX-License-Identifier: MIT
"""Every test has daemons, directories and backing stores of its own, and leaves nothing behind.

After each test: no worker, no ublk device, and nothing in the kernel's log
that is a complaint; whatever is left is removed, so that only one test fails.
"""

import os
import pathlib
import shutil
import signal
import sys
import tempfile
import zlib

import pytest

from harness import ublk
from harness.backing import TestyStore
from harness.daemon import Daemon
from harness.in_memory import copy_programs
from harness.kernel_disks import detach_loop
from harness.kernel_watch import KernelWatch
from harness.processes import Kind, processes, workers
from harness.shell import output, run
from harness.wait import TimedOut, wait_until

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from strict_skips import pytest_runtest_makereport  # noqa: E402, F401 (pytest finds it by name)

_HUNG_AFTER = 45
_MANY = 60  # tests, of which the copies save more time than they take


def _finished():
    """The tests that another guest has been through before it crashed (see KNOWN_CRASHES)."""
    progress = pathlib.Path(os.environ.get("UBLKD_PROGRESS", "/nowhere"))
    lines = progress.read_text(encoding="utf-8").splitlines() if progress.exists() else []
    return {line.partition(" ")[2] for line in lines}


def pytest_addoption(parser):
    """What takes long can be divided among the kernels."""
    parser.addoption("--long-part", metavar="FROM-TO", help="of the tests that are marked long, only these percent")


def _is_timed(item):
    return item.get_closest_marker("timed") is not None


def _is_long(item):
    return item.get_closest_marker("long") is not None or item.path.parent.name == "systemd"


def _percent(item):
    """Where a test is among all, by its name: the other tests of a kernel, which may be fewer, do not matter.

    Those that compare times are at the end together: one kernel alone has another guest for them."""
    return 99 if _is_timed(item) else zlib.crc32(item.nodeid.encode()) % 100


def _of_other_parts(config, items):
    """The long tests that another kernel runs."""
    part = config.getoption("long_part")
    if not part:
        return set()
    first, end = (int(percent) for percent in part.split("-"))
    divided = [item for item in items if (_is_long(item) or _is_timed(item)) and not item.get_closest_marker("both")]
    return {item.nodeid for item in divided if not first <= _percent(item) < end}


def _of_another_clock(items):
    """The tests that compare times, if tests/kernel/run has another guest for them."""
    wanted = os.environ.get("UBLKD_TIMED")
    return {item.nodeid for item in items if wanted and _is_timed(item)}


def _argument(item):
    """The test as an argument of pytest, in the directory where this one was started."""
    return f"{os.path.relpath(item.path)}::{item.nodeid.partition('::')[2]}"


def _report(variable, items):
    """Have tests/kernel/run read which tests this guest leaves out."""
    path = os.environ.get(variable)
    if path:
        pathlib.Path(path).write_text("".join(f"{_argument(item)}\n" for item in items), encoding="utf-8")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """What takes longest comes last, so that a broken build is known soon."""
    elsewhere = _of_other_parts(config, items)
    timed = _of_another_clock(items) - elsewhere
    _report("UBLKD_ELSEWHERE", [item for item in items if item.nodeid in elsewhere])
    _report("UBLKD_TIMED", [item for item in items if item.nodeid in timed])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in elsewhere | timed])
    left_out = elsewhere | timed | _finished()
    items[:] = [item for item in items if item.nodeid not in left_out]
    items.sort(key=_is_long)


def pytest_runtest_logreport(report):
    """Leave a line of each test outside, in case that the guest goes down with pytest's own results."""
    if report.when == "call" or report.outcome != "passed":
        progress = os.environ.get("UBLKD_PROGRESS")
        if progress:
            with open(progress, "a", encoding="utf-8") as file:
                file.write(f"{report.outcome} {report.nodeid}\n")


@pytest.fixture(scope="session", autouse=True)
def guest(request):
    """Only in a throw-away machine: the tests load modules, and end processes that they did not start."""
    assert os.uname().nodename == "ublkd-vm", "run these with tests/kernel/run: it makes a VM for them"
    if len(request.session.items) >= _MANY:
        copy_programs()
    run("modprobe", "ublk_drv")
    run("sysctl", "-qw", f"kernel.hung_task_timeout_secs={_HUNG_AFTER}", "kernel.hung_task_warnings=-1")


@pytest.fixture(autouse=True)
def kernel_log(guest):  # pylint: disable=redefined-outer-name,unused-argument
    """The kernel's log of this test, which must hold no complaint."""
    watch = KernelWatch()
    yield watch
    complaints = watch.complaints()
    watch.close()
    assert not complaints, "the kernel complains: " + "; ".join(complaints)


@pytest.fixture
def directory():
    """A short path on a tmpfs: sockets are in it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="k-", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def _remove_devices(daemon):
    if not daemon.running:
        daemon.start()
    for name in daemon.api.names():
        daemon.api.delete(name, force=True, status=(204, 404))
    assert daemon.api.names() == []


def _remove_leftovers():
    found = processes()
    for pid in found[Kind.WORKER] + found[Kind.SPARE]:
        os.kill(pid, signal.SIGKILL)
    for number in ublk.numbers():
        ublk.remove(number)


def _assert_nothing_left():
    """No device, no worker, and no supervisor or helper of one."""
    left = {}

    def gone():
        found = {kind.name: pids for kind, pids in processes().items() if pids}
        left.update(devices=ublk.numbers(), processes=found)
        return not any(left.values())

    wait_until(gone, lambda: f"nothing left behind: {left}")


class _Daemons:
    def __init__(self, directory_):
        self._directory = directory_
        self._daemons = []

    def __call__(self, **more):
        daemon = Daemon(self._directory / f"d{len(self._daemons)}", **more)
        daemon.directory.mkdir()
        self._daemons.append(daemon)
        return daemon

    def close(self):
        """Remove all devices through the API, stop all daemons; return what went wrong."""
        problems = []
        for daemon in self._daemons:
            try:
                _remove_devices(daemon)
                daemon.stop()
            except Exception as problem:  # pylint: disable=broad-except
                problems.append(f"{problem!r}")
            if daemon.running:
                daemon.kill()
        try:
            _assert_nothing_left()
        except TimedOut as problem:
            problems.append(str(problem))
        return problems

    def logs(self):
        """What all daemons have logged, the last part of it."""
        return "\n".join(f"--- {daemon.log_file}\n{daemon.log()[-12000:]}" for daemon in self._daemons)


@pytest.fixture
def make_daemon(directory):  # pylint: disable=redefined-outer-name
    """Make (not start) a daemon; the test's teardown removes its devices and stops it."""
    daemons = _Daemons(directory)
    yield daemons
    problems = daemons.close()
    print(daemons.logs())
    if problems:
        _remove_leftovers()
        wait_until(lambda: not ublk.numbers() and not workers(), "a clean machine")
    assert not problems, "; ".join(problems)


@pytest.fixture(name="lair")
def hostile_directory(directory, monkeypatch):  # pylint: disable=redefined-outer-name
    """Where hostile workers take their orders. Name it before a daemon that is started."""
    path = directory / "hostile"
    path.mkdir()
    monkeypatch.setenv("UBLKD_HOSTILE_DIR", str(path))
    return path


@pytest.fixture
def daemon(make_daemon):  # pylint: disable=redefined-outer-name
    """A daemon that runs."""
    return make_daemon().start()


@pytest.fixture
def api(daemon):  # pylint: disable=redefined-outer-name
    """The API of a daemon that runs."""
    return daemon.api


@pytest.fixture
def file_of(directory):  # pylint: disable=redefined-outer-name
    """Make a sparse file on the tmpfs."""

    def make(name="disk.img", size=64 << 20, where=None):
        path = (where or directory) / name
        with open(path, "wb") as file:
            file.truncate(size)
        return path

    return make


@pytest.fixture(scope="session")
def ext4_session(guest):  # pylint: disable=redefined-outer-name,unused-argument
    """A file system on a disk, with O_DIRECT of its own."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="ext4-", dir="/tmp"))
    image, mount = top / "image", top / "mount"
    with open(image, "wb") as file:
        file.truncate(768 << 20)
    mount.mkdir()
    loop = output("losetup", "--find", "--show", image)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard", loop)
    run("mount", loop, mount)
    yield mount
    run("umount", mount)
    detach_loop(loop)
    shutil.rmtree(top)


@pytest.fixture
def ext4(ext4_session):  # pylint: disable=redefined-outer-name
    """A directory of this test's own on ext4. Depend on it before `daemon`."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="t-", dir=ext4_session))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def strangers():
    """Make ublk disks of another server."""
    made = []

    def make(number):
        stranger = ublk.Stranger(number)
        made.append(stranger)
        return stranger

    yield make
    for stranger in made:
        if stranger.number in ublk.numbers():
            stranger.close()


@pytest.fixture
def store(directory):  # pylint: disable=redefined-outer-name
    """A disk that can hold writes, or be late with them. Name it before `daemon`: it must go after it."""
    disk = TestyStore(directory)
    yield disk
    disk.close()
