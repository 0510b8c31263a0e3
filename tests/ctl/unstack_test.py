# SPDX-License-Identifier: MIT
"""ublkd-unstack, with stand-ins for the programs that it runs: what it stops, and when."""

import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "units" / "unstack" / "ublkd-unstack"
DISK = "disk /dev/ublkb0 "


@pytest.fixture(name="unstack")
def _unstack(tmp_path):
    """Run it in a machine in that state, with what lsblk prints in each of its calls, the last for ever."""

    def stand_in(name, body):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncd {tmp_path}\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(state, *stacks):
        for number, lines in enumerate(stacks):
            (tmp_path / f"stack-{number}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        stand_in("systemctl", f"echo {state}")
        stand_in("lsblk", 'n=$(cat calls 2>/dev/null || echo 0); echo $((n + 1)) >calls\n'
                          f"[ $n -lt {len(stacks)} ] || n={len(stacks) - 1}; cat stack-$n")
        stand_in("blkdeactivate", 'echo "$(cat calls) $*" >>stopped')
        subprocess.run(["sh", SCRIPT, "data"], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=True, timeout=60)
        stopped = tmp_path / "stopped"
        return stopped.read_text(encoding="utf-8").splitlines() if stopped.exists() else []

    return run


@pytest.fixture(name="volume")
def _volume(tmp_path):
    """What stands for the node of a volume: nothing is done to it."""
    path = tmp_path / "volume"
    path.touch()
    return path


def test_it_does_nothing_when_the_machine_goes_on(unstack, volume):
    assert not unstack("running", [DISK, f"lvm {volume} "])


def test_a_bare_disk_needs_nothing(unstack):
    assert not unstack("stopping", [DISK, "part /dev/ublkb0p1 /srv"])


def test_a_volume_is_stopped_once_it_is_unmounted(unstack, volume):
    """The volume is named, not the disk, for which blkdeactivate does nothing. Each round looks twice."""
    mounted, unused = [DISK, f"lvm {volume} /srv/data"], [DISK, f"lvm {volume} "]
    stopped = unstack("stopping", mounted, mounted, unused, unused, [DISK])
    assert stopped == [f"4 --dmoptions retry --lvmoptions wholevg {volume}"]
