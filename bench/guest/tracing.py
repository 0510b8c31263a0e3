# SPDX-License-Identifier: MIT
"""Traces the kernel while a disk recovers, or is created."""

import contextlib
import os
import shutil

from commands import run, write

BEGIN, END = "begin", "end"  # marks of what bench/timeline shows, unless that is a recovery
_FOLDER = "/sys/kernel/tracing"
_BUFFER_KIB = 16384
_EVENTS = (
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_process_exit",
    "sched/sched_process_exec",
    "sched/sched_process_fork",
    "signal/signal_generate",
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
)
# Functions of the ublk driver and io_uring: name, place; "r" is at the return. Not every kernel has all.
_PROBES = (
    "p:kill_and_free io_ring_ctx_wait_and_kill",
    "p:refs_atomic percpu_ref_switch_to_atomic_rcu",
    "p:ctx_free io_ring_ctx_free",
    "p:ch_open ublk_ch_open",
    "p:ch_release ublk_ch_release",
    "p:control ublk_ctrl_uring_cmd operation=+16($arg1):x32",  # cmd_op of struct io_uring_cmd
    "r:control_done ublk_ctrl_uring_cmd result=$retval:s32",
    "p:exit_mm exit_mm",
    "p:exit_files exit_files",
    "p:exit_notify exit_notify",
)


def _set(name, value):
    write(os.path.join(_FOLDER, name), value)


def _append(name, line):
    fd = os.open(os.path.join(_FOLDER, name), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, f"{line}\n".encode())
    finally:
        os.close(fd)


def mark(text):
    """Write a line into the trace, if there is one."""
    with contextlib.suppress(OSError):
        _set("trace_marker", text)


def _prepare():
    if not os.path.exists(f"{_FOLDER}/trace"):
        run("mount", "-t", "tracefs", "tracefs", _FOLDER)
    _set("tracing_on", 0)
    _set("buffer_size_kb", _BUFFER_KIB)
    _set("trace_clock", "mono")
    for event in _EVENTS:
        _set(f"events/{event}/enable", 1)
    for probe in _PROBES:
        with contextlib.suppress(OSError):
            _append("kprobe_events", probe)
    if os.path.isdir(f"{_FOLDER}/events/kprobes"):
        _set("events/kprobes/enable", 1)


@contextlib.contextmanager
def recording(folder, number):
    """Save a trace of the kernel meanwhile as FOLDER/trace-NUMBER; without a folder, do nothing."""
    if not folder:
        yield
        return
    if number == 1:
        _prepare()
    _set("trace", "")
    _set("tracing_on", 1)
    yield
    _set("tracing_on", 0)
    shutil.copyfile(f"{_FOLDER}/trace", f"{folder}/trace-{number:02}")
