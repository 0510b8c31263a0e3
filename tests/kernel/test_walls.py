# SPDX-License-Identifier: MIT
"""What a worker can do that an attacker has taken over: serve its disk, and nothing else.

The attacks (tests/kernel/hostile) run in the process of the real worker, on its
main thread and on that of its queue, after READY. Most walls stand behind the
filter of system calls, which hides them; so the same is tried without it.
"""

import errno
import os
import pathlib
import re
import socket
import subprocess

import pytest

from harness import programs
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.hostile import Hostile, victims
from harness.marks import variants
from harness.processes import spares, threads_of
from harness.wait import wait_until
from harness.ways import HAS

pytestmark = pytest.mark.long  # and one kernel runs each test

# What is not refused: Linux 6.12 lets a thread wait for a lock that a process of any number seems to hold.
_OPEN = set() if os.uname().release.startswith("7.") else {"whether a process exists"}

# What the filter alone refuses. Most of it helps the process with nothing but itself, or with what is in namespaces
# of its own.
_OPEN_WITHOUT_FILTER = _OPEN | {
    "pidfd of another worker",
    "a child process",
    "capabilities in a user namespace",
    "execute a file",
    "new executable memory",
    "the user keyring",
    "add a key",
    "a file in memory",
    "a socket of the internet",
    "netlink",
    "the kernel's cryptography",
    "a pair of sockets",
    "new shared memory",
    "a new ring",
    "userfaultfd",
    "ioctl",
    "a signal by way of a descriptor",
    "truncate the backing file",
    "a child process by clone3",
    "pidfd of the supervisor by the channel",
    "flags of the backing file",
    "the size of its pipe",
    "options of its socket",
    "interrupt all CPUs",
    "executable memory by mmap",
    "executable memory by a key",
    "executable memory by personality",
}


# Where the kernel refuses every path, it answers EOPNOTSUPP to these, and a process without a root makes no user
# namespace and executes nothing.
_CLOSED_WITHOUT_PATHS = {"capabilities in a user namespace", "execute a file"}
_PATHS = ("the root directory", "/proc", "the control device of the driver", "a new file", "the region of another disk")


def _done(results):
    return {attack for attack, error in results.items() if error is None}


def _attack(daemon, lair, spec):
    """Let the worker of a disk attack; the disk works on after that. Return what came of it."""
    device = daemon.api.create(spec)
    disk = Disk(device["status"]["id"])
    pid = daemon.worker_pid(spec["name"])
    with victims() as port:
        results = Hostile(lair, pid, disk).attack(daemon, "victim", port)
    print("\n".join(f"{attack}: {error or 'DONE'}" for attack, error in results.items()))
    disk.write(8192, block("w"))
    assert disk.read(8192, 4096) == block("w") and daemon.worker_pid(spec["name"]) == pid
    assert len(results) > 100
    return results


def _start(make_daemon, file_of):
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    daemon.api.create(loop_spec("victim", file_of("victim")))
    return daemon


@pytest.mark.both
@pytest.mark.parametrize("path", ["copy", *variants("user-copy")])
def test_a_worker_that_was_taken_over_reaches_nothing_else(path, lair, ext4, file_of, make_daemon):
    daemon = _start(make_daemon, file_of)
    spec = loop_spec("hostile", file_of("hostile", where=ext4), dataPath=path, queues=1)
    assert _done(_attack(daemon, lair, spec)) == _OPEN


# Where the end of the process is the fence (a store on tmpfs, batches), the ring takes what the table of descriptors of
# its thread has: there is no socket in it, and what is left the thread can do with system calls as well.
_OPEN_WITHOUT_FIXED_FILES = {
    "ring: read of a descriptor that was not registered",
    "ring: write to a descriptor that was not registered",
    "ring: nothing",
}


@pytest.mark.both
def test_a_worker_whose_process_is_the_fence_reaches_nothing_else(lair, file_of, make_daemon):
    daemon = _start(make_daemon, file_of)
    more = _OPEN_WITHOUT_FIXED_FILES if HAS["BATCH_IO"] else set()
    spec = loop_spec("hostile", file_of("store"), dataPath="copy", queues=1)
    assert _done(_attack(daemon, lair, spec)) == _OPEN | more


@pytest.mark.both
def test_a_ring_takes_nothing_of_the_table_of_the_main_thread(lair, file_of, make_daemon, monkeypatch):
    """The thread of the queue got no table of its own. Before, its ring asked the socket for a pidfd of ublkd."""
    monkeypatch.setenv("UBLKD_HOSTILE_MISSING", "tables")
    daemon = _start(make_daemon, file_of)
    spec = loop_spec("hostile", file_of("store"), dataPath="copy", queues=1)
    assert _done(_attack(daemon, lair, spec)) == _OPEN


