# SPDX-License-Identifier: MIT
"""A disk over several backing stores: it has each of them in its place, or no I/O reaches any."""

import contextlib
import fcntl
import os
import pathlib
import signal
import struct

import pytest

from harness import ublk
from harness.api import condition_of
from harness.disk import Disk, block
from harness.fio import Fio
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_LATE = 8  # seconds; see test_late_writes.py
_CHUNK = 64 << 10
_SIZE = 8 * _MIB
_PLACES = ["/target/children/0", "/target/children/1"]
_OFD_SETLK = 37  # F_OFD_SETLK: Python 3.11 does not name it
_MERGE = {"Content-Type": "application/merge-patch+json"}


def _stripe(*paths, **more):
    children = [{"type": "loop", "path": str(path)} for path in paths]
    return {"name": "data", "target": {"type": "stripe", "chunk": _CHUNK, "children": children}, **more}


@pytest.fixture
def stores(ext4, file_of):
    """Two files; on them `_fill()` writes "a" and "b"."""
    return [file_of(f"{letter}.img", size=_SIZE, where=ext4) for letter in "ab"]


def _fill(disk):
    """The first chunk is in the first store, the second one in the second."""
    disk.write(0, block("a"))
    disk.write(_CHUNK, block("b"))


def _assert_filled(disk):
    assert disk.read(0, 4096) == block("a") and disk.read(_CHUNK, 4096) == block("b")


def _bytes_of(path, offset, length):
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def _head(path):
    return _bytes_of(path, 0, 4096)


def _replace(path, letter="z"):
    """Put another file at the path; return where the first one is now."""
    kept, fresh = path.with_suffix(".kept"), path.with_suffix(".fresh")
    with open(fresh, "wb") as file:
        file.write(block(letter))
        file.truncate(_SIZE)
    path.rename(kept)
    fresh.rename(path)
    return kept


def _put_back(path):
    path.unlink()
    path.with_suffix(".kept").rename(path)


def _exchange(stores):
    one, other = stores
    aside = one.with_suffix(".aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def _lose_everything(daemon):
    """No process has a descriptor of a store any more: worker and ublkd die, and the disk stays."""
    pid = daemon.worker_pid("data")
    daemon.kill()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}/fd").exists(), "the worker gone")


def _found(device):
    """The identity of what was found in place of each store; None: nothing else."""
    return [store["found"] and store["found"]["identity"] for store in device["status"]["backing"]["stores"]]


def _wait_changed(api, number):
    """Wait until the store of that place has been refused; return the device."""
    return api.wait_for(
        "data",
        lambda device: device["status"]["phase"] == "Failed"
        and condition_of(device)["reason"] == "BackingChanged"
        and _PLACES[number] in condition_of(device)["message"]
        and _found(device)[number],
        f"refused for {_PLACES[number]}",
    )


def _accept(api, number, identity, status=(200, 202), wait=""):
    query = f"store={_PLACES[number]}&accept-backing={identity}{wait}"
    return api.ask("POST", f"/devices/data/recover?{query}", status)


def _accept_soon(api, number, identity):
    """While a request before it is tried, what is found is not known yet."""
    query = f"store={_PLACES[number]}&accept-backing={identity}"
    wait_until(lambda: api.request("POST", f"/devices/data/recover?{query}").status_code in (200, 202), "accepted")


def _create(api, stores, **more):
    device = api.create(_stripe(*stores, **more))
    disk = Disk(device["status"]["id"])
    _fill(disk)
    return disk


@pytest.mark.both
def test_each_store_has_its_bytes_over_all_deaths(daemon, stores):
    api, disk = daemon.api, _create(daemon.api, stores)
    shown = api.get("data")["status"]["backing"]
    assert [store["target"] for store in shown["stores"]] == _PLACES
    assert [store["path"] for store in shown["stores"]] == [str(path) for path in stores]
    assert shown["kept"] and all(store["kept"] and store["identity"] for store in shown["stores"])
    disk.flush()
    assert [_head(path) for path in stores] == [block("a"), block("b")]
    api.wait_other_worker("data", daemon.kill_worker("data"))
    _assert_filled(disk)
    pid = daemon.worker_pid("data")
    daemon.kill()
    disk.write(4096, block("c"))
    daemon.start()
    api.wait_for("data", lambda device: device["status"]["backing"]["kept"], "whose stores are kept")
    assert daemon.worker_pid("data") == pid  # adopted
    for path in stores:
        _replace(path)
    api.wait_other_worker("data", daemon.kill_worker("data"))  # each has the descriptors of its worker
    _assert_filled(disk)
    api.restart("data")
    disk.write(_CHUNK + 4096, block("d"))
    assert disk.read(4096, 4096) == block("c") and disk.read(_CHUNK + 4096, 4096) == block("d")
    assert [_head(path) for path in stores] == [block("z")] * 2, "another file was written to"
    api.delete("data")


