# SPDX-License-Identifier: MIT
"""Where queues run, where their memory is, and what the kernel knows of them."""

import os
import pathlib
import re
from functools import partial

import pytest

from harness import programs, ublk
from harness import numa
from harness.api import null_spec
from harness.disk import Disk
from harness.fio import burst
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

# include/linux/sched.h: what PR_SET_IO_FLUSHER sets (kernel/sys.c, prctl()).
_PF_MEMALLOC_NOIO = 0x00080000
_PF_LOCAL_THROTTLE = 0x00100000

# include/uapi/linux/io_uring.h
_RING_FLAGS = {"COOP_TASKRUN": 1 << 8, "SINGLE_ISSUER": 1 << 12, "DEFER_TASKRUN": 1 << 13, "NO_SQARRAY": 1 << 16}
_TRACING = pathlib.Path("/sys/kernel/tracing")


def _tasks(pid):
    return list(pathlib.Path(f"/proc/{pid}/task").iterdir())


def _is_queue(task):
    return (task / "comm").read_text().startswith("queue-")


def _flags(task):
    """The 9th field of stat: what the kernel calls task->flags."""
    return int((task / "stat").read_text().rpartition(")")[2].split()[6])


def test_queues_are_marked_as_those_that_clean_pages(api):
    """Else memory that a queue allocates could wait for the disk that it serves."""
    pid = api.create(null_spec("data", queues=2))["status"]["worker"]["pid"]
    queues = [task for task in _tasks(pid) if _is_queue(task)]
    assert len(queues) == 2
    for task in queues:
        wanted = _PF_MEMALLOC_NOIO | _PF_LOCAL_THROTTLE
        assert _flags(task) & wanted == wanted, f"{task} has the flags {_flags(task):#x}"
    api.delete("data")


def _socket_users(pid):
    """Pairs of a thread's name and whether its table has sockets."""
    found = []
    for task in _tasks(pid):
        names = [os.readlink(entry) for entry in (task / "fd").iterdir()]
        found.append(((task / "comm").read_text().strip(), any(name.startswith("socket:") for name in names)))
    return sorted(found)


def test_only_the_main_thread_has_links_to_the_supervisor(api):
    """Each thread has a table of descriptors: the links end with the main thread, and a look-up takes no reference."""
    pid = api.create(null_spec("data", queues=2))["status"]["worker"]["pid"]
    assert _socket_users(pid) == [("queue-0", False), ("queue-1", False), ("ublkd-worker", True)]
    api.delete("data")


def test_a_thread_that_gets_no_table_serves_with_that_of_the_main_thread(make_daemon, monkeypatch):
    """It only costs instructions: memory may be short, as in a recovery under pressure."""
    monkeypatch.setenv("UBLKD_HOSTILE_MISSING", "tables")
    daemon = make_daemon(worker=programs.worker_hostile()).start()
    device = daemon.api.create(null_spec("data", queues=2))
    pid = device["status"]["worker"]["pid"]
    assert _socket_users(pid) == [("queue-0", True), ("queue-1", True), ("ublkd-worker", True)]
    Disk(device["status"]["id"]).read(0, 4096)
    daemon.kill()
    daemon.start()
    daemon.api.wait_phase("data", "Live")
    assert daemon.worker_pid("data") == pid
    daemon.api.delete("data")


@pytest.fixture
def rings():
    """The flags of each ring that is created, from the kernel: {thread: flags}. Name it before the daemon."""
    switch = _TRACING / "events/io_uring/io_uring_create/enable"
    (_TRACING / "trace").write_text("")
    switch.write_text("1")

    def made():
        lines = re.findall(r"-(\d+) .* io_uring_create: .*flags (0x[0-9a-f]+)", (_TRACING / "trace").read_text())
        return {int(thread): int(flags, 16) for thread, flags in lines}

    yield made
    switch.write_text("0")


def test_queues_run_their_rings_in_the_best_way(rings, api):
    """A flag that is wrong would only have a plainer way taken. DEFER_TASKRUN is for kernels that are safe with it."""
    pid = api.create(null_spec("data", queues=2))["status"]["worker"]["pid"]
    wanted = set(_RING_FLAGS) - (set() if ublk.is_new() else {"DEFER_TASKRUN"})
    flags = rings()
    for thread in _queue_tasks(pid).values():
        assert {name for name, bit in _RING_FLAGS.items() if flags[thread] & bit} == wanted
    api.delete("data")


def _blocked():
    """What /proc/stat counts as waiting for a disk, on all CPUs."""
    return int(re.search(r"^procs_blocked (\d+)", pathlib.Path("/proc/stat").read_text(), re.MULTILINE)[1])


