# SPDX-License-Identifier: MIT
"""One life of the machine: check what the lives before have left, then write until the power is cut.

The journal lies on the host, and outlives the guest. "try" is written before a
request and "ack" after its answer, so of the last request alone it may be
unknown whether it was carried out.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

# pylint: disable=wrong-import-position
from harness.api import null_spec
from harness.daemon import Daemon
from harness.shell import output, run

DISK = "/dev/vda"
_MOUNT = pathlib.Path("/mnt/ublkd-cutoff")
_DEVICES = 12
_ABSENT = None


class Journal:
    """What was asked and what was answered, in all lives so far."""

    def __init__(self, path):
        self._path = path
        self.certain = {}
        self.unsure = None
        lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
        for line in lines:
            self._replay(json.loads(line))

    def _replay(self, entry):
        if entry["what"] == "try":
            self.unsure = (entry["name"], entry["value"])
        else:
            name, value = self.unsure
            self.certain[name] = value
            self.unsure = None

    def note(self, **entry):
        """Write a line that the host has, whatever becomes of this machine."""
        with open(self._path, "a", encoding="ascii") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._replay(entry)

    def settle(self, found):
        """What became of the request that was cut off is known now."""
        if self.unsure:
            name, value = self.unsure
            if found.get(name, _ABSENT) == value:
                self.note(what="ack")
            else:
                self.note(what="try", name=name, value=self.certain.get(name, _ABSENT))
                self.note(what="ack")


def _check_integrity(state):
    """Of a copy: the original's write-ahead log is ublkd's to recover."""
    if not (state / "ublkd.db").exists():
        return
    copy = pathlib.Path("/tmp/copy")
    shutil.copytree(state, copy)
    verdict = output("sqlite3", copy / "ublkd.db", "PRAGMA integrity_check").strip()
    assert verdict == "ok", verdict


def _found(api):
    """Each device's value, which is in its labels, and in its generation."""
    items = api.ask("GET", "/devices?limit=500", 200)["items"]
    return {device["name"]: device["spec"]["labels"]["value"] for device in items}


def _check(journal, found):
    possible = [{name: value for name, value in journal.certain.items() if value is not _ABSENT}]
    if journal.unsure:
        name, value = journal.unsure
        other = {key: each for key, each in possible[0].items() if key != name}
        possible.append(other if value is _ABSENT else {**other, name: value})
    assert found in possible, f"found {found}, expected one of {possible}"


def _change(api, journal, chance, number):
    name = f"disk-{chance.randrange(_DEVICES)}"
    if journal.certain.get(name, _ABSENT) is not _ABSENT and chance.random() < 0.3:
        journal.note(what="try", name=name, value=_ABSENT)
        api.delete(name)
    else:
        value = str(number)
        journal.note(what="try", name=name, value=value)
        api.put(null_spec(name, enabled=False, labels={"value": value}), (200, 201), wait=None)
    journal.note(what="ack")


def main(directory, seed):
    """Never returns but by a failure."""
    journal = Journal(directory / "journal")
    _MOUNT.mkdir(parents=True, exist_ok=True)
    run("fsck.ext4", "-p", DISK, check=False)
    run("mount", DISK, _MOUNT)
    subprocess.run(["modprobe", "ublk_drv"], check=True)
    _check_integrity(_MOUNT / "state")
    (_MOUNT / "run").mkdir(exist_ok=True)
    daemon = Daemon(pathlib.Path("/tmp"), state=_MOUNT / "state", runtime="/run/ublkd-cutoff").start()
    found = _found(daemon.api)
    _check(journal, found)
    journal.settle(found)
    (directory / "checked").touch()
    chance = random.Random(seed)
    number = int(seed) * 1000000
    while True:
        number += 1
        _change(daemon.api, journal, chance, number)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
