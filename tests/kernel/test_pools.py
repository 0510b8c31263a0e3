# SPDX-License-Identifier: MIT
"""Disks whose image ublkd makes: over deaths, growth, and up to the removal, with the real driver and worker."""

import contextlib
import json
import os
import pathlib
import signal

import pytest

from harness import ublk
from harness.api import condition_of
from harness.disk import Disk, block
from harness.fio import Fio
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # little depends on the kernel: each test is run by one

_MIB = 1 << 20


@pytest.fixture(name="pool")
def pool_on_ext4(ext4):
    """The directory of a pool."""
    pool = ext4 / "pool"
    pool.mkdir(mode=0o700)
    return pool


@pytest.fixture(name="policy")
def policy_with_a_pool(pool, directory):
    """The option of ublkd for a policy with the pool fast."""
    policy = directory / "policy.d"
    policy.mkdir(mode=0o755)
    (policy / "pools.json").write_text(json.dumps({"pools": {"fast": {"directory": str(pool)}}}), encoding="utf-8")
    return ("--policy-dir", str(policy))


@pytest.fixture(name="daemon")
def daemon_with_a_pool(make_daemon, policy):
    """A daemon that runs, and has the pool fast."""
    return make_daemon(more_options=policy).start()


def _spec(name="data", size="64MiB", keep=None, **more):
    target = {"type": "loop", "pool": "fast"} | ({} if keep is None else {"keep": keep})
    return {"name": name, "target": target, "size": size, **more}


def _image(api, name="data"):
    return pathlib.Path(api.get(name)["spec"]["target"]["path"])


def _reasons(daemon, name="data"):
    return [event["reason"] for event in daemon.events(name)]


def _reason(api, name="data"):
    return condition_of(api.get(name))["reason"]


@contextlib.contextmanager
def _refused(pool):
    """ublkd does not use a pool that others may write to."""
    pool.chmod(0o770)
    yield
    pool.chmod(0o700)


def test_an_image_from_its_making_to_its_end(pool, daemon):
    disk = Disk(daemon.api.create(_spec())["status"]["id"])
    image = _image(daemon.api)
    assert image.parent == pool and [*pool.iterdir()] == [image]
    info = image.stat()
    assert (info.st_size, info.st_mode & 0o7777, info.st_uid) == (64 * _MIB, 0o600, 0)
    assert info.st_blocks * 512 < _MIB, "it is sparse"
    assert disk.size() == 64 * _MIB
    disk.write(0, block("a"))
    daemon.api.delete("data")
    assert daemon.api.names() == [] and [*pool.iterdir()] == []
    assert "ImageCreated" in _reasons(daemon) and "ImageDeleted" in _reasons(daemon)


def test_an_image_that_is_kept(pool, daemon):
    disk = Disk(daemon.api.create(_spec())["status"]["id"])
    image = _image(daemon.api)
    disk.write(4096, block("k"))
    worker = daemon.worker_pid("data")
    daemon.api.put(_spec(keep=True))
    assert daemon.worker_pid("data") == worker, "the disk stays when `keep` changes"
    daemon.api.delete("data")
    assert image.read_bytes()[4096:8192] == block("k")
    (event,) = [event for event in daemon.events("data") if event["reason"] == "ImageKept"]
    assert str(image) in event["message"]
    # By its path it is a file like any other.
    disk = Disk(daemon.api.create({"name": "again", "target": {"type": "loop", "path": str(image)}})["status"]["id"])
    assert disk.read(4096, 4096) == block("k")
    daemon.api.delete("again")
    assert image.exists()


@pytest.mark.variant  # test_tenants.py has a tenant do it
def test_data_over_deaths_of_workers_and_of_ublkd(pool, daemon, directory):
    disk = Disk(daemon.api.create(_spec(queues=2))["status"]["id"])
    image = _image(daemon.api)
    fio = Fio(directory, disk, jobs=2, size="24M")
    try:
        fio.wait_running()
        for _ in range(2):
            daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
            daemon.kill()
            daemon.start()
            disk.wait_progress(20)
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert _image(daemon.api) == image and [*pool.iterdir()] == [image]


def test_an_image_grows_with_its_disk(pool, daemon, directory):
    """Under load where the kernel can change the size of a disk; else a new disk has the same data."""
    disk = Disk(daemon.api.create(_spec())["status"]["id"])
    image = _image(daemon.api)
    disk.write(0, block("f"))
    grown = _spec(size="96MiB")
    if ublk.features()["UPDATE_SIZE"]:
        fio = Fio(directory, disk, jobs=1, size="24M")
        try:
            fio.wait_running()
            daemon.api.put(grown)
            fio.finish().assert_clean()
        finally:
            fio.kill()
        daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    else:
        daemon.api.put(grown)
        disk = Disk(daemon.api.get("data")["status"]["id"])
        assert disk.read(0, 4096) == block("f")
    assert disk.size() == image.stat().st_size == 96 * _MIB
    disk.write(96 * _MIB - 4096, block("e"))
    assert disk.read(96 * _MIB - 4096, 4096) == block("e")


