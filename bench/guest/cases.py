# SPDX-License-Identifier: MIT
"""Kinds of I/O, and the cases that combine them with targets."""

from dataclasses import dataclass

DEPTH = 64  # of every server's queue; see Case.depth

# With one CPU, I/O in batches keeps the CPU busy: 1/IOPS is then the whole
# path.  One I/O at a time shows task switches more than the server.
_BATCHED = ("--iodepth=64", "--iodepth_batch_submit=16", "--iodepth_batch_complete_min=16")
_LARGE = ("--iodepth=16", "--iodepth_batch_submit=4", "--iodepth_batch_complete_min=4")
_SINGLE = ("--iodepth=1",)

WORKLOADS = {
    "randread-4k": ("--rw=randread", "--bs=4k", *_BATCHED),
    "randwrite-4k": ("--rw=randwrite", "--bs=4k", *_BATCHED),
    "randread-4k-d1": ("--rw=randread", "--bs=4k", *_SINGLE),
    "randread-4k-d1-q64": ("--rw=randread", "--bs=4k", *_SINGLE),
    "randwrite-4k-d1": ("--rw=randwrite", "--bs=4k", *_SINGLE),
    "read-512k": ("--rw=read", "--bs=512k", *_LARGE),
    "randread-64k": ("--rw=randread", "--bs=64k", *_LARGE),
}

DESCRIPTIONS = {
    "randread-4k": "4 KiB random reads, depth 64 in batches of 16",
    "randwrite-4k": "4 KiB random writes, depth 64 in batches of 16",
    "randread-4k-d1": "4 KiB random reads, depth 1",
    "randread-4k-d1-q64": "4 KiB random reads, depth 1, from a queue of 64",
    "randwrite-4k-d1": "4 KiB random writes, depth 1",
    "read-512k": "512 KiB sequential reads, depth 16 in batches of 4",
    "randread-64k": "64 KiB random reads, depth 16 in batches of 4",
}


@dataclass(frozen=True)
class Case:
    """One target over one backend, under one kind of I/O."""

    target: str  # null, loop, linear (a part of loop) or stripe (two loops)
    backend: str  # what loop is on: null_blk, tmpfs or ext4; none for null
    workload: str

    @property
    def backends(self):
        """Return the name of the backend of each loop."""
        if self.target == "null":
            return ()
        return (self.backend, f"second {self.backend}") if self.target == "stripe" else (self.backend,)

    @property
    def subject(self):
        return self.target if self.target == "null" else f"{self.target}-{self.backend}"

    @property
    def depth(self):
        """Of every server's queue."""
        return 1 if self.workload.endswith("-d1") else DEPTH

    @property
    def name(self):
        return f"{self.subject}/{self.workload}"

    @property
    def title(self):
        where = _TITLES[self.target].format(self.backend)
        return f"{where}: {DESCRIPTIONS[self.workload]}"


_TITLES = {
    "null": "null",
    "loop": "loop on {}",
    "linear": "linear, a part of a loop on {}",
    "stripe": "stripe in chunks of 16 KiB over loops on two {}",
}
_SUBJECTS = (
    ("null", ""),
    ("loop", "null_blk"),
    ("loop", "tmpfs"),
    ("loop", "ext4"),
    ("linear", "null_blk"),
    ("stripe", "null_blk"),
)
CASES = {
    case.name: case
    for case in (
        Case(target, backend, workload)
        for target, backend in _SUBJECTS
        for workload in WORKLOADS
    )
}

# The cases of a run that names none.
DEFAULT = (
    "null/randread-4k",
    "loop-null_blk/randread-4k",
    "loop-null_blk/read-512k",
    "loop-tmpfs/randread-4k",
)
