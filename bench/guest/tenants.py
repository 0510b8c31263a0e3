#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: users ask for disks, one from a container of its own, and many at once.

usage: tenants.py CONFIGURATION, a JSON file that bench/tenants wrote.
"""

import ctypes
import json
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import servers
from commands import CommandError, run
from ublkd_api import Daemon, request

_TENANT, _FIRST_CALLER = 2000, 3000
_PAUSE = 1.5  # seconds between rounds of three changes: ublkd takes 120 changes a minute from a user
_NEW_MOUNTS_AND_USERS = 0x10020000
_PR_SET_DUMPABLE = 4
_PLACE = "/mnt"
_READY = "?wait=ready&timeout=300s"
_TARGETS = {"pool": {"type": "loop", "pool": "bench"}, "null": {"type": "null"}}


def _policy(callers, pool):
    rule = {"targets": ["loop", "null"], "pools": ["bench"], "devices": 1, "size": "1GiB", "queues": 1, "queueDepth": 128,
            "maxIoSize": "1MiB"}
    users = [_TENANT, *range(_FIRST_CALLER, _FIRST_CALLER + callers)]  # 256 at most
    return {"pools": {"bench": {"directory": pool}}, "rules": [{"name": "bench", "who": {"users": users}, **rule}]}


def _make_pool(folder):
    """A directory on ext4, in memory below that."""
    image, place = os.path.join(folder, "image"), os.path.join(folder, "ext4")
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    os.mkdir(place)
    run("mkfs.ext4", "-q", image)
    run("mount", "-o", "loop", image, place)
    pool = os.path.join(place, "pool")
    os.mkdir(pool, 0o700)
    return pool


def _start(programs, callers):
    folder = tempfile.mkdtemp(prefix="ublkd-", dir="/run")
    os.chmod(folder, 0o755)
    policy = os.path.join(folder, "policy.d")
    os.mkdir(policy)
    with open(os.path.join(policy, "10-bench.json"), "w", encoding="ascii") as output:
        json.dump(_policy(callers, _make_pool(folder)), output)
    return Daemon(programs["ublkd"], folder, ["--policy-dir", policy])


def _spec(target, name):
    return {"name": name, "target": target, "size": "64MiB", "queues": 1}


def _become(uid):
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def _enter_container(uid):
    """As rootless engines do: users, mounts, and a file system that the container may write to."""
    libc = ctypes.CDLL(None, use_errno=True)
    _become(uid)
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    if libc.unshare(_NEW_MOUNTS_AND_USERS) != 0:
        raise CommandError("no user namespace")
    for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {uid} 1")):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as output:
            output.write(text)
    if libc.mount(b"none", _PLACE.encode(), b"tmpfs", 0, None) != 0:
        raise CommandError("no file system in the container")


def _apart(work):
    """Run work() in a process of its own; return a function that waits for its result."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            result = work()
        except (CommandError, OSError) as problem:
            result = {"failed": str(problem)}
        with os.fdopen(writer, "w") as output:
            json.dump(result, output)
        os._exit(0)
    os.close(writer)

    def wait():
        with os.fdopen(reader) as source:
            text = source.read()
        os.waitpid(pid, 0)
        return json.loads(text) if text else {"failed": "the process died"}

    return wait


def _ask(socket, method, path, body=None, expected=None):
    status, answer = request(socket, method, path, body)
    if expected and status not in expected:
        raise CommandError(f"{method} {path}: {status} {json.dumps(answer)}")
    return status, answer


def _round(socket, target, number):
    spec = _spec(target, f"u{_TENANT}-round{number}")
    name = spec["name"]
    path = f"{_PLACE}/disk{number}"
    began = time.monotonic()
    times = {}
    _ask(socket, "POST", f"/devices{_READY}", spec, (201,))
    times["created"] = time.monotonic() - began
    while _ask(socket, "POST", f"/devices/{name}/deliver", {"path": path}, (200, 409))[0] != 200:
        if time.monotonic() - began > 60:
            raise CommandError(f"{name} was not delivered")
    times["delivered"] = time.monotonic() - began
    os.close(os.open(path, os.O_RDWR))
    times["opened"] = time.monotonic() - began
    _ask(socket, "DELETE", f"/devices/{name}?wait&timeout=60s", None, (200, 202, 204))
    while _ask(socket, "GET", f"/devices/{name}")[0] != 404:
        time.sleep(0.02)
    time.sleep(_PAUSE)
    return {"round": number, **times}


def _rounds(socket, target, count):
    _enter_container(_TENANT)
    return {"rounds": [_round(socket, target, number) for number in range(count)]}


def _caller(socket, target, uid, gate):
    """One disk when the gate opens, and another one that is refused."""
    _become(uid)
    os.read(gate, 1)
    times, statuses = [], []
    for turn in ("first", "second"):
        began = time.monotonic()
        statuses.append(_ask(socket, "POST", f"/devices{_READY}", _spec(target, f"u{uid}-{turn}"))[0])
        times.append(time.monotonic() - began)
    return {"times": times, "statuses": statuses}


def _at_once(daemon, target, count):
    gate, opener = os.pipe()
    waits = []
    for uid in range(_FIRST_CALLER, _FIRST_CALLER + count):
        waits.append(_apart(lambda uid=uid: (os.close(opener), _caller(daemon.socket, target, uid, gate))[1]))
    os.close(opener)  # all readers see the end of the file
    answers = [wait() for wait in waits]
    failed = [answer["failed"] for answer in answers if "failed" in answer]
    if failed:
        raise CommandError(f"{len(failed)} callers failed: {failed[0]}")
    _status, page = daemon.request("GET", "/devices?limit=500")
    owners = [item["name"].split("-")[0] for item in page["items"] if item["status"]["phase"] == "Live"]
    if len(set(owners)) != len(owners):
        raise CommandError("a caller has two disks")
    return {
        "answers": [answer["times"][0] for answer in answers],
        "refusals": [answer["times"][1] for answer in answers],
        "statuses": sorted({tuple(answer["statuses"]) for answer in answers}),
        "live": len(owners),
        "refused": sum(answer["statuses"][1] == 403 for answer in answers),
    }


def _measure(daemon, configuration):
    target = _TARGETS[configuration["target"]]
    result = _apart(lambda: _rounds(daemon.socket, target, configuration["rounds"]))()
    if "failed" in result:
        raise CommandError(result["failed"])
    yield from result["rounds"]
    yield _at_once(daemon, target, configuration["callers"])


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    run("modprobe", "ublk_drv")
    programs = servers.copy_programs(configuration["programs"])
    daemon = _start(programs, configuration["callers"])
    with open(configuration["results"], "w", encoding="utf-8") as output:
        output.write(json.dumps({"about": {"kernel": os.uname().release}}) + "\n")
        try:
            for result in _measure(daemon, configuration):
                output.write(json.dumps(result) + "\n")
                print(json.dumps(result), flush=True)
        except (CommandError, OSError) as problem:
            output.write(json.dumps({"failed": str(problem)}) + "\n")
            print(problem, flush=True)


if __name__ == "__main__":
    main()