def test_the_walls_behind_the_filter_hold(lair, ext4, file_of, make_daemon, monkeypatch):
    monkeypatch.setenv("UBLKD_HOSTILE_WITHOUT_FILTER", "1")
    daemon = _start(make_daemon, file_of)
    results = _attack(daemon, lair, loop_spec("hostile", file_of("hostile", where=ext4), queues=1))
    if not daemon.api.ask("GET", "/host", 200)["walls"]["noPaths"]:
        assert _done(results) == _OPEN_WITHOUT_FILTER
    else:
        assert _done(results) == _OPEN_WITHOUT_FILTER - _CLOSED_WITHOUT_PATHS
        assert {results[attack] for attack in _PATHS} == {errno.errorcode[errno.EOPNOTSUPP]}


def test_a_call_as_a_program_of_32_bits_ends_the_worker(lair, make_daemon):
    """Its numbers mean other calls, so the filter answers none."""
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    disk = Disk(daemon.api.create(null_spec("hostile"))["status"]["id"])
    pid = daemon.worker_pid("hostile")
    worker = Hostile(lair, pid, disk)
    worker.do("call-32")
    daemon.api.wait_other_worker("hostile", pid)
    assert not worker.has_done()
    disk.write(0, block("w"))


@pytest.mark.both
def test_the_host_shows_which_walls_its_kernel_has(daemon):
    """The table above is for kernels that have all of them."""
    walls = daemon.api.ask("GET", "/host", 200)["walls"]
    assert walls["callFilter"] and walls["landlock"] >= (10 if os.uname().release.startswith("7.") else 6)


def _status(pid, thread=None):
    path = pathlib.Path(f"/proc/{pid}/task/{thread or pid}/status")
    return dict(line.split(":\t", 1) for line in path.read_text(encoding="utf-8").splitlines() if ":\t" in line)


def _threads(pid):
    """Those that make system calls; threads of io_uring do what its rings ask for."""
    return [task.name for task, name in threads_of(pid).items() if not name.startswith("iou-")]


def _check_confined(pid, user):
    assert len(_threads(pid)) == 3, "main and two queues"
    for thread in _threads(pid):
        status = _status(pid, thread)
        assert status["Uid"].split() == status["Gid"].split() == [user] * 4
        assert not status["Groups"].split()
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert os.stat(f"/proc/{pid}/status").st_uid == 0, "its user cannot look into it, nor the kernel dump it"


def _check_share_no_namespace(pids):
    for kind in ("mnt", "net", "ipc", "uts", "cgroup"):
        spaces = [pathlib.Path(f"/proc/{pid}/ns/{kind}").readlink() for pid in ("self", *pids)]
        assert len(set(spaces)) == len(spaces), kind


def test_every_thread_of_every_worker_is_confined(file_of, make_daemon):
    """Uids are of the disk: the same after a recovery, and never those of another disk."""
    daemon = make_daemon(more_options=["--worker-uids=70000-70009"]).start()
    devices = [
        daemon.api.create(loop_spec("loop", file_of(), queues=2)), daemon.api.create(null_spec("null", queues=2)),
    ]
    for recovered in (False, True):
        pids = {device["name"]: daemon.worker_pid(device["name"]) for device in devices}
        for device in devices:
            _check_confined(pids[device["name"]], str(70000 + device["status"]["id"]))
        _check_share_no_namespace(pids.values())
        if not recovered:
            for name, pid in pids.items():
                daemon.kill_worker(name)
                daemon.api.wait_other_worker(name, pid)


