#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: measure every row of servers on every case, one JSON line each.

usage: instructions.py CONFIGURATION, a JSON file that bench/instructions wrote.
"""

import json
import os
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import backends
import builds
import cases
import fio
import processes
import servers
from commands import CommandError, read, run, write

_SMALLEST = 64 << 20  # fio stays within this: every disk has it


def _disk_facts(path):
    queue = f"/sys/block/{os.path.basename(path)}/queue"
    names = ("max_sectors_kb", "max_segments", "scheduler", "nr_requests")
    return {name: read(f"{queue}/{name}") for name in names if os.path.exists(f"{queue}/{name}")}


def _tidy_memory():
    """Give every row the same memory: a large copy between neighbouring pages is
    much cheaper, and which row gets them would be luck."""
    run("sync")
    write("/proc/sys/vm/drop_caches", 3)
    write("/proc/sys/vm/compact_memory", 1)


def _load(disk, case, seconds):
    """Return (the results of fio, {thread: nanoseconds run meanwhile})."""
    before = disk.times()
    outcome = fio.measure(disk.path, cases.WORKLOADS[case.workload], seconds, _SMALLEST)
    return outcome, processes.spent(before, disk.times())


def _share(disk, case, seconds, outcome, spent):
    """Return {thread: nanoseconds for each request}.

    The kernel's workers also work for the start of fio: the cost of the disk is
    what a load of twice the length costs more."""
    requests = outcome.requests
    if disk.kernel_workers:
        longer, more = _load(disk, case, 2 * seconds)
        requests = longer.requests - requests
        spent = {name: time - spent.get(name, 0) for name, time in more.items()}
    return {name: time / requests for name, time in spent.items()}


def _measure(environment, case, row, seconds):
    want = servers.want_of_case(environment, case)
    _tidy_memory()
    with row.start(row, environment, want) as disk:
        run("udevadm", "settle")
        backends.use_no_scheduler(disk.path)
        if disk.kernel_workers:
            _load(disk, case, seconds)  # so that what is buffered is buffered, each time
        outcome, spent = _load(disk, case, seconds)
        threads = _share(disk, case, seconds, outcome, spent)
        run("udevadm", "settle")
        return {
            "requests": outcome.requests,
            "total_ns": outcome.total_ns,
            "server_ns": sum(threads.values()) if disk.pids or disk.kernel_workers else None,
            "threads_ns": threads,
            "facts": disk.facts,
            "disk": _disk_facts(disk.path),
        }


def _attempt(environment, case, row, seconds):
    try:
        return _measure(environment, case, row, seconds)
    except servers.NotApplicable as reason:
        return {"not_applicable": str(reason)}
    except (CommandError, OSError) as problem:
        return {"failed": str(problem)}


def _print(result):
    if "total_ns" in result:
        share = "-" if result["server_ns"] is None else f"{result['server_ns']:.0f}"
        text = f"{result['total_ns']:.0f} ns, server {share} ns"
    else:
        text = result.get("failed") or result["not_applicable"]
    print(f"{result['case']:30} {result['row']:30} {result.get('build', ''):10} {text}", flush=True)


def _measure_all(all_builds, configuration, output):
    for number in range(1, configuration["rounds"] + 1):
        for case_name, row_name in configuration["cells"]:
            case, row = cases.CASES[case_name], servers.ROWS[row_name]
            for build, environment in all_builds.turns(row.server, number):
                began = time.monotonic()
                result = {"round": number, "case": case_name, "row": row_name, **build}
                result |= _attempt(environment, case, row, configuration["seconds"])
                result["guest_seconds"] = round(time.monotonic() - began, 1)
                output.write(json.dumps(result) + "\n")
                output.flush()
                _print(result)


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    run("modprobe", "ublk_drv")
    run("modprobe", "loop")
    all_builds = builds.Builds(servers.Environment(configuration["programs"], configuration["missing"]), configuration)
    with open(configuration["results"], "w", encoding="utf-8") as output:
        about = {"kernel": os.uname().release, "fio": fio.version()}
        output.write(json.dumps({"about": about}) + "\n")
        try:
            _measure_all(all_builds, configuration, output)
        finally:
            all_builds.close()


if __name__ == "__main__":
    main()
