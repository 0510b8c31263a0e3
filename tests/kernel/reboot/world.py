# SPDX-License-Identifier: MIT
"""What the first boot leaves for the second, on a disk that both have."""

import json
import os
import pathlib

from harness.api import loop_spec, null_spec
from harness.shell import run

DISK = "/dev/vda"
SECOND_DISK = "/dev/vdb"  # with a serial number, and nothing else that lasts
_MOUNT = pathlib.Path("/mnt/ublkd-reboot")


def mount(story):
    """A directory of one story on the disk's file system."""
    _MOUNT.mkdir(parents=True, exist_ok=True)
    if not os.path.ismount(_MOUNT):
        run("mount", DISK, _MOUNT)
    top = _MOUNT / story
    top.mkdir(exist_ok=True)
    return top


def unmount():
    """After the last use."""
    run("umount", _MOUNT)


def specs(top):
    """All devices, in the order of their creation."""
    return [
        null_spec("removed"),
        null_spec("first"),
        loop_spec("second", top / "second.img", queues=2),
        null_spec("fixed", id=7),
        null_spec("manual", recovery={"onCrash": "none", "trigger": "manual"}),
        null_spec("disabled"),
        loop_spec("missing", top / "missing.img"),
    ]


def temporary():
    """A device that only the first boot has."""
    return null_spec("temporary", temporary=True)


def save(top, facts):
    """Keep what the second boot must find."""
    (top / "facts.json").write_text(json.dumps(facts))
    run("sync")


def load(top):
    """What the first boot has seen."""
    return json.loads((top / "facts.json").read_text())
