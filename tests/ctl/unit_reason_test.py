# SPDX-License-Identifier: MIT
"""ublkd-reason, with stand-ins for sleep and for systemd: what the console has of a disk that a mount waits for."""

import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "units" / "reason" / "ublkd-reason"
NO_FILE = "data: No file.\n"


_MANAGER = {"ActiveState": "active", "SubState": "running", "Job": "", "NRestarts": "0", "UnitFileState": "enabled"}
_TRIED_AGAIN = {"ActiveState": "activating", "SubState": "auto-restart", "NRestarts": "3"}
_NO_SUCH_DEVICE = 3  # the exit status of ublkctl


@pytest.fixture(name="reason")
def _reason(tmp_path):
    """Run it while the unit of the disk `data` is in that state; `second` has commands for the n-th second. With `waits`,
    a mount waits for the link. `manager` has what systemd says of ublkd, and `asked` the exit status of ublkctl, for all
    names or for each. While there is a file `silent`, systemd does not answer."""
    for kind in ("live", "failed"):
        (tmp_path / kind).mkdir()

    def stand_in(name, body):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncd {tmp_path}\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(link="data", state="inactive", job="", second=None, waits=True, manager=None, asked=0):
        (tmp_path / "now").write_text("0", encoding="utf-8")
        steps = "".join(f"{at}) {command} ;;\n" for at, command in (second or {}).items())
        stand_in("sleep", f"echo $(($(cat now) + 1)) >now\ncase $(cat now) in\n{steps}*) ;;\nesac")
        answers = "".join(f"*={name}\\ *ublkd.service) echo '{value}' ;;\n" for name, value in {**_MANAGER, **(manager or {})}.items())
        device = "dev-ublk-by\\\\x2dname-" + link.replace("-", "\\\\x2d") + ".device"
        stand_in("systemctl", f"[ ! -e silent ] || {{ echo No answer. >&2; exit 1; }}\ncase $* in\n{answers}*Job\\ *{device}) echo {'7' if waits else ''} ;;\n"
                              f"*@data.service) echo Job={job}; echo ActiveState={state} ;;\n"
                              "*@*.service) echo Job=; echo ActiveState=inactive ;;\nesac")
        of_names = "".join(f"*\\ {name}) exit {status} ;;\n" for name, status in (asked if isinstance(asked, dict) else {"*": asked}).items())
        stand_in("ublkctl", f"echo $* >>asked\ncase $* in\n{of_names}esac")
        done = subprocess.run(["sh", SCRIPT, os.environ["UBLKD_FOLLOW"], tmp_path, link, "ublkctl", "get"], capture_output=True,
                              text=True, check=True, timeout=60, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
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
    assert reason(second={1: FAIL, 3: "rm failed/data; : >live/data"}) == ("", 3)


@pytest.mark.parametrize("unit", [{"state": "activating", "job": 12}, {"state": "inactive", "job": 12}, {"state": "failed"}], ids=str)
def test_the_unit_of_the_disk_prints_it_itself(reason, unit):
    assert reason(**unit, second={1: FAIL})[0] == ""


def test_an_unknown_device(reason):
    """As a name in fstab with a slip: the console has the name, and early, for a line may have a shorter time limit."""
    printed, seconds = reason(link="nothing", asked=_NO_SUCH_DEVICE)
    assert printed.startswith("nothing: There is no device with this name") and printed.count("\n") == 1
    assert seconds <= 10


def test_an_unknown_device_of_a_partition(reason):
    printed, seconds = reason(link="nothing-part1", asked=_NO_SUCH_DEVICE)
    assert printed.startswith("nothing: There is no device with this name") and printed.count("\n") == 1 and seconds <= 10


def test_a_device_that_is_called_like_a_partition_and_comes_late(reason):
    """It has no mark yet, and no device has the name of the disk that it seems to be a partition of."""
    asked = {"data": _NO_SUCH_DEVICE, "data-part1": 0}
    assert reason(link="data-part1", asked=asked, second={30: ": >live/data-part1"}) == ("", 30)


def test_a_device_that_is_called_like_a_partition_and_does_not_come(reason):
    printed, seconds = reason(link="data-part1", asked={"data": _NO_SUCH_DEVICE, "data-part1": 0})
    assert printed == "data-part1: The disk is not in service; 'ublkctl describe data-part1' says why.\n" and seconds == 80


def test_a_disk_that_is_just_coming_is_not_out_of_service(reason):
    """A manager was missing, twice, and is there now."""
    printed, seconds = reason(manager={"ActiveState": "failed"}, second={10: "sed -i s/failed/active/ systemctl"})
    assert "no manager runs" in printed and printed.count("\n") == 1 and seconds == 10


def test_systemd_does_not_answer(reason):
    """Nothing of that is on the console."""
    assert reason(second={2: ": >silent", 20: "rm silent; : >live/data"}) == ("", 20)


def test_a_device_that_comes_late(reason):
    assert reason(asked=_NO_SUCH_DEVICE, second={7: ": >live/data"}) == ("", 7)


def test_a_device_that_does_not_come_into_service(reason):
    """It starts for too long, or is disabled."""
    printed, seconds = reason()
    assert printed == "data: The disk is not in service; 'ublkctl describe data' says why.\n" and seconds == 80


@pytest.mark.parametrize("manager, command", [
    ({"ActiveState": "failed"}, "journalctl -u ublkd.service"),
    (_TRIED_AGAIN, "journalctl -u ublkd.service"),
    ({"ActiveState": "inactive"}, "systemctl start ublkd.service"),
    ({"ActiveState": "inactive", "UnitFileState": "masked"}, "systemctl unmask ublkd.service"),
    ({"ActiveState": "inactive", "UnitFileState": "disabled"}, "systemctl enable --now ublkd.service"),
], ids=str)
def test_a_manager_that_does_not_run(reason, tmp_path, manager, command):
    """Nothing asks it: that would start it."""
    printed, seconds = reason(manager=manager)
    assert printed.startswith(f"data: There is no disk, because no manager runs: ublkd.service is {manager['ActiveState']}") or (
        "masked" in printed)
    assert command in printed and printed.count("\n") == 1 and seconds <= 10
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("manager", [
    {"ActiveState": "activating", "SubState": "start", "Job": "5"},
    {"ActiveState": "inactive", "SubState": "dead", "Job": "5"},
    {"ActiveState": "activating", "SubState": "start", "NRestarts": "1"},
], ids=str)
def test_a_manager_that_starts_has_time(reason, manager):
    """Until the limit: then the mount gives up, too."""
    assert reason(manager=manager, second={30: ": >live/data"}) == ("", 30)
    printed, seconds = reason(link="nothing", manager=manager)
    assert "no manager runs" in printed and seconds == 80


def test_a_link_that_nothing_waits_for(reason, tmp_path):
    """As that of a tenant's disk, or of one that has just gone."""
    assert reason(link="ublkb7", waits=False, asked=_NO_SUCH_DEVICE) == ("", 80)
    assert not (tmp_path / "asked").exists()


def test_a_name_with_a_dash_is_that_of_the_unit(reason):
    assert reason(link="no-thing", asked=_NO_SUCH_DEVICE)[0].startswith("no-thing: There is no device")
