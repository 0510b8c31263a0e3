#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: create, list and remove many disks over files, with ublkd, losetup and LIO.

usage: scale.py CONFIGURATION, a JSON file that bench/scale wrote.
"""

import glob
import json
import os
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
from ublkd_api import Daemon

_FOLDER = "/run/bench-scale"
_SIZE = 16 << 20  # of each file, sparse
_LIMIT = 600  # seconds for one step
_BUS = "/run/dbus/system_bus_socket"
_WWN = "naa.5001405000000001"


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
    """Asks for /healthz again and again, and keeps the longest answer time."""

    def __init__(self, daemon):
        self._daemon = daemon
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.longest_ms = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _ask(self):
        while not self._over.wait(0.01):
            seconds, (status, _body) = _timed(lambda: self._daemon.request("GET", "/healthz"))
            if status != 200:
                raise CommandError(f"/healthz gave {status}")
            self.longest_ms = max(self.longest_ms, seconds * 1000)


class Ublkd:
    """One `ublkctl apply` of a file with every device, waited for; GET /devices; one delete of all."""

    def __init__(self, configuration, programs):
        folder = tempfile.mkdtemp(prefix="ublkd-", dir="/run")
        self._programs = programs
        self._daemon = Daemon(programs["ublkd"], folder)
        self._specs = f"{_FOLDER}/specs.json"
        self._queues = configuration["queues"]
        self._at_once = configuration["at_once"]
        self._names = []
        self._health = _Health(self._daemon)

    def _ctl(self, *command):
        program = os.path.join(os.path.dirname(self._programs["ublkd"]), "ublkctl")
        return run(program, "--socket", self._daemon.socket, *command, timeout=_LIMIT)

    def make(self, paths):
        self._names = [f"d{number}" for number in range(len(paths))]
        specs = [
            {"name": name, "target": {"type": "loop", "path": path}, "queues": self._queues}
            for name, path in zip(self._names, paths)
        ]
        with open(self._specs, "w", encoding="ascii") as output:
            json.dump(specs, output)
        self._ctl("apply", "--file", self._specs, "--wait", "--timeout", f"{_LIMIT}s")

    def list(self):
        items = json.loads(self._ctl("list", "-o", "json"))["items"]
        return sum(item["status"]["phase"] == "Live" for item in items)

    def memory(self):
        """Return PSS in KiB: of all workers, and of the supervisor and its helpers."""
        items = json.loads(self._ctl("list", "-o", "json"))["items"]
        workers = [item["status"]["worker"]["pid"] for item in items]
        pids = {int(entry) for entry in os.listdir("/proc") if entry.isdigit()}
        own = [pid for pid in pids if read(f"/proc/{pid}/comm").startswith("ublkd") and pid not in workers]
        total = lambda some: sum(processes.private_memory(pid)["Pss"] for pid in some) >> 10
        return {"workers_pss_kib": total(workers), "supervisor_pss_kib": total(own)}

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

    def remove(self):
        with self._health:
            if self._at_once:
                self._remove_at_once()
            else:
                self._ctl("delete", *self._names, "--timeout", f"{_LIMIT}s")
            _await_count("disks of ublkd", lambda: len(glob.glob("/sys/block/ublkb*")), 0)

    def after(self):
        """Further observations."""
        return {"healthz_ms": self._health.longest_ms}

    def close(self):
        self._daemon.close()


class Losetup:
    """`losetup --find --show FILE` for each; `losetup --list --json`; `losetup --detach-all`."""

    def __init__(self, *_):
        run("modprobe", "loop", "max_loop=0")

    def make(self, paths):
        for path in paths:
            run("losetup", "--find", "--show", path)

    def list(self):
        return len(json.loads(run("losetup", "--list", "--json"))["loopdevices"])

    def memory(self):
        return {}

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
    before = _available()
    try:
        result = {"make_s": _timed(lambda: manager.make(paths))[0]}
        result["udev_s"] = _timed(lambda: run("udevadm", "settle", f"--timeout={_LIMIT}", timeout=_LIMIT))[0]
        result["list_s"], listed = _timed(manager.list)
        if listed != count:
            raise CommandError(f"{listed} of {count} disks are listed")
        result |= {"available_kib": before - _available(), **manager.memory()}
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
