# SPDX-License-Identifier: MIT
"""ublkctl action: start, follow, list, cancel. What a scrub does to a disk is in tests/kernel/test_actions.py."""
import json
import threading

import pytest

from ctl import FAILED, NOT_FOUND, REFUSED, USAGE

LOOP = ["target.type=loop", "target.path=/nowhere.img", "size=1MiB"]


@pytest.fixture(name="data")
def _data(ctl):
    ctl("create", "data", *LOOP)


def actions(server):
    return server.ask("GET", "/devices/data/actions").json["items"]


def ends(server, how):
    """Let the next action end as soon as it was started."""

    def end():
        while not actions(server):
            pass
        server.tell(f"act data {how}")

    thread = threading.Thread(target=end)
    thread.start()
    return thread


@pytest.mark.usefixtures("data")
def test_follows_to_the_end(server, ctl):
    thread = ends(server, "succeed")
    assert json.loads(ctl("action", "data", "scrub", "rate=1MiB").out) == {"bytesRead": 4096}
    thread.join()
    assert actions(server)[0]["arguments"] == {"rate": "1MiB"}


@pytest.mark.usefixtures("data")
def test_a_failure(server, ctl):
    thread = ends(server, "fail")
    assert "It is over." in ctl("action", "data", "scrub", status=FAILED).err
    thread.join()


@pytest.mark.usefixtures("data")
def test_list_and_cancel(server, ctl):
    ctl("action", "data", "--cancel", status=REFUSED)
    number = ctl("action", "data", "scrub", "--no-wait").out.strip()
    assert actions(server)[0]["id"] == int(number)
    line = ctl("action", "data").out.splitlines()[1].split()
    assert line[:3] == [number, "scrub", "Pending"]
    ctl("action", "data", "scrub", status=REFUSED)
    ctl("action", "data", "--cancel")
    assert actions(server)[0]["cancelRequested"]
    assert json.loads(ctl("action", "data", "-o", "json").out) == actions(server)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("arguments, status", [
    ([], USAGE), (["data", "a/b"], USAGE), (["data", "scrub", "rate"], USAGE), (["data", "scrub", "--cancel"], USAGE),
    (["none", "scrub"], NOT_FOUND), (["none"], NOT_FOUND), (["data", "scrub", "rate=1"], None), (["data", "polish"], None)])
def test_faults(server, ctl, arguments, status):
    if status is None:
        assert ctl.run("action", *arguments).status != 0
    else:
        ctl("action", *arguments, status=status)
    assert actions(server) == []
