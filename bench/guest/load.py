# SPDX-License-Identifier: MIT
"""A load of random reads and writes that runs in the background."""

import subprocess
import time

from commands import CommandError, read

_OPTIONS = (
    "fio",
    "--name=load",
    "--ioengine=io_uring",
    "--direct=1",
    "--rw=randrw",
    "--bs=4k",
    "--iodepth_batch_submit=16",  # as in the other benchmarks; one at a time, 0 to 10 were in flight at a kill
    "--iodepth_batch_complete_min=16",
    "--gtod_reduce=1",
    "--time_based=1",
    "--runtime=100000",
    "--group_reporting=1",
    "--thread=1",  # so that to kill it is to kill all of it
    "--minimal",
)


class Load:
    """fio, one job per CPU at the full depth of a queue; use it in a `with` statement.
    An I/O error ends it, unless the disk's server fails requests in flight."""

    def __init__(self, path, jobs, depth, size, errors_allowed=False):
        self._stat = f"/sys/block/{path.rsplit('/', 1)[1]}/stat"
        options = [f"--filename={path}", f"--numjobs={jobs}", f"--iodepth={depth}", f"--size={size}"]
        if errors_allowed:
            options.append("--continue_on_error=all")
        self._command = [*_OPTIONS, *options]
        self._process = None

    def __enter__(self):
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def completions(self):
        fields = read(self._stat).split()
        return int(fields[0]) + int(fields[4])

    def await_flow(self, requests, limit=60):
        """Return once so many more requests were completed."""
        goal = self.completions() + requests
        deadline = time.monotonic() + limit
        while self.completions() < goal:
            if self._process.poll() is not None:
                raise CommandError(f"fio ended with {self._process.returncode}: {self._process.stdout.read()[-300:]}")
            if time.monotonic() > deadline:
                raise CommandError(f"the load does not flow: {requests} requests were not done in {limit} s")
            time.sleep(0.05)
