# SPDX-License-Identifier: MIT
"""Stop a process, and wait until it has stopped."""

import contextlib
import os
import pathlib
import signal

from .wait import wait_until


def _states(pid):
    """The states of its threads that have not ended, each a letter as in proc(5)."""
    states = set()
    for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            states.add(thread.read_text(encoding="utf-8").rpartition(")")[2].split()[0])
    return states - {"X", "Z"}


def halt(pid):
    """SIGSTOP to a process; return whether it has stopped: it may have ended before.

    A thread that runs on another CPU goes on for a moment after the signal,
    and could still serve a request.
    """
    os.kill(pid, signal.SIGSTOP)
    return wait_halted(pid)


def wait_halted(pid):
    """Wait until SIGSTOP has stopped a process; return whether it has: it may have ended before."""
    wait_until(lambda: _states(pid) <= {"T"}, lambda: f"process {pid} stopped: its threads are in {_states(pid)}")
    return _states(pid) == {"T"}
