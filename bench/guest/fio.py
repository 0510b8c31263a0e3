# SPDX-License-Identifier: MIT
"""Puts I/O on a disk with fio, and reads its results."""

import json
from dataclasses import dataclass

from commands import CommandError, run

_COMMON = (
    "fio",
    "--name=bench",
    "--output-format=json",
    "--ioengine=io_uring",
    "--direct=1",
    "--gtod_reduce=1",
    "--randrepeat=1",
    "--norandommap=1",
    "--time_based=1",
)


@dataclass
class Outcome:
    """How many requests there were, and how long each took, in nanoseconds."""

    requests: int
    total_ns: float


def version():
    return run("fio", "--version").strip()


def _milliseconds(seconds):
    """Return a time as fio takes it: of a fraction of a second it makes none, and ends after one pass."""
    return f"{round(1000 * seconds)}ms"


def command(path, workload, seconds, size):
    """Return the command that runs a workload on the first `size` bytes of a disk."""
    return [*_COMMON, f"--filename={path}", f"--size={size}", f"--runtime={_milliseconds(seconds)}", *workload]


def measure(path, workload, seconds, size):
    """Run a workload, and return its results."""
    text = run(*command(path, workload, seconds, size), timeout=600)
    job = json.loads(text[text.index("{") :])["jobs"][0]
    done = [job[kind] for kind in ("read", "write") if job[kind]["total_ios"]]
    if job["error"] or not done:
        raise CommandError(f"fio had error {job['error']} on {path}")
    requests = sum(kind["total_ios"] for kind in done)
    iops = sum(kind["iops"] for kind in done)
    return Outcome(requests, 1e9 / iops)
