# SPDX-License-Identifier: MIT
"""The servers of the benchmarks: a table of (server, data path) rows.

A row's start() is a context manager: it puts a disk for a target and yields it.
A row that cannot do something raises NotApplicable with the reason.
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

import backends
import processes
from commands import CommandError, run
from ublkd_api import Daemon, Unsupported


_PROGRAMS = "/run/bench-programs"
_MAPPED = "ublkd-bench"  # of device mapper
_START_LIMIT = 30  # seconds until a server has its disk


class NotApplicable(Exception):
    """This server has no such case; the text says why."""


@dataclass
class Want:
    """The disk that a server must create."""

    target: str  # null, loop, linear (a part of loop) or stripe (two loops)
    backing: str  # path of what loop is on, or the first of a stripe
    queues: int
    depth: int
    size: int = 16 << 30  # of a null target whose size can be set
    recovery: bool = False
    resources: dict = field(default_factory=dict)  # of the spec of ublkd
    second: str = ""  # path of what the second loop of a stripe is on


# Of the cases linear and stripe, for all servers; a read of 64 KiB covers four chunks.
_PART_OFFSET = 1 << 30
_PART_LENGTH = 8 << 30
_CHUNK = 16 << 10


@dataclass
class Disk:
    """A disk that a server has created."""

    path: str
    pids: list = field(default_factory=list)  # the processes that serve it
    kernel_workers: bool = False  # the kernel's own workers serve it
    facts: dict = field(default_factory=dict)  # what the server reports of it

    def times(self):
        """Return the run time of its threads; of the kernel's, all workers, because they work for any process."""
        return processes.kernel_worker_times() if self.kernel_workers else processes.thread_times(self.pids)


@dataclass(frozen=True)
class Row:
    """One server on one of its data paths."""

    server: str
    path: str
    start: Callable  # (row, environment, want) -> context manager of a Disk

    @property
    def name(self):
        return f"{self.server}/{self.path}" if self.path else self.server


def _copy(programs, folder):
    """Copy programs, what lies beside them and their libraries; return the programs there."""
    os.makedirs(folder, exist_ok=True)
    libraries = set()
    for program in programs.values():
        every = [os.path.join(os.path.dirname(program), name) for name in os.listdir(os.path.dirname(program))]
        for path in every:
            if os.access(path, os.X_OK) and os.path.isfile(path) and path.rsplit(".")[-1] != "so":
                shutil.copy(path, folder)
                libraries |= set(re.findall(r"=> (/\S+)", run("env", "-u", "LD_LIBRARY_PATH", "ldd", path)))
    for path in libraries:
        shutil.copy(path, folder)
    return {name: os.path.join(folder, os.path.basename(path)) for name, path in programs.items()}


def copy_programs(programs):
    """Copy programs and their libraries into memory: reading a file of the host
    takes time of the host. A copied program uses the copied libraries."""
    copies = _copy(programs, _PROGRAMS)
    os.environ["LD_LIBRARY_PATH"] = _PROGRAMS
    return copies


class Environment:
    """The parts of servers: programs, backends, one ublkd for all rows of a worker."""

    def __init__(self, programs, missing, in_memory=True):
        self.backends = backends.Backends()
        self._programs = copy_programs(programs) if in_memory else programs
        self._missing = missing
        self._daemons = {}
        self._libraries = None  # the folder of its ublkd's libraries, unless they are those of all programs

    def program(self, name):
        if name not in self._programs:
            raise NotApplicable(self._missing.get(name, f"{name} was not built"))
        return self._programs[name]

    def daemon(self, worker="ublkd-worker"):
        """Return the ublkd that starts this program of its build as its workers."""
        if worker not in self._daemons:
            program = self.program("ublkd")
            options = ("--worker", os.path.join(os.path.dirname(program), worker))
            folder = tempfile.mkdtemp(prefix="ublkd-", dir="/run")
            self._daemons[worker] = Daemon(program, folder, options, libraries=self._libraries)
        return self._daemons[worker]

    def stop_daemons(self):
        """Stop every ublkd; the caller has deleted its devices."""
        while self._daemons:
            self._daemons.popitem()[1].close()

    def close(self):
        """Stop and remove everything."""
        self.stop_daemons()
        self.backends.close()
        shutil.rmtree(_PROGRAMS, ignore_errors=True)


class OtherBuild(Environment):
    """Another build of ublkd on the backends of an environment, with programs and libraries in a folder of its own."""

    def __init__(self, name, programs, environment):
        folder = f"{_PROGRAMS}-{name}"
        super().__init__(_copy(programs, folder), {}, in_memory=False)
        self.backends = environment.backends
        self._libraries = folder

    def close(self):
        """Stop its ublkd and remove its programs; the backends stay."""
        self.stop_daemons()
        shutil.rmtree(self._libraries, ignore_errors=True)


