# SPDX-License-Identifier: MIT
"""ublkd-follow, the process of a disk's unit, on marks that the test makes."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest

PROGRAM = os.environ["UBLKD_FOLLOW"]
DEADLINE = 60


@pytest.fixture
def place(tmp_path):
    for kind in ("live", "failed"):
        (tmp_path / kind).mkdir()
    (tmp_path / "live" / "data").touch()
    return tmp_path


@pytest.fixture
def start(place):
    """Start it, and return when it follows."""
    started = []

    def begin(*command):
        process = subprocess.Popen([PROGRAM, place, "data", *(command or ("echo", "stopped"))], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def _waits(process):
    """Return when it sleeps in poll(2): it has looked."""
    path = pathlib.Path(f"/proc/{process.pid}/syscall")
    while process.poll() is None:
        words = path.read_text(encoding="ascii").split()
        if words[0] in ("7", "73", "271"):  # poll of x86-64; ppoll of arm64 and x86-64
            return


def _end(process):
    out, err = process.communicate(timeout=DEADLINE)
    return process.returncode, out, err


def test_the_end_of_the_disk(start, place):
    process = start()
    _waits(process)
    (place / "live" / "data").unlink()
    assert _end(process) == (0, "", "")


def test_a_failure_has_its_sentence(start, place):
    process = start()
    _waits(process)
    (place / "failed" / "data").write_text("No file.\n")
    (place / "live" / "data").unlink()
    assert _end(process) == (1, "", "data: No file.\n")


def test_other_disks_do_not_matter(start, place):
    (place / "live" / "other").touch()
    process = start()
    _waits(process)
    (place / "live" / "other").unlink()
    _waits(process)
    assert process.poll() is None
    (place / "live" / "data").unlink()
    assert _end(process)[0] == 0


def test_a_disk_that_is_not_there(start, place):
    (place / "live" / "data").unlink()
    assert _end(start()) == (0, "", "")
    (place / "failed" / "data").write_text("No file.\n")
    assert _end(start()) == (1, "", "data: No file.\n")


def test_it_says_why_and_does_not_wait(place):
    command = [PROGRAM, "--why", place, "data"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=DEADLINE).returncode == 0
    (place / "failed" / "data").write_text("No file.\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "data: No file.\n")


def test_it_becomes_the_command_that_stops_the_disk(start):
    process = start("sh", "-c", "echo stopped by $$")
    _waits(process)
    process.send_signal(signal.SIGTERM)
    assert _end(process) == (0, f"stopped by {process.pid}\n", "")


def test_a_command_that_is_missing(start):
    process = start("/nowhere/ublkctl")
    _waits(process)
    process.send_signal(signal.SIGTERM)
    status, _, err = _end(process)
    assert status == 1 and "ublkctl stop data" in err


def test_a_runtime_directory_that_is_made_again(start, place):
    """ublkd makes the marks again; what happens then is seen."""
    process = start()
    _waits(process)
    shutil.move(place / "live", place / "away")
    _waits(process)
    fresh = place / "fresh"
    fresh.mkdir()
    (fresh / "data").touch()
    fresh.rename(place / "live")
    _waits(process)
    assert process.poll() is None
    (place / "live" / "data").unlink()
    assert _end(process)[0] == 0


@pytest.fixture
def receiver(tmp_path, monkeypatch):
    """The socket of the service manager, which is not bound yet, and its path."""
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unbound:
        unbound.settimeout(DEADLINE)
        yield unbound, path


@pytest.fixture
def manager(receiver):
    """Receive what it sends to the service manager, a message after the other."""
    bound, path = receiver
    bound.bind(path)
    return lambda: bound.recv(4096).decode()


def test_the_service_manager_has_the_worker(start, place, manager):
    """Also after it has ended, and the next one."""
    def serve(*paths):
        worker = subprocess.Popen(["sleep", "1000"])
        fresh = place / "fresh"
        fresh.write_text("\n".join([f"worker {worker.pid}", *paths, ""]), encoding="ascii")
        fresh.rename(place / "live" / "data")
        return worker

    workers = [serve("/srv/a.img")]
    try:
        process = start()
        assert manager() == "READY=1"
        lines = pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
        group = "".join(f" in {line[3:]}" for line in lines if line.startswith("0::"))
        assert manager() == f"STATUS=served by worker {workers[0].pid}{group}"
        workers[0].kill()
        workers[0].wait()
        assert manager().startswith(f"STATUS=worker {workers[0].pid} has ended")
        workers.append(serve())
        assert manager() == f"STATUS=served by worker {workers[1].pid}{group}"
        process.send_signal(signal.SIGTERM)
        assert manager().startswith("STATUS=waits until the disk is unused")
        assert _end(process) == (0, "stopped\n", "")
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def test_a_mark_without_a_worker(start, place, manager):
    """An earlier ublkd has written it, or the disk is gone at once: the unit has started all the same."""
    start()
    assert (manager(), manager()) == ("READY=1", "STATUS=in service")
    (place / "live" / "data").unlink()
    assert _end(start()) == (0, "", "")
    assert manager() == "READY=1"


def test_what_the_service_manager_did_not_get_is_sent_again(start, receiver):
    """That the unit has started comes first."""
    late, path = receiver
    _waits(start())
    late.bind(path)
    assert [late.recv(4096).decode() for _ in range(2)] == ["READY=1", "STATUS=in service"]


def test_wrong_use():
    assert subprocess.run([PROGRAM, "/run/ublkd", "data"], capture_output=True, check=False).returncode == 2
