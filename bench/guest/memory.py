#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: the private memory of every server before its first request, and after a load.

usage: memory.py CONFIGURATION, a JSON file that bench/memory wrote.
"""

import json
import os
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import fio
import processes
import servers
from commands import CommandError, run
from load import Load

_QUEUES = 2
_DEPTH = 128
_SIZE = 64 << 20
_FLOW = 2000  # requests of the load
_SETTLE = 3  # seconds in which ublkd starts its next spare, which maps the same program: else that counts as private


def _memory(disk):
    every = [processes.private_memory(pid) for pid in disk.pids]
    return {name: sum(one[name] for one in every) for name in every[0]}


def _measure(environment, target, row):
    backing = environment.backends.path("tmpfs") if target == "loop" else ""
    want = servers.Want(target, backing, _QUEUES, _DEPTH)
    with row.start(row, environment, want) as disk:
        if not disk.pids:
            raise servers.NotApplicable("the kernel itself serves")
        run("udevadm", "settle")
        time.sleep(_SETTLE)
        idle = _memory(disk)
        mappings = [mapping for pid in disk.pids for mapping in processes.mappings(pid) if mapping["Rss"]]
        with Load(disk.path, _QUEUES, _DEPTH, _SIZE) as load:
            load.await_flow(_FLOW)
        return {"idle": idle, "mappings": mappings, "loaded": _memory(disk), "facts": disk.facts}


def _attempt(environment, target, row):
    try:
        return _measure(environment, target, row)
    except servers.NotApplicable as reason:
        return {"not_applicable": str(reason)}
    except (CommandError, OSError) as problem:
        return {"failed": str(problem)}


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    run("modprobe", "ublk_drv")
    # Code in a file on a disk is not private memory; in a file on tmpfs it would be.
    environment = servers.Environment(configuration["programs"], configuration["missing"], in_memory=False)
    with open(configuration["results"], "w", encoding="utf-8") as output:
        output.write(json.dumps({"about": {"kernel": os.uname().release, "fio": fio.version()}}) + "\n")
        for target in ("null", "loop"):
            for name in configuration["rows"]:
                result = {"target": target, "row": name}
                result |= _attempt(environment, target, servers.ROWS[name])
                output.write(json.dumps(result) + "\n")
                output.flush()
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