@pytest.mark.parametrize("number", [1, pytest.param(0, marks=pytest.mark.variant)])
def test_a_disk_waits_if_one_store_was_replaced(daemon, stores, number):
    """The disk waits, and writes nothing, until that store is back or another one is accepted for that place."""
    api, disk = daemon.api, _create(daemon.api, stores)
    right = [store["identity"] for store in api.get("data")["status"]["backing"]["stores"]]
    _lose_everything(daemon)
    _replace(stores[number])
    before = [path.read_bytes() for path in stores]
    write = disk.write_later(number * _CHUNK + 4096, block("w"))
    other_write = disk.write_later((1 - number) * _CHUNK + 4096, block("v"))
    daemon.start()
    device = _wait_changed(api, number)
    found = _found(device)
    assert found[1 - number] is None and found[number] != right[number]
    assert f"--store {_PLACES[number]} --accept-backing '{found[number]}'" in condition_of(device)["message"]
    assert not write.done and not other_write.done
    assert [path.read_bytes() for path in stores] == before
    api.ask("POST", f"/devices/data/recover?accept-backing={found[number]}", 409)  # for which of them?
    _accept(api, 1 - number, found[number], 409)
    _accept(api, number, "another", 409)
    _put_back(stores[number])
    api.wait_phase("data", "Live")
    write.result()
    other_write.result()
    _assert_filled(disk)
    # The next time it is given up.
    _lose_everything(daemon)
    _replace(stores[number])
    daemon.start()
    found = _found(_wait_changed(api, number))
    _accept_soon(api, number, found[number])
    api.wait_phase("data", "Live")
    assert disk.read(number * _CHUNK, 4096) == block("z")
    assert disk.read((1 - number) * _CHUNK, 4096) == block("ab"[1 - number])
    now = [store["identity"] for store in api.get("data")["status"]["backing"]["stores"]]
    assert now[number] == found[number] and now[1 - number] == right[1 - number]
    api.delete("data")


def test_a_consent_to_one_store_is_none_to_the_other(daemon, stores):
    api, disk = daemon.api, _create(daemon.api, stores)
    _lose_everything(daemon)
    for path in stores:
        _replace(path)
    before = [path.read_bytes() for path in stores]
    daemon.start()
    device = api.wait_for("data", lambda device: any(_found(device)), "with a store that was refused")
    first = 0 if _found(device)[0] else 1
    _accept_soon(api, first, _found(device)[first])
    device = _wait_changed(api, 1 - first)
    assert [path.read_bytes() for path in stores] == before
    _accept_soon(api, 1 - first, _found(device)[1 - first])
    api.wait_phase("data", "Live")
    assert disk.read(0, 4096) == block("z") and disk.read(_CHUNK, 4096) == block("z")
    api.delete("data")


def test_two_stores_have_exchanged_their_names(daemon, stores):
    """Neither is accepted in the place of the other; the same exchange in the spec puts it right."""
    api, disk = daemon.api, _create(daemon.api, stores)
    refused = api.put(_stripe(*reversed(stores)), status=422)  # while the disk is there
    assert refused["type"].endswith(":cannot-start") and api.phase("data") == "Live", refused
    _assert_filled(disk)
    _lose_everything(daemon)
    _exchange(stores)
    before = [path.read_bytes() for path in stores]
    daemon.start()
    device = api.wait_for("data", lambda device: any(_found(device)), "with a store that was refused")
    number = 0 if _found(device)[0] else 1
    wait_until(lambda: _accept_refused(api, number), "a consent that is refused")
    assert [path.read_bytes() for path in stores] == before
    api.ask("PATCH", "/devices/data", (200, 202), json={"enabled": False}, headers=_MERGE)
    api.wait_phase("data", "Disabled")
    device = api.put(_stripe(*reversed(stores)))
    disk = Disk(device["status"]["id"])
    _assert_filled(disk)
    api.delete("data")


def _accept_refused(api, number):
    found = _found(api.get("data"))[number]
    return found and _accept(api, number, found, 409)["detail"]


