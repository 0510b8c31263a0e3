#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: kill the server of a loop disk under load, again and again.

usage: recovery.py CONFIGURATION, a JSON file that bench/recovery wrote.
"""

import contextlib
import dataclasses
import json
import os
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import builds
import fio
import servers
import tracing
from commands import CommandError, run
from load import Load

_QUEUES = min(2, os.cpu_count())  # the kernel gives no more, and `kublk recover` does not know that
_DEPTH = 128
_SIZE = 64 << 20  # the load stays within this
_FLOW = 500  # requests at least between two kills
_PAUSE = 2  # seconds between two kills: the supervisor is to see deaths that have nothing to do with each other


@contextlib.contextmanager
def _ublkd(environment, want):
    """Yield (path of the disk, what to ask for the worker's pid, arguments of the probe, after each kill)."""
    daemon = environment.daemon()
    with servers.ROWS["ublkd/auto"].start(servers.ROWS["ublkd/auto"], environment, want) as disk:

        def pid():
            return daemon.device("bench")["status"]["worker"]["pid"]

        def after():
            return {"lastMs": daemon.device("bench")["status"]["recoveries"]["lastMs"]}

        yield disk.path, pid, [daemon.socket, "bench"], after


@contextlib.contextmanager
def _ublkd_unasked(environment, want):
    """The same, without requests to REST while the disk recovers."""
    with _ublkd(environment, want) as (path, pid, _, after):
        yield path, pid, [], after


@contextlib.contextmanager
def _ublkd_limited(environment, want):
    """The same, of a disk whose worker has limits."""
    limits = {"memoryMax": "512MiB", "pidsMax": 200}
    with _ublkd_unasked(environment, dataclasses.replace(want, resources=limits)) as disk:
        yield disk


@contextlib.contextmanager
def _peer(row, environment, want):
    """A disk of another server: the disk, its number, and what finds its server's pid."""
    with servers.ROWS[row].start(servers.ROWS[row], environment, want) as disk:
        number = disk.path.removeprefix("/dev/ublkb")
        yield disk, number, lambda: servers.server_processes(number)[0]


@contextlib.contextmanager
def _kublk(environment, want):
    """kublk under a minimal supervisor: it waits for the death, and runs `kublk recover`."""
    with _peer("kublk/copy", environment, want) as (disk, _, pid):
        yield disk.path, pid, ["--", *disk.facts["recover"]], dict


@contextlib.contextmanager
def _rublk(environment, want):
    """rublk likewise; it has no REISSUE, so the first completed I/O is a failed one."""
    with _peer("rublk/copy", environment, want) as (disk, number, pid):
        command = ["--", environment.program("rublk"), "recover", "-n", number]
        yield disk.path, pid, command, lambda: {"firstIo": None}


SERVERS = {
    "ublkd": _ublkd,
    "ublkd, REST not asked": _ublkd_unasked,
    "ublkd, with limits": _ublkd_limited,
    "kublk": _kublk,
    "rublk": _rublk,
}


def _kill_once(probe, path, pid, arguments):
    number = path.removeprefix("/dev/ublkb")
    return json.loads(run(probe, number, str(pid), *arguments, timeout=90))


def _measure(environment, configuration, start, record, kills):
    backing = environment.backends.path(configuration["backend"])
    want = servers.Want("loop", backing, _QUEUES, _DEPTH, recovery=True)
    with start(environment, want) as (path, pid, arguments, after):
        run("udevadm", "settle")
        with Load(path, _QUEUES, _DEPTH, _SIZE, errors_allowed=start is _rublk) as load:
            for number in kills:
                time.sleep(_PAUSE)
                load.await_flow(_FLOW)
                victim = pid()
                with tracing.recording(configuration.get("traces"), number):
                    times = _kill_once(configuration["probe"], path, victim, arguments)
                load.await_flow(1)
                record({"kill": number, **times, **after()})


def _attempt(environment, configuration, server, record, kills):
    try:
        _measure(environment, configuration, SERVERS[server], record, kills)
    except servers.NotApplicable as reason:
        record({"not_applicable": str(reason)})
    except (CommandError, OSError) as problem:
        record({"failed": str(problem)})


def _rounds(all_builds, server, kills):
    """Return [(number of the round, kills of one disk)]: a disk has all kills, or one if builds take turns."""
    numbers = range(1, kills + 1)
    return [(number, [number]) for number in numbers] if all_builds.take_turns(server) else [(1, numbers)]


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    run("modprobe", "ublk_drv")
    all_builds = builds.Builds(servers.Environment(configuration["programs"], configuration["missing"]), configuration)
    with open(configuration["results"], "w", encoding="utf-8") as output:

        def write(line):
            output.write(json.dumps(line) + "\n")
            output.flush()

        write({"about": {"kernel": os.uname().release, "fio": fio.version()}})
        for name in configuration["servers"]:
            for number, kills in _rounds(all_builds, name, configuration["kills"]):
                for build, environment in all_builds.turns(name, number):

                    def record(result, name=name, build=build):
                        write({"server": name, **build, **result})
                        print(f"{name}: {json.dumps({**build, **result})}", flush=True)

                    _attempt(environment, configuration, name, record, kills)


if __name__ == "__main__":
    main()
