# SPDX-License-Identifier: MIT
"""ublk devices that are not ours are never touched, whatever number they sit on."""

import pytest

from harness import programs, ublk
from harness.api import condition_of, null_spec
from harness.disk import Disk
from harness.shell import run
from harness.wait import holds_for, wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_PATTERN = b"\x5a" * 4096


def _assert_untouched(number, before):
    assert ublk.info(number) == before
    assert Disk(number).read(0, 4096) == _PATTERN


def test_numbers_of_strangers_are_left_out(strangers, daemon):
    strangers(0)
    run(programs.stranger(), "add", 1)
    try:
        live, added = ublk.info(0), ublk.info(1)
        numbers = {daemon.api.create(null_spec(name))["status"]["id"] for name in ("one", "two")}
        assert numbers == {2, 3}
        daemon.kill()
        daemon.start()
        for name in ("one", "two"):
            daemon.api.delete(name)
        _assert_untouched(0, live)
        assert ublk.info(1) == added
        daemon.stop()
    finally:
        ublk.remove(1)
    _assert_untouched(0, live)
    for number in (0,):
        ublk.remove(number)


def test_a_fixed_number_that_a_stranger_has(strangers, daemon):
    stranger = strangers(5)
    before = ublk.info(5)
    api = daemon.api
    problem = api.create(null_spec("data", id=5), status=(409, 422))
    assert "5" in problem["detail"] and problem["reason"] == "NumberTaken"
    holds_for(lambda: ublk.info(5) == before, 1, "the stranger is left alone")
    _assert_untouched(5, before)
    device = api.get("data")
    assert device["status"]["phase"] in ("Backoff", "Starting")
    assert condition_of(device)["reason"] == "NumberTaken"
    stranger.close()
    assert api.wait_phase("data", "Live")["status"]["id"] == 5


def test_a_stranger_that_took_our_number_while_we_were_away(strangers, daemon):
    api = daemon.api
    number = api.create(null_spec("data"))["status"]["id"]
    pid = daemon.worker_pid("data")
    daemon.kill()
    ublk.remove(number)
    wait_until(lambda: not ublk.is_known(number), "our device gone, and its number free")
    stranger = strangers(number)
    before = ublk.info(number)
    daemon.start()
    api.wait_for("data", lambda device: condition_of(device)["reason"] == "NumberTaken", "without its number")
    _assert_untouched(number, before)
    api.ask("DELETE", "/devices/data?wait&timeout=60s", 204)
    _assert_untouched(number, before)
    api.create(null_spec("data", id=number), status=(409, 422))
    stranger.close()
    after = api.wait_other_worker("data", pid)
    assert after["status"]["id"] == number
