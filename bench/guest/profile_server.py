#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: put a load on a server while the emulator counts where it spends its instructions.

usage: profile_server.py CONFIGURATION, a JSON file that bench/profile wrote.
"""

import json
import os
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import backends
import cases
import fio
import processes
import servers
from commands import CommandError, read, run

_SIZE = 64 << 20
_WARM_UP = 5000  # requests
_LIMIT = 60


def _requests(path):
    fields = read(f"/sys/block/{os.path.basename(path)}/stat").split()
    return int(fields[0]) + int(fields[4])


def _await_flow(path, process):
    goal = _requests(path) + _WARM_UP
    while _requests(path) < goal:
        if process.poll() is not None:
            raise CommandError(f"fio ended with {process.returncode}")
        time.sleep(0.02)


def _await_file(path):
    deadline = time.monotonic() + _LIMIT
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise CommandError(f"the emulator did not write {path}")
        time.sleep(0.2)


def _count(disk, workload, seconds, folder):
    """Return (requests, nanoseconds of the server's threads) while the counters were on."""
    switch = os.path.join(folder, "on")
    command = [*fio.command(disk.path, workload, 20, _SIZE), "--thread=1"]  # to kill it is to kill all of it
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            _await_flow(disk.path, process)
            requests, times = _requests(disk.path), disk.times()
            with open(switch, "w", encoding="ascii"):
                pass
            time.sleep(seconds)
            os.unlink(switch)
            requests, spent = _requests(disk.path) - requests, processes.spent(times, disk.times())
        finally:
            process.kill()
    _await_file(os.path.join(folder, "counts"))
    return requests, sum(spent.values())


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    run("modprobe", "ublk_drv")
    environment = servers.Environment(configuration["programs"], configuration["missing"])
    case, row = cases.CASES[configuration["case"]], servers.ROWS[configuration["row"]]
    want = servers.want_of_case(environment, case)
    folder = configuration["folder"]
    with row.start(row, environment, want) as disk:
        if not disk.pids:
            raise servers.NotApplicable("the kernel itself serves: it has no address space of its own")
        run("udevadm", "settle")
        backends.use_no_scheduler(disk.path)
        shutil.copy("/proc/kallsyms", os.path.join(folder, "kallsyms"))
        shutil.copy(f"/proc/{disk.pids[0]}/maps", os.path.join(folder, "maps"))
        requests, spent = _count(disk, cases.WORKLOADS[case.workload], configuration["seconds"], folder)
    with open(configuration["results"], "w", encoding="utf-8") as output:
        about = {"kernel": os.uname().release, "fio": fio.version()}
        output.write(json.dumps({"about": about}) + "\n")
        output.write(json.dumps({"requests": requests, "server_ns": spent}) + "\n")


if __name__ == "__main__":
    main()