def workers(rows):
    """Return the programs of workers that these rows have."""
    return {_UBLKD_WORKERS[ROWS[row].server] for row in rows if ROWS[row].server in _UBLKD_WORKERS}


def want_of_case(environment, case):
    """Return what a case asks of a server, with its backends made."""
    paths = [environment.backends.path(name) for name in case.backends]
    first, second = (*paths, "", "")[:2]
    return Want(target=case.target, backing=first, queues=1, depth=case.depth, second=second)


def _require_target(want, server, *targets):
    if want.target not in targets:
        raise NotApplicable(f"this benchmark has no {want.target} of {server}")


_RUBLK_OPTIONS = {
    "copy": (),
    "user-copy": ("-u",),
    "zero-copy": ("-z",),
    "copy async": ("-a",),
    "user-copy async": ("-a", "-u"),
    "zero-copy async": ("-a", "-z"),
}
_KUBLK_OPTIONS = {
    "copy": (),
    "user-copy": ("-u",),
    "zero-copy": ("-z",),
    "auto-zero-copy": ("--auto_zc",),
    "batch copy": ("-b",),
    "batch user-copy": ("-b", "-u"),
    "batch zero-copy": ("-b", "-z"),
    "batch auto-zero-copy": ("-b", "--auto_zc"),
}
_INKERNEL_OPTIONS = {
    "user space": (),
    "bpf": ("--bpf",),
    "batch user space": ("--batch",),
    "batch bpf": ("--batch", "--bpf"),
}
# `kublk add` did not return. The sources of 7.2 show why.
_KUBLK_BATCH_USER_COPY = (
    "kublk announces buffer addresses (ublk_batch_prepare() in its batch.c) in elements that have no room for them "
    "(ublk_commit_elem_buf_size()); the driver's ublk_check_batch_cmd() refuses that with EINVAL, so nothing is fetched"
)
_UBLKD_PATHS = ("auto", "copy", "user-copy", "zero-copy")
_UBLKD_WORKERS = {"ublkd": "ublkd-worker", "ublkd without statistics": "ublkd-worker-without-statistics"}


@contextlib.contextmanager
def _start_null_blk(_row, environment, want):
    _require_target(want, "null_blk", "null", "loop")
    if want.target == "null":
        yield Disk(environment.backends.path("null_blk"))
    elif want.backing == environment.backends.path("null_blk"):
        yield Disk(want.backing)
    else:
        raise NotApplicable("null_blk does not serve files")


@contextlib.contextmanager
def _start_kernel_loop(row, _environment, want):
    _require_target(want, "the kernel's loop", "loop", "linear")
    direct = "on" if row.path == "direct" else "off"
    options = ["--find", "--show", f"--direct-io={direct}"]
    if want.target == "linear":
        options += [f"--offset={_PART_OFFSET}", f"--sizelimit={_PART_LENGTH}"]
    path = run("losetup", *options, want.backing).strip()
    try:
        name = os.path.basename(path)
        dio = run("cat", f"/sys/block/{name}/loop/dio").strip()
        if dio != str(int(row.path == "direct")):
            raise NotApplicable(f"losetup --direct-io={direct} left dio at {dio}")
        yield Disk(path, kernel_workers=True, facts={"dio": dio})
    finally:
        run("losetup", "--detach", path)


@contextlib.contextmanager
def _start_device_mapper(_row, _environment, want):
    _require_target(want, "device mapper", "linear", "stripe")
    first, second, sector = want.backing, want.second, 512
    length = _PART_LENGTH // sector
    tables = {
        "linear": f"0 {length} linear {first} {_PART_OFFSET // sector}",
        "stripe": f"0 {length} striped 2 {_CHUNK // sector} {first} 0 {second} 0",
    }
    run("modprobe", "dm_mod")
    run("dmsetup", "create", _MAPPED, "--table", tables[want.target])
    try:
        run("udevadm", "settle")
        yield Disk(os.path.realpath(f"/dev/mapper/{_MAPPED}"))
    finally:
        run("dmsetup", "remove", "--retry", _MAPPED)


def server_processes(number):
    pids = processes.holders(f"/dev/ublkc{number}")
    if not pids:
        raise CommandError(f"no process holds /dev/ublkc{number}")
    return pids


@contextlib.contextmanager
def _ublk_disk(number, delete):
    try:
        yield Disk(f"/dev/ublkb{number}", server_processes(number))
    finally:
        delete()