@contextlib.contextmanager
def _locked(path):
    """Another process has locked the file, and is this one."""
    with open(path, "r+b") as file:
        fcntl.fcntl(file, _OFD_SETLK, struct.pack("@hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        yield


def _refused(api, spec):
    """Check that the device fails, because a store is in use. Remove it, and return the message."""
    problem = api.create(spec, status=422)
    assert condition_of(api.get("data"))["reason"] == "BackingInUse", problem
    api.delete("data")
    return problem["detail"]


def test_no_store_that_is_in_use(daemon, stores, file_of):
    """And of a disk that gets one of two stores, the other one stays free."""
    api, alone = daemon.api, {"name": "alone", "target": {"type": "loop", "path": str(stores[0])}}
    with _locked(stores[1]):
        assert str(os.getpid()) in _refused(api, _stripe(*stores))
    api.create(alone)  # the first one is not locked
    _refused(api, _stripe(*stores))
    api.delete("alone")
    hard = stores[0].with_suffix(".link")
    os.link(stores[0], hard)
    for twice in (stores[0], hard):
        _refused(api, _stripe(stores[0], twice))
    many = [file_of(f"{i}.img", size=_MIB) for i in range(17)]
    problem = api.create(_stripe(*many), status=422)
    assert problem["errors"][0]["reason"] == "TooManyStores", problem
    assert Disk(api.create(_stripe(*many[:16]))["status"]["id"]).size() == 16 * _MIB
    api.delete("data")


def _set_size(api, size, status=200):
    return api.ask("PATCH", "/devices/data?wait=ready&timeout=60s", status, json={"size": size}, headers=_MERGE)


@pytest.mark.both
def test_a_stripe_grows_with_both_stores(daemon, stores):
    """While it is served where the kernel can do that, else as another disk. Old and new bytes keep their places over all deaths."""
    old, new, more = 2 * _SIZE, 3 * _SIZE, 4 * _CHUNK
    api, disk = daemon.api, _create(daemon.api, stores, size=old)
    pid = daemon.worker_pid("data")
    disk.write(old - more, block("o", more))
    os.truncate(stores[0], new // 2)
    _set_size(api, new, 422)  # there is no place for half of each row
    assert api.phase("data") == "Live" and disk.size() == old
    _assert_filled(disk)
    os.truncate(stores[1], new // 2)
    device = _set_size(api, new)
    disk = Disk(device["status"]["id"])
    assert disk.size() == device["status"]["size"] == new
    assert (daemon.worker_pid("data") == pid) == ublk.features()["UPDATE_SIZE"]
    _assert_filled(disk)
    assert disk.read(old - more, 2 * more) == block("o", more) + bytes(more)
    disk.write(old - _CHUNK, block("p", _CHUNK) + block("q", _CHUNK))  # over the old end
    disk.write(new - _CHUNK, block("e", _CHUNK))
    pid = daemon.worker_pid("data")
    _lose_everything(daemon)
    daemon.start()
    api.wait_other_worker("data", pid)
    _assert_filled(disk)
    assert disk.read(old - more, more + _CHUNK) == block("o", more - _CHUNK) + block("p", _CHUNK) + block("q", _CHUNK)
    assert disk.read(new - _CHUNK, _CHUNK) == block("e", _CHUNK)
    disk.flush()
    assert [_bytes_of(path, _SIZE - _CHUNK, 2 * _CHUNK) for path in stores] == [
        block("o", _CHUNK) + block("q", _CHUNK), block("p", _CHUNK) + bytes(_CHUNK)]
    assert [_bytes_of(path, new // 2 - _CHUNK, _CHUNK) for path in stores] == [bytes(_CHUNK), block("e", _CHUNK)]
    api.delete("data")


def test_a_list_grows_with_its_last_store(daemon, stores):
    if not ublk.features()["UPDATE_SIZE"]:
        assert os.uname().release.startswith("6.12"), "no disk grows while it is served, on a kernel that can do it"
        return
    first = {"type": "linear", "length": 4 * _MIB, "child": {"type": "loop", "path": str(stores[0])}}
    children = [first, {"type": "loop", "path": str(stores[1])}]
    spec = {"name": "data", "target": {"type": "linear", "children": children}, "size": "8MiB"}
    disk = Disk(daemon.api.create(spec)["status"]["id"])
    pid = daemon.worker_pid("data")
    daemon.api.put({**spec, "size": "12MiB"})
    wait_until(lambda: disk.size() == 12 * _MIB, "the disk has grown")
    disk.write(12 * _MIB - 4096, block("e"))
    assert daemon.worker_pid("data") == pid
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    assert disk.read(12 * _MIB - 4096, 4096) == block("e")
    daemon.api.delete("data")


@pytest.mark.variant
def test_killed_workers_and_a_killed_supervisor_lose_nothing(daemon, stores, directory):
    device = daemon.api.create(_stripe(*stores, recovery={"onCrash": "reissue"}))
    disk = Disk(device["status"]["id"])
    fio = Fio(directory, disk)
    try:
        fio.wait_running()
        for _ in range(4):
            daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
            disk.wait_progress(20)
        pid = daemon.worker_pid("data")
        daemon.kill()
        disk.wait_progress(20)
        daemon.start()
        assert daemon.worker_pid("data") == pid  # adopted
        disk.wait_progress(20)
    finally:
        job = fio.finish()
    job.assert_clean()


def _paths(device):
    return condition_of(device, "PathLeadsToStore") or {}


def test_each_path_is_watched(daemon, stores):
    """The condition and the event name the place; a change that would take what is at the path now is refused."""
    api, disk = daemon.api, _create(daemon.api, stores)
    api.wait_for("data", lambda device: _paths(device).get("status") == "True", "whose paths lead to its stores")
    kept = _replace(stores[1])
    device = api.wait_for("data", lambda device: _paths(device).get("reason") == "PathLeadsElsewhere", "with a path that leads elsewhere")
    message = _paths(device)["message"]
    assert f"{stores[1]} ({_PLACES[1]}/path)" in message and _PLACES[0] not in message
    assert [event["message"] for event in daemon.events("data") if event["reason"] == "PathLeadsElsewhere"] == [message]
    problem = api.ask("PATCH", "/devices/data", 409, json={"queueDepth": 64}, headers=_MERGE)
    assert problem["type"].endswith(":path-elsewhere")
    stores[0].rename(stores[0].with_suffix(".moved"))
    device = api.wait_for("data", lambda device: _PLACES[0] in _paths(device).get("message", ""), "with two of them")
    assert _PLACES[1] in _paths(device)["message"]
    stores[0].with_suffix(".moved").rename(stores[0])
    _put_back(stores[1])
    assert not kept.exists()
    api.wait_for("data", lambda device: _paths(device).get("status") == "True", "whose paths are right again")
    _assert_filled(disk)
    api.ask("PATCH", "/devices/data?wait=ready&timeout=60s", 200, json={"queueDepth": 64}, headers=_MERGE)
    _assert_filled(disk)
    api.delete("data")


@pytest.mark.storm
def test_little_room_below_one_store_is_shown(daemon, stores, directory):
    small = directory / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", small)
    try:
        sparse = small / "b.img"
        with open(sparse, "wb") as file:
            file.truncate(32 * _MIB)
        _create(daemon.api, [stores[0], sparse])
        with open(small / "filler", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 62 * _MIB)
        low = daemon.api.wait_for(
            "data", lambda device: (condition_of(device, "Space") or {}).get("reason") == "StoreLow", "with little room", timeout=120
        )
        assert f"{_PLACES[1]}/path" in condition_of(low, "Space")["message"] and _PLACES[0] not in condition_of(low, "Space")["message"]
        (small / "filler").unlink()
        daemon.api.wait_for("data", lambda device: condition_of(device, "Space") is None, "with room", timeout=120)
        assert [event["reason"] for event in daemon.events("data") if event["reason"].startswith("Store")] == ["StoreLow", "StoreNotLow"]
        daemon.api.delete("data")
    finally:
        run("umount", small)


def test_no_late_write_of_a_dead_worker(daemon_with_slow_store, stores):
    """The fence holds for each store: writes of a dead worker that land late overtake no newer ones."""
    daemon, slow = daemon_with_slow_store
    api = daemon.api
    spec = _stripe(stores[0], slow.path, queues=1, recovery={"onCrash": "reissue"})
    disk = Disk(api.create(spec)["status"]["id"])
    disk.wait_timeout_set()
    slow.slow(_LATE)
    older = [disk.write_later(_CHUNK * (2 * i + 1), block("o")) for i in range(4)]
    slow.wait_arrived(len(older))
    pid = daemon.kill_worker("data")
    slow.fast()
    for write in older:
        write.result()
    api.wait_other_worker("data", pid)
    for i in range(4):
        disk.write(_CHUNK * (2 * i + 1), block("n"))
    slow.land()
    slow.wait_landed()
    assert all(disk.read(_CHUNK * (2 * i + 1), 4096) == block("n") for i in range(4))
    api.delete("data")


@pytest.fixture
def daemon_with_slow_store(store, make_daemon):
    """The store goes after the daemon."""
    return make_daemon().start(), store