def _sleeps(task):
    return (task / "stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_idle_queues_do_not_count_as_waiting_for_a_disk(api):
    """Else a machine with an idle disk reads as one with 100 % iowait and I/O pressure. Before Linux 6.15 it does."""
    device = api.create(null_spec("data", queues=2))
    Disk(device["status"]["id"]).read(0, 4096)
    queues = [task for task in _tasks(device["status"]["worker"]["pid"]) if _is_queue(task)]
    wait_until(lambda: all(_sleeps(task) for task in queues), "all queues asleep")
    if ublk.is_new():
        wait_until(lambda: _blocked() == 0, "no process waiting for a disk")
    else:
        wait_until(lambda: _blocked() == 2, "both queues counted: this kernel cannot be recognised")
    api.delete("data")


def test_queues_run_where_cpus_says(api):
    pid = api.create(null_spec("data", queues=2, cpus="1"))["status"]["worker"]["pid"]
    for task in _tasks(pid):
        allowed = re.search(r"Cpus_allowed_list:\s*(\S+)", (task / "status").read_text())[1]
        assert allowed == "1", f"{task} may run on {allowed}"
    api.delete("data")


def test_queues_allocate_where_they_run(api):
    """Whatever policy ublkd was started with; the threads that do not serve have kept theirs."""
    pid = api.create(null_spec("data", queues=2))["status"]["worker"]["pid"]
    for task in _tasks(pid):
        policies = {line.split()[1] for line in (task / "numa_maps").read_text().splitlines()}
        assert policies == {"local" if _is_queue(task) else "default"}, f"{task} allocates by {policies}"
    api.delete("data")


def _allowed(pid):
    """Where each queue may run, as "0-1"."""
    found = {}
    for task in _tasks(pid):
        if _is_queue(task):
            allowed = re.search(r"Cpus_allowed_list:\s*(\S+)", (task / "status").read_text())[1]
            found[(task / "comm").read_text().strip()] = allowed
    return found


def _kernels_map(disk):
    """The same, of the block layer, which writes "0, 1"."""
    return {f"queue-{queue.name}": (queue / "cpu_list").read_text().strip() for queue in (disk.sys / "mq").iterdir()}


def test_queues_run_where_their_requests_come_from(api, daemon):
    """Also the queues of later workers: of the supervisor that created the disk, and of a later one."""
    device = api.create(null_spec("data", queues=2))
    disk, pid = Disk(device["status"]["id"]), device["status"]["worker"]["pid"]
    wanted = _kernels_map(disk)
    assert sorted(wanted.values()) == ["0", "1"]
    assert _allowed(pid) == wanted
    for _ in range(2):
        daemon.kill_worker("data")
        pid = api.wait_other_worker("data", pid)["status"]["worker"]["pid"]
        api.wait_phase("data", "Live")
        assert _allowed(pid) == wanted
        daemon.kill()
        daemon.start()
    api.delete("data")


def _queue_tasks(pid):
    """{number of the queue: its thread}."""
    queues = [task for task in _tasks(pid) if _is_queue(task)]
    return {int((task / "comm").read_text().strip().removeprefix("queue-")): int(task.name) for task in queues}


def _cpus_of_queues(disk):
    """The CPU of each queue, where each has one."""
    return [(disk.sys / "mq" / str(queue) / "cpu_list").read_text().strip() for queue in range(2)]


def _nodes_of_queues(disk):
    nodes = [numa.node_of_cpu(int(cpu)) for cpu in _cpus_of_queues(disk)]
    assert sorted(nodes) == [0, 1], "tests/kernel/run gives the guest a node for each CPU"
    return nodes


def test_stacks_and_rings_lie_where_their_queue_runs(make_daemon):
    """A queue for each CPU, each CPU on a node of its own; also of a worker that has recovered the disk.

    A spare may have run anywhere, so here one runs on each CPU.
    """
    for cpu in range(numa.nodes()):
        daemon = make_daemon(prefix=("taskset", "--cpu-list", str(cpu))).start()
        device = daemon.api.create(null_spec("data", queues=2))
        nodes = _nodes_of_queues(Disk(device["status"]["id"]))
        for recovered in (False, True):
            if recovered:
                daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
            pid = daemon.worker_pid("data")
            stacks = {queue: numa.stack_page(pid, task) for queue, task in _queue_tasks(pid).items()}
            assert {queue: set(pages.values()) for queue, pages in stacks.items()} == {0: {nodes[0]}, 1: {nodes[1]}}
            maps = [mapping for mapping in numa.mappings(pid) if "io_uring" in mapping.name]
            rings = [set(numa.pages(pid, mapping.start, mapping.end).values()) for mapping in maps]
            assert len(rings) == 4 and rings.count({0}) == rings.count({1}) == 2, f"entries and both rings of each: {rings}"
        daemon.api.delete("data")
        daemon.stop()


def _new_pages(pid, before, count):
    """The nodes of new disks, as soon as there are more than `count`."""
    new = [where for page, where in numa.anonymous_pages(pid).items() if page not in before]
    return new if len(new) > count else None


def test_memory_of_requests_lies_where_their_queue_runs(api, daemon, directory):
    """What is new while only one queue has requests is on that one's node, but for a page of the other threads."""
    disk = Disk(api.create(null_spec("data", queues=2, dataPath="copy", maxIoSize="256KiB"))["status"]["id"])
    pid = daemon.worker_pid("data")
    for cpu, node in zip(_cpus_of_queues(disk), _nodes_of_queues(disk)):
        run("udevadm", "settle")  # it looks into a new disk, from any CPU
        before = numa.anonymous_pages(pid)
        with burst(disk, directory, "--bs=256k", "--rw=randwrite", "--iodepth=32", "--size=32M", f"--cpus_allowed={cpu}"):
            new = wait_until(partial(_new_pages, pid, before, 1000), "more than 1,000 pages of requests")
        assert new.count(node) > 0.99 * len(new), f"{new.count(node)} of {len(new)} on node {node}"
    api.delete("data")
