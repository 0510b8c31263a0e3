# SPDX-License-Identifier: MIT
"""SIGKILL of the supervisor at every operation of a flow: what was acknowledged or what was asked, never a mixture.

tests/kernel/mortal builds a ublkd that dies at its n-th commit, command to the
driver, process, message or answer. Each flow is gone through for n = 1, 2, …
until it ends alive; after each death the next ublkd must find its way, and
nothing may be left over.
"""

import contextlib
import os
import shutil
import signal

import pytest

from harness import programs, ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.processes import workers
from harness.wait import wait_until

_OPERATIONS_MAX = 200
_DEATH_LIMIT = 60  # seconds


class Mortal:
    """A daemon that dies at a point that the test chooses."""

    def __init__(self, make_daemon, directory):
        self._file = directory / "die-at"
        self._died_at = directory / "die-at.died"
        os.environ["UBLKD_DIE_FILE"] = str(self._file)
        self.daemon = make_daemon(program=programs.ublkd_mortal())
        self.api = self.daemon.api

    def arm(self, number):
        """Die at this operation, counted from now on."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(str(number), encoding="ascii")
        fresh.rename(self._file)

    def spare(self):
        """Let it live."""
        self._file.unlink(missing_ok=True)

    def ask(self, method, path, **more):
        """The status of the answer, or None when it died first."""
        try:
            return self.api.request(method, path, **more).status_code
        except OSError:
            return None

    def wait_dead_or(self, condition):
        """Wait for its death or for the end of the flow, whichever comes first."""

        def over():
            if not self.daemon.running:
                return True
            with contextlib.suppress(OSError):
                return condition()
            return False

        wait_until(over, "the death of ublkd, or the end of the flow")

    def disarm(self):
        """Spare it, or start the next one if it died; return where it died, or None."""
        self.spare()
        if self._survived():
            return None
        assert self.daemon.process.wait(_DEATH_LIMIT) == -signal.SIGKILL, self.daemon.log()[-4000:]
        self.daemon.start()
        return self._died_at.read_text(encoding="ascii").strip()

    def _survived(self):
        """What it was doing when it was spared may still be its last: one that answers now, with its one
        thread, has it behind it."""
        return self.ask("GET", "/healthz") is not None


@pytest.fixture
def mortal(make_daemon, directory):
    """A ublkd that runs, and is not going to die yet."""
    mortal_ = Mortal(make_daemon, directory)
    mortal_.daemon.start()
    yield mortal_
    mortal_.spare()
    del os.environ["UBLKD_DIE_FILE"]


def _every_death(flow):
    """flow(n) runs the flow once and checks it; it returns where ublkd died, if it did."""
    for number in range(1, _OPERATIONS_MAX):
        where = flow(number)
        print(f"operation {number}: {where or 'none'}", flush=True)
        if not where:
            assert number > 3, "it should have died at some operation"
            return
    raise AssertionError("the flow has no end")


def _assert_alone(api, name):
    """The device is Live and works, and there is one disk and one worker on this machine."""
    def is_settled(device):
        return device["status"]["phase"] == "Live" and condition_of(device)["reason"] == "Live"

    def is_alone():
        device = api.get(name)
        return is_settled(device) and workers() == [device["status"]["worker"]["pid"]]

    status = api.wait_for(name, is_settled, "Live, and nothing under way")["status"]
    disk = Disk(status["id"])
    disk.write(4096, block("w"))
    assert ublk.numbers() == [status["id"]]
    assert api.ask("GET", "/host", 200)["adoptable"] == []
    wait_until(is_alone, lambda: f"one worker, not {workers()}")
    return api.get(name)["status"]


def _assert_nothing(api):
    assert api.names() == []
    assert api.ask("GET", "/host", 200)["adoptable"] == []
    wait_until(
        lambda: not ublk.numbers() and not workers(),
        lambda: f"nothing left: devices {ublk.numbers()}, workers {workers()}",
    )


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_a_device_is_made(mortal, file_of):
    api, path = mortal.api, file_of(size=8 << 20)

    def flow(number):
        mortal.arm(number)
        status = mortal.ask("POST", "/devices", json=loop_spec("data", path, queues=1))
        mortal.wait_dead_or(lambda: api.phase("data") == "Live")
        where = mortal.disarm()
        assert status in (201, None)
        if status == 201 or api.names():
            _assert_alone(api, "data")
        else:
            _assert_nothing(api)
        api.delete("data", status=(204, 404))
        return where

    _every_death(flow)


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_a_device_is_removed(mortal, file_of):
    api, path = mortal.api, file_of(size=8 << 20)

    def flow(number):
        api.create(loop_spec("data", path, queues=1), status=(200, 201))
        mortal.arm(number)
        status = mortal.ask("DELETE", "/devices/data")
        mortal.wait_dead_or(lambda: not api.names())
        where = mortal.disarm()
        assert status in (202, None)
        if status == 202:
            wait_until(lambda: not api.names(), "the removal that was acknowledged")
        elif not _is_going(api):
            _assert_alone(api, "data")
            return where
        wait_until(lambda: not api.names(), "the removal done")
        _assert_nothing(api)
        return where

    _every_death(flow)


def _is_going(api):
    device = api.request("GET", "/devices/data").json()
    return device.get("status") == 404 or device["status"]["phase"] == "Stopping"


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_a_disk_is_recreated(mortal, file_of):
    """A change that asks for another disk: the old spec in full, or the new one."""
    api, path = mortal.api, file_of(size=8 << 20)
    specs = [loop_spec("data", path, queues=1, blockSize=size) for size in (512, 4096)]
    api.create(specs[0])

    def flow(number):
        old, new = specs[number % 2 - 1], specs[number % 2]
        api.put(old)
        mortal.arm(number)
        status = mortal.ask("PUT", "/devices/data", json=new)
        mortal.wait_dead_or(
            lambda: api.phase("data") == "Live" and api.get("data")["status"]["observedGeneration"]
            == api.get("data")["generation"]
        )
        where = mortal.disarm()
        assert status in (200, None)
        wait_until(
            lambda: api.get("data")["status"]["observedGeneration"] == api.get("data")["generation"],
            "the spec carried out",
        )
        spec = api.get("data")["spec"]
        assert spec["blockSize"] == new["blockSize"] or (status is None and spec["blockSize"] == old["blockSize"])
        found = _assert_alone(api, "data")
        assert Disk(found["id"]).queue("logical_block_size") == spec["blockSize"]
        return where

    _every_death(flow)


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_a_worker_is_replaced(mortal):
    """The write that waits for the new worker is answered, whichever process dies meanwhile."""
    api = mortal.api
    api.create(null_spec("data", queues=1))

    def flow(number):
        before = _assert_alone(api, "data")
        pid = before["worker"]["pid"]
        mortal.arm(number)
        os.kill(pid, signal.SIGKILL)
        write = Disk(before["id"]).write_later(0, block("w"))

        def replaced():
            device = api.get("data")["status"]
            return device["phase"] == "Live" and device["worker"]["pid"] != pid

        mortal.wait_dead_or(replaced)
        where = mortal.disarm()
        assert write.result() is None
        after = _assert_alone(api, "data")
        assert after["worker"]["pid"] != pid and after["id"] == before["id"]
        return where

    _every_death(flow)


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_a_disk_grows(mortal, file_of):
    """The old size or the new one, everywhere the same, and the worker stays."""
    if not ublk.features()["UPDATE_SIZE"]:
        return
    api = mortal.api
    spec = loop_spec("data", file_of(size=_OPERATIONS_MAX << 20), queues=1, size="1MiB")
    first = api.create(spec)["status"]

    def flow(number):
        old, new = number, number + 1
        api.put({**spec, "size": f"{old}MiB"})
        mortal.arm(number)
        status = mortal.ask("PUT", "/devices/data", json={**spec, "size": f"{new}MiB"})
        mortal.wait_dead_or(lambda: api.get("data")["status"]["size"] == new << 20)
        where = mortal.disarm()
        size = int(api.get("data")["spec"]["size"].removesuffix("MiB"))
        assert size == new or (status is None and size == old)
        api.wait_for("data", lambda device: device["status"]["size"] == size << 20, f"{size} MiB")
        found = _assert_alone(api, "data")
        disk = Disk(found["id"])
        assert disk.size() == size << 20 and found["worker"]["pid"] == first["worker"]["pid"]
        disk.write((size << 20) - 4096, block("e"))
        return where

    _every_death(flow)


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_a_worker_is_restarted(mortal, file_of):
    """What was acknowledged is done; a write meanwhile is answered, and no preflight worker is left."""
    if not ublk.is_new():
        return
    api = mortal.api
    api.create(loop_spec("data", file_of(size=8 << 20), queues=1))

    def flow(number):
        before = _assert_alone(api, "data")
        mortal.arm(number)
        status = mortal.ask("POST", "/devices/data/restart")
        write = Disk(before["id"]).write_later(0, block("w"))

        def restarted():
            device = api.get("data")["status"]
            return device["phase"] == "Live" and device["worker"]["pid"] != before["worker"]["pid"]

        mortal.wait_dead_or(restarted)
        where = mortal.disarm()
        assert status in (202, None)
        if status == 202:
            api.wait_other_worker("data", before["worker"]["pid"])
        assert write.result() is None
        assert _assert_alone(api, "data")["id"] == before["id"]
        return where

    _every_death(flow)


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_a_disk_is_recovered_on_request(mortal):
    """A manual device comes back exactly when that was asked for, and what waited for it is done."""
    if not ublk.is_new():
        return
    api = mortal.api
    api.create(null_spec("data", queues=1, recovery={"trigger": "manual"}))

    def flow(number):
        before = _assert_alone(api, "data")
        mortal.daemon.kill_worker("data")
        api.wait_phase("data", "Quiesced")
        write = Disk(before["id"]).write_later(0, block("w"))
        mortal.arm(number)
        status = mortal.ask("POST", "/devices/data/recover")
        mortal.wait_dead_or(lambda: api.phase("data") == "Live")
        where = mortal.disarm()
        assert status in (202, None)
        if status is None and api.wait_phase("data", "Live", "Quiesced")["status"]["phase"] == "Quiesced":
            assert mortal.ask("POST", "/devices/data/recover") == 202
        after = _assert_alone(api, "data")
        assert write.result() is None and after["id"] == before["id"]
        return where

    _every_death(flow)


@pytest.mark.long
@pytest.mark.storm
def test_dying_while_it_starts_and_finds_its_devices(mortal, file_of):
    """The same worker and the same number after every death."""
    api = mortal.api
    api.create(loop_spec("data", file_of(size=8 << 20), queues=1))
    before = _assert_alone(api, "data")

    def flow(number):
        mortal.daemon.stop()
        mortal.arm(number)
        mortal.daemon.start(ready=False)
        mortal.wait_dead_or(mortal.api.is_ready)
        where = mortal.disarm()
        after = _assert_alone(api, "data")
        assert (after["id"], after["worker"]["pid"]) == (before["id"], before["worker"]["pid"])
        return where

    _every_death(flow)


@pytest.mark.variant
@pytest.mark.long
def test_dying_while_a_disk_of_a_lost_database_is_adopted(mortal, file_of):
    """It is adopted, or can be: the same worker, number and uid after every death."""
    api, daemon = mortal.api, mortal.daemon
    uid = api.create(loop_spec("data", file_of(size=8 << 20), queues=1))["uid"]
    before = _assert_alone(api, "data")

    def flow(number):
        daemon.kill()
        shutil.rmtree(daemon.state)
        daemon.start()
        mortal.arm(number)
        status = mortal.ask("POST", "/devices/adopt", json={"uids": [uid]})
        mortal.wait_dead_or(lambda: api.names() and api.phase("data") == "Live")
        where = mortal.disarm()
        assert status in (200, None)
        if not api.names():
            assert status is None
            (item,) = api.ask("POST", "/devices/adopt", 200, json={"all": True})["items"]
            assert item["adopted"] and item["uid"] == uid
        after = _assert_alone(api, "data")
        assert (after["id"], after["worker"]["pid"]) == (before["id"], before["worker"]["pid"])
        assert api.get("data")["uid"] == uid
        return where

    _every_death(flow)