@contextlib.contextmanager
def _start_rublk(row, environment, want):
    _require_target(want, "rublk", "null", "loop")
    program = environment.program("rublk")
    options = ["-q", str(want.queues), "-d", str(want.depth), *_RUBLK_OPTIONS[row.path]]
    if want.recovery:
        options.append("-r")
    if want.target == "loop":
        if "-u" in options:
            raise NotApplicable("rublk's loop has no user copy")
        options += ["-f", want.backing]
    text = run(program, "add", want.target, *options, timeout=_START_LIMIT)
    number = re.search(r"dev id (\d+)|\"?dev_id\"?: (\d+)|ublkb(\d+)", text)
    if not number:
        raise CommandError(f"rublk printed no number: {text}")
    number = next(group for group in number.groups() if group)
    with _ublk_disk(number, lambda: run(program, "del", "-n", number)) as disk:
        yield disk


@contextlib.contextmanager
def _start_kublk(row, environment, want):
    _require_target(want, "kublk", "null", "loop")
    program = environment.program("kublk")
    if row.path == "batch user-copy":
        raise NotApplicable(_KUBLK_BATCH_USER_COPY)
    options = ["-t", want.target, "-q", str(want.queues), "-d", str(want.depth), *_KUBLK_OPTIONS[row.path]]
    if want.recovery:
        options += ["-r", "1", "-i", "1"]
    files = [want.backing] if want.target == "loop" else []
    text = run(program, "add", *options, *files, timeout=_START_LIMIT)
    number = re.search(r"dev id (\d+)", text)
    if not number:
        raise CommandError(f"kublk printed no number: {text}")
    number = number[1]
    with _ublk_disk(number, lambda: run(program, "del", "-n", number)) as disk:
        disk.facts["recover"] = [program, "recover", "-n", number, *options, *files]
        yield disk


@contextlib.contextmanager
def _start_inkernel(row, environment, want):
    _require_target(want, "inkernel", "null", "loop", "linear")
    if want.queues != 1 or want.recovery:
        raise NotApplicable("inkernel has one queue, and is started again by hand")
    program = environment.program("inkernel")
    options = ["-t", "null" if want.target == "null" else "loop", "-d", str(want.depth), *_INKERNEL_OPTIONS[row.path]]
    if want.target != "null":
        options += ["-f", want.backing]
    if want.target == "linear":
        options += ["--start", str(_PART_OFFSET), "--length", str(_PART_LENGTH)]
    text = run(program, "add", *options, timeout=_START_LIMIT)
    number = re.search(r"dev id (\d+)", text)
    if not number:
        raise CommandError(f"inkernel printed no number: {text}")
    with _ublk_disk(number[1], lambda: run(program, "del", "-n", number[1])) as disk:
        yield disk


def _ublkd_target(want):
    first, second = ({"type": "loop", "path": path} for path in (want.backing, want.second))
    targets = {
        "null": {"type": "null"},
        "loop": first,
        "linear": {"type": "linear", "offset": _PART_OFFSET, "length": _PART_LENGTH, "child": first},
        "stripe": {"type": "stripe", "chunk": _CHUNK, "children": [first, second]},
    }
    return targets[want.target]


@contextlib.contextmanager
def _start_ublkd(row, environment, want):
    daemon = environment.daemon(_UBLKD_WORKERS[row.server])
    spec = {"name": "bench", "queues": want.queues, "queueDepth": want.depth, "dataPath": row.path}
    if want.resources:
        spec["resources"] = want.resources
    spec["target"] = _ublkd_target(want)
    if want.target == "null":
        spec["size"] = want.size
    try:
        try:
            status = daemon.create(spec)["status"]
        except Unsupported as reason:
            raise NotApplicable(str(reason)) from reason
        facts = {name: status.get(name) for name in ("dataPath", "kernelFeatures")}
        yield Disk(status["device"], [status["worker"]["pid"]], facts=facts)
    finally:
        daemon.delete("bench")


def _rows():
    yield Row("null_blk", "", _start_null_blk)
    for path in ("direct", "buffered"):
        yield Row("kernel loop", path, _start_kernel_loop)
    yield Row("device mapper", "", _start_device_mapper)
    for path in _RUBLK_OPTIONS:
        yield Row("rublk", path, _start_rublk)
    for path in _KUBLK_OPTIONS:
        yield Row("kublk", path, _start_kublk)
    for path in _INKERNEL_OPTIONS:
        yield Row("inkernel", path, _start_inkernel)
    for path in _UBLKD_PATHS:
        yield Row("ublkd", path, _start_ublkd)
    yield Row("ublkd without statistics", "auto", _start_ublkd)


ROWS = {row.name: row for row in _rows()}
