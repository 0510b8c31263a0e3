#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest, under systemd: store devices without the driver, start the service, and watch the disks come.

usage: boot.py CONFIGURATION, a JSON file that bench/boot wrote.
"""

import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import servers
from commands import CommandError, run
from ublkd_api import Daemon, request

_UNITS = pathlib.Path(__file__).resolve().parents[2] / "units"
_WITH_PROGRAMS = ("ublkd.service", "ublk-disk@.service", "ublk-reason@.service")
_AS_THEY_ARE = ("ublkd.socket", "ublkd.target", "ublk-disk@.path", "ublk-watch@.service", "ublkd-workers.service", "ublkd.slice")
_OF_DEVICES = "dev-ublk-.device.d"
_SCRIPTS = ("start", "order", "unstack", "reason")  # what the units of disks run
_STATE = "/var/lib/ublkd"
_SOCKET = "/run/ublkd/ublkd.sock"
_FOLDER = "/run/bench-boot"
_SIZE = 16 << 20  # of each disk; files are sparse
_LIMIT = 600  # seconds
_PAUSE = 0.02


def _install(program):
    """The units as they are shipped, as tests/kernel/harness/units.py has them, with programs, scripts and libraries in
    memory: reading files of the host takes time of the host."""
    folder, memory = pathlib.Path("/etc/systemd/system"), os.path.dirname(program)
    paths = {"@UBLKD_PROGRAM_PATH@": program, "@UBLKD_CTL_PATH@": f"{memory}/ublkctl", "@UBLKD_FOLLOW_PATH@": f"{memory}/ublkd-follow"}
    for script in _SCRIPTS:
        paths[f"@UBLKD_{script.upper()}_PATH@"] = shutil.copy(_UNITS / script / f"ublkd-{script}", memory)
    libraries = f"[Service]\nEnvironment=LD_LIBRARY_PATH={memory}\n"
    for unit in _WITH_PROGRAMS:
        text = (_UNITS / f"{unit}.in").read_text(encoding="utf-8")
        for mark, path in paths.items():
            text = text.replace(mark, path)
        (folder / unit).write_text(text.replace("[Service]\n", libraries), encoding="utf-8")
    for unit in _AS_THEY_ARE:
        shutil.copy(_UNITS / unit, folder)
    shutil.copytree(_UNITS / _OF_DEVICES, folder / _OF_DEVICES)
    rules = pathlib.Path("/run/udev/rules.d")
    rules.mkdir(parents=True, exist_ok=True)
    shutil.copy(_UNITS / "60-ublkd.rules", rules)
    run("udevadm", "control", "--reload")
    run("systemctl", "daemon-reload")


def _target(number):
    if number % 2:
        return {"type": "null"}
    path = f"{_FOLDER}/file{number}"
    with open(path, "wb") as output:
        output.truncate(_SIZE)
    return {"type": "loop", "path": path}


def _store_devices(program, count):
    """Leave a database, as a shutdown does."""
    if os.path.exists("/sys/module/ublk_drv"):
        raise CommandError("the driver is loaded already, so the devices would be disks before the boot")
    os.makedirs(_FOLDER)
    daemon = Daemon(program, _STATE, ready="/healthz")
    names = [f"d{number}" for number in range(count)]
    for number, name in enumerate(names):
        spec = {"name": name, "target": _target(number), "size": _SIZE}
        status, answer = daemon.request("POST", "/devices", spec)
        if status != 201:
            raise CommandError(f"ublkd answered {status} to a new device: {json.dumps(answer)}")
    daemon.stop()
    shutil.rmtree(f"{_STATE}/run")
    return names


def _live():
    """Return when each disk that is Live became so, in seconds since the boot of the guest."""
    status, answer = request(_SOCKET, "GET", "/devices?limit=500")
    if status != 200:
        raise CommandError(f"ublkd answered {status} to GET /devices: {json.dumps(answer)}")
    found = [item["status"]["conditions"] for item in answer["items"] if item["status"]["phase"] == "Live"]
    times = [one["lastTransitionTime"] for conditions in found for one in conditions if one["type"] == "Ready"]
    boot = time.time() - time.monotonic()
    return [datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() - boot for text in times]


def _await(count, wanted):
    """Return the time at which there were so many, in seconds since the boot of the guest."""
    deadline = time.monotonic() + _LIMIT
    while (found := count()) < wanted:
        if time.monotonic() > deadline:
            raise CommandError(f"{found} of {wanted} after {_LIMIT} s")
        time.sleep(_PAUSE)
    return time.monotonic()


def _active_units():
    """The number of disks whose unit is active."""
    return len(run("systemctl", "list-units", "--state=active", "--plain", "--no-legend", "ublk-disk@*.service").splitlines())


def _time_of(name):
    """A time of the service that systemd keeps."""
    return int(run("systemctl", "show", "--property", name, "--value", "ublkd.service")) / 1e6


def _measure(program, count):
    _install(program)
    names = _store_devices(program, count)
    run("modprobe", "ublk_drv")
    run("systemctl", "start", "ublkd.socket")
    run("systemctl", "start", "--no-block", "ublkd.service")
    _await(lambda: len(_live()), count)
    live = _live()
    times = {"first": min(live), "last": max(live)}
    links = [f"/dev/ublk/by-name/{name}" for name in names]
    times["links"] = _await(lambda: sum(map(os.path.exists, links)), count)
    times["units"] = _await(_active_units, count)
    times["ready"] = _time_of("ActiveEnterTimestampMonotonic")
    began = _time_of("ExecMainStartTimestampMonotonic")
    return {f"{name}_s": round(at - began, 3) for name, at in times.items()}


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    programs = servers.copy_programs(configuration["programs"])
    with open(configuration["results"], "a", encoding="utf-8") as output:
        output.write(json.dumps({"about": {"kernel": os.uname().release}}) + "\n")
        try:
            result = _measure(programs["ublkd"], configuration["devices"])
        except (CommandError, OSError, subprocess.SubprocessError) as problem:
            result = {"failed": str(problem)}
        output.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
