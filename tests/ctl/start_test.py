# SPDX-License-Identifier: MIT
"""ublkd-start, with a stand-in for ublkctl: what the unit of a disk has on the console when the disk does not start."""

import os
import pathlib
import subprocess

import pytest

from ctl import FAILED, NO_DAEMON, OK, TIMED_OUT

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "units" / "start" / "ublkd-start"
PRINTED = "ublkctl: data: Not in time. No file. Attempt 3 failed.\n"


@pytest.fixture(name="start")
def _start(tmp_path):
    """Run it with a ublkctl that prints these words and exits with this status: (exit status, standard output and error). `answer` has
    commands for systemctl."""
    for kind in ("live", "failed"):
        (tmp_path / kind).mkdir()

    def run(status, printed, manager="active", answer=""):
        body = answer or f"[ $4 = ublkd.service ] && echo {manager}"
        (tmp_path / "systemctl").write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / "systemctl").chmod(0o755)
        command = ["sh", "-c", f"printf '%s' '{printed}' >&2; exit {status}"]
        done = subprocess.run(["sh", SCRIPT, os.environ["UBLKD_FOLLOW"], tmp_path, "data", *command],
                              capture_output=True, text=True, check=False, timeout=60,
                              env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_disk_in_service_needs_no_client(start, tmp_path):
    (tmp_path / "live" / "data").touch()
    assert start(FAILED, PRINTED) == (OK, "", "")


def test_a_start(start, tmp_path):
    """A mark of the last failure says nothing then."""
    (tmp_path / "failed" / "data").write_text("No file.\n", encoding="utf-8")
    assert start(OK, "data is Live\n") == (OK, "data is Live\n", "")


def test_the_reason_of_the_device_is_all_that_is_printed(start, tmp_path):
    (tmp_path / "failed" / "data").write_text("No \033file.\n", encoding="utf-8")
    (tmp_path / "failed" / "other").write_text("No power.\n", encoding="utf-8")
    status, out, err = start(TIMED_OUT, PRINTED)
    assert (status, out) == (TIMED_OUT, PRINTED)
    assert err.startswith("data: No ") and err.endswith("file.\n") and "\033" not in err and len(err.splitlines()) == 1


def test_without_a_reason_it_is_what_the_client_says(start):
    assert start(TIMED_OUT, PRINTED) == (TIMED_OUT, PRINTED, PRINTED)


@pytest.mark.parametrize("status", [FAILED, NO_DAEMON])
def test_a_mark_may_be_old_if_the_client_did_not_wait(start, tmp_path, status):
    (tmp_path / "failed" / "data").write_text("No file.\n", encoding="utf-8")
    printed = "ublkctl: data: No driver.\nublkctl: data: More.\n"
    assert start(status, printed) == (status, printed, "ublkctl: data: No driver.\n")


def test_a_manager_that_has_failed_is_not_asked(start):
    """Its socket would have it tried again and again, until the client gives up."""
    status, out, err = start(OK, PRINTED, manager="failed")
    assert status == FAILED and out == "" and len(err.splitlines()) == 1
    assert err.startswith("data: There is no disk, because no manager runs") and "journalctl -u ublkd.service" in err


def test_a_manager_that_is_tried_again_is_waited_for(start):
    assert start(OK, PRINTED, manager="activating") == (OK, PRINTED, "")


def test_a_systemd_that_does_not_answer_is_not_waited_for(start, tmp_path):
    """The client has most of the time that the unit has."""
    assert start(OK, PRINTED, answer=f"sleep 20; : >{tmp_path}/answered") == (OK, PRINTED, "")
    assert not (tmp_path / "answered").exists()


def test_the_failure_of_a_client_that_says_nothing(start):
    assert start(FAILED, "") == (FAILED, "", "data: sh failed with 1.\n")
