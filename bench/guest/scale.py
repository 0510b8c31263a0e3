#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: create, list and remove many disks over files, with ublkd, losetup and LIO.

usage: scale.py CONFIGURATION, a JSON file that bench/scale wrote.
"""

import glob
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import processes
import servers
from commands import CommandError, read, run
from outage import Outage
from ublkd_api import Daemon

_FOLDER = "/run/bench-scale"
_SIZE = 16 << 20  # of each file, sparse
_LIMIT = 600  # seconds for one step
_BUS = "/run/dbus/system_bus_socket"
_WWN = "naa.5001405000000001"
_FIRST = "first"  # the disk that is there ahead of the others
_FILES = 65536  # of one process, as units/ublkd.service.in has it
_SETTLE = 3  # seconds in which ublkd starts its next spare, which maps the program of the workers, too


def _files(count):
    """Return the paths of sparse files in memory."""
    os.makedirs(_FOLDER, exist_ok=True)
    paths = [f"{_FOLDER}/file{number}" for number in range(count)]
    for path in paths:
        with open(path, "wb") as output:
            output.truncate(_SIZE)
    return paths


def _available():
    """Return the KiB of available memory."""
    line = next(line for line in read("/proc/meminfo").splitlines() if line.startswith("MemAvailable:"))
    return int(line.split()[1])


def _await_count(what, count_now, wanted):
    """Wait until there are so many."""
    deadline = time.monotonic() + _LIMIT
    while (found := count_now()) != wanted:
        if time.monotonic() > deadline:
            raise CommandError(f"{found} instead of {wanted} {what} after {_LIMIT} s")
        time.sleep(0.02)


def _timed(step):
    began = time.monotonic()
    answer = step()
    return round(time.monotonic() - began, 3), answer


def _feed(command, text):
    """Run a program that reads its commands from standard input."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_LIMIT, check=False)
    if done.returncode != 0:
        raise CommandError(f"{command[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
    return done.stdout


class _Health:
    """Asks for /healthz again and again, and keeps the longest answer time in ms. Use it in a `with` statement."""

    def __init__(self, daemon):
        self._daemon = daemon
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._problem = None
        self.longest = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        if self._problem:
            raise CommandError(f"/healthz: {self._problem}")

    def _ask(self):
        while not self._over.wait(0.01):
            try:
                seconds, (status, _body) = _timed(lambda: self._daemon.request("GET", "/healthz"))
            except OSError as problem:
                self._problem = problem
                return
            if status != 200:
                self._problem = f"the answer was {status}"
                return
            self.longest = max(self.longest, seconds * 1000)


class Ublkd:
    """One `ublkctl apply` of a file with every device, waited for; GET /devices; one delete of all."""

    def __init__(self, configuration, programs):
        folder = tempfile.mkdtemp(prefix="ublkd-", dir="/run")
        self._programs = programs
        self._spares = configuration["spares"]
        options = [] if self._spares is None else ["--spare-workers", str(self._spares)]
        self._daemon = Daemon(programs["ublkd"], folder, options)
        self._specs = f"{_FOLDER}/specs.json"
        self._queues = configuration["queues"]
        self._depth = configuration["depth"]
        self._at_once = configuration["at_once"]
        self._kill = configuration["kill"]
        self._names = []
        self._observed = {}

    def _ctl(self, *command):
        program = os.path.join(os.path.dirname(self._programs["ublkd"]), "ublkctl")
        return run(program, "--socket", self._daemon.socket, *command, timeout=_LIMIT)

    def _items(self):
        return json.loads(self._ctl("list", "-o", "json"))["items"]

    def _await_spares(self):
        if self._spares is not None:
            _await_count("spares", lambda: len(processes.waiting_spares(self._daemon.pid)), self._spares)
        time.sleep(_SETTLE)

    def warm_up(self):
        """With a number of spares that was asked for: make one disk more, ahead of the others, and wait for them, because ublkd
        has spares only while it has workers. Return the memory of the machine that all of them take."""
        if self._spares is None:
            return {}
        before = _available()
        self._daemon.create({"name": _FIRST, "target": {"type": "null"}, "size": _SIZE, "queues": self._queues})
        run("udevadm", "settle")
        self._await_spares()
        return {"spares_available_kib": before - _available()}

    def _watched(self, what, step):
        """Do a step, and note the longest answer time of /healthz meanwhile."""
        with _Health(self._daemon) as health:
            step()
        self._observed[f"{what}_healthz_ms"] = round(health.longest, 1)

    def make(self, paths):
        self._names = [f"d{number}" for number in range(len(paths))]
        shape = {"queues": self._queues} | ({"queueDepth": self._depth} if self._depth else {})
        specs = [
            {"name": name, "target": {"type": "loop", "path": path}, **shape} for name, path in zip(self._names, paths)
        ]
        with open(self._specs, "w", encoding="ascii") as output:
            json.dump(specs, output)
        apply = ("apply", "--file", self._specs, "--wait", "--timeout", f"{_LIMIT}s")
        self._watched("make", lambda: self._ctl(*apply))

    def list(self):
        return sum(item["status"]["phase"] == "Live" and item["name"] != _FIRST for item in self._items())

    def memory(self):
        """Return what the workers have, and what the supervisor with its helpers and its spare: memory in KiB, threads and
        descriptors."""
        self._await_spares()
        workers = {item["status"]["worker"]["pid"] for item in self._items() if item["name"] != _FIRST}
        spares = set(processes.waiting_spares(self._daemon.pid))
        own = {pid for pid, name in processes.programs("ublkd").items() if name != "ublkd-worker"}
        result = {}
        for name, some in (("workers", workers), ("spares", spares), ("supervisor", own)):
            memory = [processes.private_memory(pid) for pid in some]
            total = lambda *kinds, memory=memory: sum(one[kind] for one in memory for kind in kinds) >> 10
            result[f"{name}"] = len(some)
            result[f"{name}_pss_kib"] = total("Pss")
            result[f"{name}_private_kib"] = total("Private_Clean", "Private_Dirty")
            result[f"{name}_threads"] = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in some)
            result[f"{name}_files"] = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in some)
        return result

    def kill(self):
        """Kill all workers at the same time, and wait until each disk answers."""
        if not self._kill:
            return
        items = self._items()
        pids = {item["status"]["worker"]["pid"] for item in items}
        with Outage([item["status"]["device"] for item in items]) as outage:
            self._watched("kill", lambda: self._observed.update(outage.measure(pids)))
        _await_count("disks that have recovered", lambda: self._recovered(pids), len(items))

    def _recovered(self, pids):
        return sum(item["status"]["phase"] == "Live" and item["status"]["worker"]["pid"] not in pids for item in self._items())

    def _remove_at_once(self):
        answers = []

        def remove(name):
            answers.append(self._daemon.request("DELETE", f"/devices/{name}")[0])

        threads = [threading.Thread(target=remove, args=(name,)) for name in self._names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if answers != [202] * len(self._names):
            raise CommandError(f"the removals gave {sorted(set(answers))}, {len(answers)} of {len(self._names)}")

    def _remove_all(self):
        if self._at_once:
            self._remove_at_once()
        else:
            self._ctl("delete", *self._names, "--timeout", f"{_LIMIT}s")
        self._daemon.delete(_FIRST)
        _await_count("disks of ublkd", lambda: len(glob.glob("/sys/block/ublkb*")), 0)

    def remove(self):
        self._watched("remove", self._remove_all)

    def after(self):
        """Further observations."""
        return self._observed

    def close(self):
        self._daemon.close()


class Losetup:
    """`losetup --find --show FILE` for each; `losetup --list --json`; `losetup --detach-all`."""

    def __init__(self, *_):
        run("modprobe", "loop", "max_loop=0")

    def warm_up(self):
        return {}

    def make(self, paths):
        for path in paths:
            run("losetup", "--find", "--show", path)

    def list(self):
        return len(json.loads(run("losetup", "--list", "--json"))["loopdevices"])

    def memory(self):
        return {}

    def kill(self):
        pass

    def after(self):
        return {}

    def remove(self):
        run("losetup", "--detach-all", timeout=_LIMIT)

    def close(self):
        pass


class Targetcli:
    """One targetcli that reads from standard input: a fileio backstore and a LUN of tcm_loop for each file."""

    def __init__(self, *_):
        for module in ("target_core_mod", "target_core_file", "tcm_loop"):
            run("modprobe", module)
        if not os.path.ismount("/sys/kernel/config"):
            run("mount", "-t", "configfs", "configfs", "/sys/kernel/config")
        if not os.path.exists(_BUS):
            os.makedirs(os.path.dirname(_BUS), exist_ok=True)
            run("dbus-daemon", "--system", "--fork")  # targetcli looks for handlers of tcmu there
        self._before = len(glob.glob("/sys/block/sd*"))

    def warm_up(self):
        return {}

    def _disks(self):
        return len(glob.glob("/sys/block/sd*")) - self._before

    def make(self, paths):
        lines = ["set global auto_save_on_exit=false", f"/loopback create {_WWN}"]
        for number, path in enumerate(paths):
            lines.append(f"/backstores/fileio create d{number} {path}")
            lines.append(f"/loopback/{_WWN}/luns create /backstores/fileio/d{number}")
        output = _feed(["targetcli"], "\n".join([*lines, "exit", ""]))
        try:
            _await_count("disks of LIO", self._disks, len(paths))
        except CommandError as problem:
            raise CommandError(f"{problem}; targetcli's last words: {output[-300:]}") from problem

    def list(self):
        return run("targetcli", "/backstores/fileio", "ls", timeout=_LIMIT).count(_FOLDER)

    def memory(self):
        return {}

    def kill(self):
        pass

    def after(self):
        return {}

    def remove(self):
        run("targetcli", "clearconfig", "confirm=True", timeout=_LIMIT)
        _await_count("disks of LIO", self._disks, 0)

    def close(self):
        pass


_MANAGERS = {"ublkd": Ublkd, "losetup": Losetup, "targetcli": Targetcli}


def _measure(name, configuration, programs, count):
    paths = _files(count)
    manager = _MANAGERS[name](configuration, programs)
    run("udevadm", "settle")
    run("sync")
    try:
        result = manager.warm_up()
        before, ran = _available(), processes.accounts()
        result["make_s"] = _timed(lambda: manager.make(paths))[0]
        result["make_ran_s"] = processes.accounts_between(ran, processes.accounts())
        result["udev_s"] = _timed(lambda: run("udevadm", "settle", f"--timeout={_LIMIT}", timeout=_LIMIT))[0]
        result["list_s"], listed = _timed(manager.list)
        if listed != count:
            raise CommandError(f"{listed} of {count} disks are listed")
        result |= {"available_kib": before - _available(), **manager.memory()}
        manager.kill()
        result["remove_s"] = _timed(manager.remove)[0]
        return result | manager.after()
    finally:
        manager.close()


def _start_idle(count):
    """Starts processes that do nothing; the guest ends with them."""
    if count == 0:
        return
    shell = subprocess.Popen(
        ["sh", "-c", f"for i in $(seq {count}); do sleep inf & done; echo; wait"], stdout=subprocess.PIPE
    )
    shell.stdout.readline()


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    run("modprobe", "ublk_drv")
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    programs = servers.copy_programs(configuration["programs"])
    _start_idle(configuration["idle"])
    with open(configuration["results"], "w", encoding="utf-8") as output:
        output.write(json.dumps({"about": {"kernel": os.uname().release}}) + "\n")
        for count in configuration["counts"]:
            for name in configuration["managers"]:
                result = {"manager": name, "devices": count}
                try:
                    result |= _measure(name, configuration, programs, count)
                except (CommandError, OSError, subprocess.SubprocessError) as problem:
                    result["failed"] = str(problem)
                output.write(json.dumps(result) + "\n")
                output.flush()
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
