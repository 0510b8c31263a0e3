"""A control command that does not come back costs its own device, and nobody else.

The backing store holds what arrives, so START_DEV hangs in its partition scan
(6.12; later kernels scan behind its back) and STOP_DEV in the requests that are
under way, for as long as the test says.
"""

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.wait import wait_until

_DEADLINES = 60  # seconds: longer than that of any command


def _assert_others_go_on(api, daemon):
    """Another device is made, used, recovered and removed meanwhile, and ublkd answers."""
    number = api.create(null_spec("other", queues=1))["status"]["id"]
    Disk(number).write(0, block("w"))
    api.wait_other_worker("other", daemon.kill_worker("other"))
    assert {"data", "other"} <= set(api.names())
    api.delete("other")


def _wait_named(api, *reasons):
    return api.wait_for(
        "data", lambda device: condition_of(device)["reason"] in reasons, f"with a reason of {reasons}", _DEADLINES
    )


@pytest.mark.long
def test_a_start_that_hangs(store, daemon):
    api = daemon.api
    with store.holding_reads():
        api.create(loop_spec("data", store.path, queues=1), wait=None)
        store.wait_asked()
        _assert_others_go_on(api, daemon)
        daemon.kill()  # its helper stays behind in the kernel
        daemon.start()
        _assert_others_go_on(api, daemon)
    disk = Disk(api.wait_phase("data", "Live")["status"]["id"])
    disk.write(0, block("w"))
    assert disk.read(0, 4096) == block("w")
    api.delete("data")


@pytest.mark.long
def test_a_stop_that_hangs_is_named_and_ends_when_it_can(store, daemon):
    api = daemon.api
    disk = Disk(api.create(loop_spec("data", store.path, queues=1))["status"]["id"])
    with store.holding():
        write = disk.write_later(0, block("w"))
        store.wait_arrived(1)
        api.ask("DELETE", "/devices/data?force=true", 202)
        # 6.12 calls it stopped at once, and waits as it is deleted
        device = _wait_named(api, "ControlPlaneHangs", "StillHeld")
        assert device["status"]["phase"] == "Stopping"
        _assert_others_go_on(api, daemon)
        problem = api.ask("DELETE", "/devices/data?force=true&wait&timeout=1s", 504)
        assert any(words in problem["detail"] for words in ("has not answered", "waits for the last")), problem
        daemon.kill()
        daemon.start()
        _assert_others_go_on(api, daemon)
    wait_until(lambda: api.names() == [] and ublk.numbers() == [], "the removal done")
    write.result()  # it has one, whichever: the kernel answered it before it let go of the disk