def test_an_image_grows_while_there_is_no_disk(pool, daemon):
    """Also over a start of ublkd, which knows nothing of the old disk then."""
    disk = Disk(daemon.api.create(_spec())["status"]["id"])
    image = _image(daemon.api)
    disk.write(0, block("f"))
    daemon.api.put(_spec(enabled=False))
    daemon.stop()
    daemon.start()
    disk = Disk(daemon.api.put(_spec(size="96MiB"))["status"]["id"])
    assert disk.size() == image.stat().st_size == 96 * _MIB and disk.read(0, 4096) == block("f")


def test_an_image_that_was_cut_off_is_not_filled_with_zeroes(pool, daemon):
    daemon.api.create(_spec())
    image = _image(daemon.api)
    daemon.api.put(_spec(enabled=False))
    os.truncate(image, _MIB)
    daemon.stop()
    daemon.start()
    daemon.api.put(_spec(), status=422)
    daemon.api.wait_for("data", lambda device: condition_of(device)["reason"] == "BackingTooSmall", "too small")
    assert image.stat().st_size == _MIB


def test_an_image_is_never_made_a_second_time(pool, daemon):
    daemon.api.create(_spec())
    image = _image(daemon.api)
    daemon.api.put(_spec(enabled=False))
    image.unlink()
    daemon.api.put(_spec(), status=422)
    assert _reason(daemon.api) == "BackingFileMissing"
    daemon.kill()
    daemon.start()
    daemon.api.wait_for("data", lambda device: condition_of(device)["reason"] == "BackingFileMissing",
                        "the missing image in the status")
    assert [*pool.iterdir()] == []
    daemon.api.delete("data")  # what is gone need not be deleted


def test_a_pool_that_cannot_be_used(pool, daemon):
    with _refused(pool):
        daemon.api.create(_spec(), status=422)
        assert _reason(daemon.api) == "PoolUnavailable" and [*pool.iterdir()] == []
    device = daemon.api.wait_phase("data", "Live")
    assert device["spec"]["target"]["path"] == str(_image(daemon.api))


def test_an_open_disk_keeps_its_image(pool, daemon):
    disk = Disk(daemon.api.create(_spec())["status"]["id"])
    image = _image(daemon.api)
    with open(disk.path, "rb"):
        daemon.api.ask("DELETE", "/devices/data", 409)
        assert image.exists()
    daemon.api.delete("data")
    assert not image.exists()


def test_a_removal_that_cannot_delete_the_image(pool, daemon):
    daemon.api.create(_spec())
    image = _image(daemon.api)
    with _refused(pool):
        daemon.api.ask("DELETE", "/devices/data", 202)
        daemon.api.wait_for("data", lambda device: condition_of(device)["reason"] == "ImageNotDeleted",
                            "the reason why the record stays")
        assert not ublk.numbers() and image.exists()
        daemon.kill()
        daemon.start()
        assert daemon.api.names() == ["data"] and image.exists()
    wait_until(lambda: daemon.api.names() == [], "no device")
    assert not image.exists()


def _fill(path):
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        for size in (4096, 512, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def test_a_death_between_the_image_and_the_record(pool, make_daemon, policy, directory):
    """A full file system of the database keeps the record, when the image is gone."""
    state = directory / "state"
    state.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", state)
    try:
        daemon = make_daemon(state=state, more_options=policy).start()
        daemon.api.create(_spec())
        image = _image(daemon.api)
        with _refused(pool):
            daemon.api.ask("DELETE", "/devices/data", 202)
            daemon.api.wait_for("data", lambda device: condition_of(device)["reason"] == "ImageNotDeleted",
                                "the reason why the record stays")
            _fill(state / "filler")
        wait_until(lambda: not image.exists(), "the image gone")
        daemon.kill()
        (state / "filler").unlink()
        daemon.start()
        wait_until(lambda: daemon.api.names() == [], "no device")
        assert [*pool.iterdir()] == []
        daemon.stop()
    finally:
        run("umount", "-l", state)


@pytest.mark.storm
def test_deaths_while_images_are_made_and_deleted(pool, daemon):
    """Whatever ublkd was about to do: in the end there is a device with its image, or neither."""
    for index in range(8):
        name = f"d{index}"
        daemon.api.ask("POST", "/devices", 201, json=_spec(name, size="8MiB"))
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(60)
        daemon.start()
        daemon.api.wait_phase(name, "Live")
        assert _image(daemon.api, name).stat().st_size == 8 * _MIB
        assert len([*pool.iterdir()]) == 1
        daemon.api.ask("DELETE", f"/devices/{name}", 202)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(60)
        daemon.start()
        wait_until(lambda: daemon.api.names() == [], "no device")
        assert [*pool.iterdir()] == []