def _uid_of(pid):
    return int(re.search(r"^Uid:\t(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE).group(1))


def test_no_two_workers_have_one_uid_after_a_change_of_the_range(make_daemon):
    """The first worker keeps its uid from before. Before, the disk 0 of the second range had the same."""
    daemon = make_daemon(more_options=["--worker-uids=70000-70009"]).start()
    daemon.api.create(null_spec("first", id=1))
    first = daemon.worker_pid("first")
    for options, wanted in (("70001-70010", 70000), ("71000-71009", 71000)):
        daemon.kill()
        daemon.more_options = (f"--worker-uids={options}",)
        daemon.start()
        daemon.api.create(null_spec("second", id=0))
        assert daemon.worker_pid("first") == first and _uid_of(first) == 70001
        assert _uid_of(daemon.worker_pid("second")) == wanted
        daemon.api.delete("second")


def test_a_uid_beyond_the_range_is_refused(make_daemon):
    daemon = make_daemon(more_options=["--worker-uids=70000-70000"]).start()
    daemon.api.create(null_spec("first", id=0))
    daemon.api.create(null_spec("second", id=1), wait=None)
    daemon.api.wait_for("second", lambda seen: condition_of(seen)["reason"] == "NoWorkerUid", "refused")


# The function that cannot build its wall: why the worker refuses to serve, and whether best effort serves without it.
_MISSING = {
    "sandbox_begin": ("SandboxIncomplete", True),
    "sandbox_leave_host": ("SandboxIncomplete", True),
    "sandbox_leave_files": ("SandboxIncomplete", True),
    "landlock_close": ("SandboxIncomplete", True),
    "io_ring_start": ("QueueFailed", False),
    "sandbox_leave_user": ("SandboxIncomplete", True),
    "sandbox_drop_capabilities": ("SandboxIncomplete", False),
    "sandbox_hide_memory": ("SandboxIncomplete", True),
    "log_close_shared": ("SandboxIncomplete", True),
    "call_filter_install": ("SandboxIncomplete", True),
}


@pytest.mark.parametrize("wall", _MISSING)
def test_no_worker_serves_without_a_wall(wall, make_daemon, monkeypatch):
    monkeypatch.setenv("UBLKD_HOSTILE_MISSING", wall)
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    daemon.api.create(null_spec("disk"), wait=None)
    reason, _ = _MISSING[wall]
    device = daemon.api.wait_for("disk", lambda seen: condition_of(seen)["reason"] == reason, f"refused: {reason}")
    assert device["status"]["recoveries"]["count"] == 0 and device["status"]["phase"] != "Live"


def _reasons(daemon):
    events = daemon.api.ask("GET", "/events?device=disk", 200, headers={"Accept": "application/json"})
    return {event["reason"] for event in events["items"]}


# The first and the last wall, and one without which best effort does not serve either.
_OFTEN = ("sandbox_begin", "sandbox_drop_capabilities", "call_filter_install")


@pytest.mark.parametrize("wall", [*_OFTEN, *variants(*(wall for wall in _MISSING if wall not in _OFTEN))])
def test_best_effort_serves_without_most_walls(wall, make_daemon, monkeypatch):
    monkeypatch.setenv("UBLKD_HOSTILE_MISSING", wall)
    daemon = make_daemon(worker=programs.worker_hostile(), more_options=["--sandbox=best-effort"]).start()
    daemon.api.create(null_spec("disk"), wait=None)
    reason, serves = _MISSING[wall]
    if serves:
        daemon.api.wait_phase("disk", "Live")
        wait_until(lambda: "SandboxIncomplete" in _reasons(daemon), "the event of the missing wall")
    else:
        daemon.api.wait_for("disk", lambda seen: condition_of(seen)["reason"] == reason, f"refused: {reason}")


@pytest.fixture(name="no_namespaces")
def forbid_namespaces():
    """The machine makes no more network namespaces."""
    limit = pathlib.Path("/proc/sys/user/max_net_namespaces")
    before = limit.read_text()
    limit.write_text("0")
    yield limit
    limit.write_text(before)


def test_a_worker_that_cannot_be_confined_does_not_serve(no_namespaces, daemon):
    daemon.api.create(null_spec("disk"), wait=None)
    device = daemon.api.wait_for(
        "disk", lambda seen: condition_of(seen)["reason"] == "SandboxIncomplete", "refused for its missing wall"
    )
    message = condition_of(device)["message"]
    assert "namespaces of its own" in message and "--sandbox best-effort" in message
    assert no_namespaces.read_text().strip() == "0"


def test_a_spare_that_lacks_a_wall_leaves():
    """Else it would wait until a recovery needs it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, subprocess.Popen(
        [programs.worker_hostile(), "(spare)"], env={**os.environ, "UBLKD_HOSTILE_MISSING": "sandbox_leave_host"},
        close_fds=False, preexec_fn=lambda: os.dup2(theirs.fileno(), 3),  # pylint: disable=subprocess-popen-preexec-fn
    ) as spare:
        try:
            assert spare.wait(timeout=60) == 1
        finally:
            spare.kill()


def test_a_restart_that_would_lose_a_wall_is_refused(daemon):
    """The disk stays with its worker, which has the wall; so has the spare, but the next one would not."""
    disk = Disk(daemon.api.create(null_spec("disk"))["status"]["id"])
    pid = daemon.worker_pid("disk")
    limit = pathlib.Path("/proc/sys/user/max_net_namespaces")
    before = limit.read_text()
    wait_until(spares, "a spare, with all walls")
    limit.write_text("0")
    try:
        answer = daemon.api.request("POST", "/devices/disk/restart?wait=ready&timeout=60s")
        assert answer.status_code == 422, answer.text
        assert daemon.worker_pid("disk") == pid
        assert disk.read(0, 4096) == bytes(4096)
    finally:
        limit.write_text(before)
    daemon.api.restart("disk")


def test_best_effort_serves_with_the_walls_that_there_are(no_namespaces, make_daemon):
    assert no_namespaces.read_text().strip() == "0"
    daemon = make_daemon(more_options=["--sandbox=best-effort"]).start()
    daemon.api.create(null_spec("disk"))
    status = _status(daemon.worker_pid("disk"))
    assert status["CapEff"] == "0" * 16 and status["Seccomp"] == "2" and status["Uid"].split()[0] != "0"
