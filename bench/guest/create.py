#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""In the guest: create one disk after the other, and open each as soon as it has a node.

usage: create.py CONFIGURATION, a JSON file that bench/create wrote.
"""

import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import processes
import servers
import tracing
from commands import CommandError, run
from ublkd_api import Daemon

_RULE = pathlib.Path(__file__).resolve().parents[2] / "units/60-ublkd.rules"
_KOBJECT_UEVENT, _OF_THE_KERNEL = 15, 1  # linux/netlink.h; a message of udevd has another group
_SIZE = 64 << 20
_LIMIT = 60  # seconds for any one thing


class _Disks:
    """Waits for the kernel's message that a disk is there. Its node is there before, but a program that opens it then waits
    for two runs of modprobe (block/bdev.c, blkdev_get_no_open()). And a look at the directory again and again would take
    the CPU from ublkd."""

    def __init__(self):
        self._messages = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _KOBJECT_UEVENT)
        self._messages.bind((0, _OF_THE_KERNEL))

    def drop(self):
        """Drop what came until now."""
        while select.select([self._messages], [], [], 0)[0]:
            self._messages.recv(65536)

    def wait(self):
        """Return the path of the next new disk."""
        self._messages.settimeout(_LIMIT)
        while True:
            action, _, path = self._messages.recv(65536).split(b"\0")[0].decode().partition("@")
            name = path.rpartition("/")[2]
            if action == "add" and name.startswith("ublkb"):
                return f"/dev/{name}"


class _Client:
    """A client that has its requests ready, and looks at no more of an answer than its status."""

    def __init__(self, path):
        self._path = path

    @staticmethod
    def message(method, target, body=None):
        text = json.dumps(body) if body is not None else ""
        head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        return f"{head}\r\n{text}".encode()

    def send(self, message):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_LIMIT)
        connection.connect(self._path)
        connection.sendall(message)
        return connection

    @staticmethod
    def receive(connection, expected):
        answer = b""
        while part := connection.recv(65536):
            answer += part
        connection.close()
        if not answer.startswith(f"HTTP/1.1 {expected} ".encode()):
            raise CommandError(f"{expected} was expected: {answer.decode(errors='replace')}")

    def timed(self, message, expected):
        began = time.monotonic()
        self.receive(self.send(message), expected)
        return time.monotonic() - began


def _create(client, disks, message):
    """Send the request; return the seconds until the node opened, and until the answer."""
    tracing.mark(tracing.BEGIN)
    began = time.monotonic()
    connection = client.send(message)
    os.close(os.open(disks.wait(), os.O_RDONLY))
    opened = time.monotonic()
    tracing.mark("opened")
    client.receive(connection, 201)
    ready = time.monotonic()
    tracing.mark(tracing.END)
    return {"opened": opened - began, "ready": ready - began}


def _await_spare(daemon):
    deadline = time.monotonic() + _LIMIT
    while not processes.waiting_spares(daemon.pid):
        if time.monotonic() > deadline:
            raise CommandError("ublkd has no spare worker")
        time.sleep(0.05)
    time.sleep(0.5)  # until it is ready


def _round(daemon, disks, kind, spec, traces=None, number=0):
    """Create a disk, measure, and remove it. Without a spare: an earlier disk has just taken it. traces: None: no trace."""
    client = _Client(daemon.socket)
    message = client.message("POST", "/devices?wait=ready&timeout=60s", spec)
    _await_spare(daemon)
    if kind.endswith("no spare"):
        daemon.create({"name": "taker", "target": {"type": "null"}, "size": _SIZE})
        run("udevadm", "settle")
        if processes.waiting_spares(daemon.pid):
            raise CommandError("ublkd has another spare already")
    healthz = client.timed(client.message("GET", "/healthz"), 200)
    disks.drop()
    with tracing.recording(traces, number):
        times = _create(client, disks, message)
    run("udevadm", "settle")
    daemon.delete(spec["name"])
    daemon.delete("taker")
    return {"kind": kind, **times, "healthz": healthz}


def _measure(daemon, configuration, record):
    with tempfile.NamedTemporaryFile(dir="/run") as file:
        file.truncate(_SIZE)
        targets = {"null": {"type": "null"}, "loop": {"type": "loop", "path": file.name}}
        daemon.create({"name": "first", "target": {"type": "null"}, "size": _SIZE})
        kinds = [(f"{name}, {spare}", target) for name, target in targets.items() for spare in ("spare", "no spare")]
        disks = _Disks()

        def once(kind, target, *trace):
            return _round(daemon, disks, kind, {"name": "disk", "target": target, "size": _SIZE}, *trace)

        for kind, target in kinds[::2]:
            once(kind, target)  # reads programs and rules of the host for the first time
        for number in range(configuration["rounds"]):
            for kind, target in kinds:
                record({"round": number, **once(kind, target)})
        if configuration["traces"]:
            for number, (kind, target) in enumerate(kinds, 1):
                record({"traced": number, **once(kind, target, configuration["traces"], number)})
        daemon.delete("first")


def _install_rule():
    """With it ublkd waits for udev, as where it is installed."""
    folder = pathlib.Path("/run/udev/rules.d")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(_RULE, folder)
    run("udevadm", "control", "--reload")


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        configuration = json.load(source)
    _install_rule()
    run("modprobe", "ublk_drv")
    programs = servers.copy_programs(configuration["programs"])
    daemon = Daemon(programs["ublkd"], tempfile.mkdtemp(prefix="ublkd-", dir="/run"))
    with open(configuration["results"], "w", encoding="utf-8") as output:

        def write(line):
            output.write(json.dumps(line) + "\n")
            output.flush()
            print(json.dumps(line), flush=True)

        write({"about": {"kernel": os.uname().release}})
        try:
            _measure(daemon, configuration, write)
        except (CommandError, OSError, subprocess.SubprocessError) as problem:
            write({"failed": str(problem)})
    daemon.close()


if __name__ == "__main__":
    main()
