# SPDX-License-Identifier: MIT
"""ublkd-reason, with stand-ins for sleep and for systemd: what the console has of a disk that a mount waits for."""

import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "units" / "reason" / "ublkd-reason"
NO_FILE = "data: No file.\n"


@pytest.fixture(name="reason")
def _reason(tmp_path):
    """Run it while the unit of the disk `data` is in that state; `second` has commands for the n-th second."""
    for kind in ("live", "failed"):
        (tmp_path / kind).mkdir()

    def stand_in(name, body):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncd {tmp_path}\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(link="data", state="inactive", job="", second=None):
        (tmp_path / "now").write_text("0", encoding="utf-8")
        steps = "".join(f"{at}) {command} ;;\n" for at, command in (second or {}).items())
        stand_in("sleep", f"echo $(($(cat now) + 1)) >now\ncase $(cat now) in\n{steps}*) ;;\nesac")
        stand_in("systemctl", f'case $* in *@data.service) echo Job={job}; echo ActiveState={state} ;; esac')
        done = subprocess.run(["sh", SCRIPT, os.environ["UBLKD_FOLLOW"], tmp_path, link], capture_output=True, text=True,
                              check=True, timeout=60, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
        assert done.stdout == ""
        return done.stderr, int((tmp_path / "now").read_text(encoding="utf-8"))

    return run


FAIL = "echo No file. >failed/data"


def test_the_reason_of_a_disk_that_has_failed_for_a_while(reason):
    assert reason(second={3: FAIL}) == (NO_FILE, 8)


def test_a_partition_has_the_reason_of_its_disk(reason):
    assert reason(link="data-part1", second={1: FAIL})[0] == NO_FILE


def test_a_device_may_be_called_like_a_partition(reason):
    assert reason(link="data-part1", second={1: FAIL + "; : >live/data-part1"})[0] == ""


def test_a_disk_that_comes_into_service(reason):
    assert reason(second={1: FAIL, 3: "rm failed/data; : >live/data"}) == ("", 3)


def test_a_failure_that_does_not_last(reason):
    assert reason(second={1: FAIL, 3: "rm failed/data"}) == ("", 80)


@pytest.mark.parametrize("unit", [{"state": "activating", "job": 12}, {"state": "inactive", "job": 12}, {"state": "failed"}], ids=str)
def test_the_unit_of_the_disk_prints_it_itself(reason, unit):
    assert reason(**unit, second={1: FAIL})[0] == ""


def test_an_unknown_device(reason):
    assert reason(link="nothing") == ("", 80)
