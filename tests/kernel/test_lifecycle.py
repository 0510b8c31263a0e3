# SPDX-License-Identifier: MIT
"""A device from its creation to its end, as a client sees it."""

import os
import pathlib
import subprocess
import threading

import pytest

from harness import programs, ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.kernel_disks import detach_loop
from harness.shell import output, run
from harness.wait import wait_until


def test_create_use_delete(api):
    device = api.create(null_spec("data", queues=1, labels={"app": "db"}))
    status = device["status"]
    disk = Disk(status["id"])
    assert status["phase"] == "Live" and status["observedGeneration"] == device["generation"] == 1
    assert status["device"] == disk.path and status["links"] == ["/dev/ublk/by-name/data"]
    assert status["worker"]["restarts"] == 0 and status["recoveries"]["count"] == 0
    assert "USER_RECOVERY" in status["kernelFeatures"]
    assert condition_of(device)["status"] == "True"
    assert device["spec"]["labels"] == {"app": "db"}
    assert disk.size() == 64 << 20
    disk.write(0, block("a"))
    assert disk.read(0, 4096) == bytes(4096)
    api.delete("data")
    assert not disk.exists() and ublk.numbers() == []
    api.ask("GET", "/devices/data", 404)


@pytest.mark.long
def test_create_again_with_the_same_spec_and_with_another(api):
    first = api.create(null_spec("data"))
    again = api.create(null_spec("data"), status=200)
    assert again["uid"] == first["uid"] and again["status"]["worker"] == first["status"]["worker"]
    api.create(null_spec("data", size="32MiB"), status=409)
    assert api.get("data")["spec"]["size"] == first["spec"]["size"]


@pytest.mark.long
def test_two_creates_of_one_name_at_once(api, daemon):
    answers = []
    barrier = threading.Barrier(6)

    def create(size):
        client = type(api)(daemon.runtime / "ublkd.sock")
        barrier.wait()
        answers.append(
            client.request("POST", "/devices?wait=ready&timeout=60s", json=null_spec("data", size=size)).status_code
        )

    threads = [threading.Thread(target=create, args=(f"{16 + i}MiB",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] + 5 * [409]
    assert len(api.names()) == 1 and len(ublk.numbers()) == 1
    api.wait_phase("data", "Live")


def test_delete_a_disk_in_use_names_the_process(api):
    disk = Disk(api.create(null_spec("data"))["status"]["id"])
    with open(disk.path, "rb") as held:
        sleeper = subprocess.Popen(["sleep", "600"], stdin=held)
    try:
        problem = api.delete("data", status=409)
        assert f"{sleeper.pid} (sleep)" in problem["detail"]
        assert api.phase("data") == "Live" and disk.exists()
        api.ask("DELETE", "/devices/data?force=true", 202)
        wait_until(lambda: not disk.exists(), "the disk gone under its user")
    finally:
        sleeper.kill()
        sleeper.wait()
    # The kernel gives the number back with the last descriptor, and so does ublkd.
    wait_until(lambda: api.names() == [], "the record gone")


def test_delete_a_mounted_disk_names_the_mount(api, directory, file_of):
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    mount = directory / "mnt"
    mount.mkdir()
    run("mkfs.ext4", "-q", disk.path)
    run("mount", disk.path, mount)
    try:
        problem = api.delete("data", status=409)
        assert str(mount) in problem["detail"]
    finally:
        run("umount", mount)
    api.delete("data")


@pytest.mark.long
def test_a_disk_behind_a_loop_device_is_in_use(api, directory, file_of):
    """The kernel lists no holder, and no process has the disk open."""
    spec = loop_spec("data", file_of())
    disk = Disk(api.create(spec)["status"]["id"])
    mount = directory / "mnt"
    mount.mkdir()
    loop = output("losetup", "--find", "--show", disk.path)
    try:
        run("mkfs.ext4", "-q", loop)
        run("mount", loop, mount)
        assert loop in api.delete("data", status=409)["detail"]
        assert loop in api.put(spec | {"readOnly": True}, status=409)["detail"]
        run("umount", mount)
        assert loop in api.delete("data", status=409)["detail"]
        assert api.phase("data") == "Live" and disk.exists()
    finally:
        subprocess.run(["umount", mount], check=False, stderr=subprocess.DEVNULL)
        detach_loop(loop)
    api.delete("data")


@pytest.mark.long
def test_a_loop_device_on_a_partition_counts(api, file_of):
    disk = Disk(api.create(loop_spec("data", file_of()))["status"]["id"])
    run("sfdisk", "--quiet", "--no-reread", "--wipe=never", disk.path, input="size=8MiB\n")
    partition = f"{disk.path}p1"
    wait_until(lambda: pathlib.Path(partition).is_block_device(), "the partition")
    loop = output("losetup", "--find", "--show", partition)
    try:
        assert loop in api.delete("data", status=409)["detail"]
    finally:
        detach_loop(loop)
    api.delete("data")


@pytest.mark.long
def test_delete_without_wait_is_accepted_and_done_later(api):
    disk = Disk(api.create(null_spec("data"))["status"]["id"])
    api.ask("DELETE", "/devices/data", 202)
    wait_until(lambda: not disk.exists() and api.names() == [], "the device gone")


@pytest.mark.long
def test_create_without_wait_is_answered_at_once(api):
    device = api.create(null_spec("data"), wait=None)
    assert device["status"]["phase"] in ("Pending", "Starting", "Live")
    api.wait_phase("data", "Live")


@pytest.mark.long
def test_wait_that_times_out_reports_why_and_the_request_stays(make_daemon, directory):
    gate, wrapper = directory / "gate", directory / "worker"
    wrapper.write_text(f'#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep 0.1; done\nexec {programs.worker()} "$@"\n')
    wrapper.chmod(0o755)
    daemon = make_daemon(worker=wrapper).start()
    problem = daemon.api.create(null_spec("data"), status=504, timeout="3s")
    assert "Starting" in problem["detail"]
    gate.touch()
    daemon.api.wait_phase("data", "Live")


def test_a_fixed_number_is_kept(api):
    device = api.create(null_spec("data", id=7))
    assert device["status"]["id"] == 7 and Disk(7).exists()
    other = api.create(null_spec("other"))
    assert other["status"]["id"] == 0
    problem = api.create(null_spec("third", id=7), status=409)
    assert "7" in problem["detail"]


@pytest.mark.long
def test_disabled_keeps_record_and_number(api):
    first = api.create(null_spec("first"))
    second = api.create(null_spec("second"))
    number = first["status"]["id"]
    disabled = api.put(null_spec("first", enabled=False))
    assert disabled["status"]["phase"] == "Disabled" and disabled["status"]["worker"] is None
    assert not Disk(number).exists() and ublk.numbers() == [second["status"]["id"]]
    third = api.create(null_spec("third"))
    assert third["status"]["id"] not in (number, second["status"]["id"])
    enabled = api.put(null_spec("first", enabled=True))
    assert enabled["status"]["id"] == number and enabled["uid"] == first["uid"] and Disk(number).exists()


@pytest.mark.long
def test_put_of_another_spec_recreates_the_disk(api, file_of):
    path = file_of(size=32 << 20)
    first = api.create(null_spec("data"))
    second = api.put(loop_spec("data", path))
    disk = Disk(second["status"]["id"])
    assert second["generation"] == 2 and second["status"]["observedGeneration"] == 2
    assert second["status"]["id"] == first["status"]["id"]
    assert second["status"]["worker"]["pid"] != first["status"]["worker"]["pid"]
    assert disk.size() == 32 << 20
    disk.write(4096, block("x"))
    assert path.read_bytes()[4096:8192] == block("x")


@pytest.mark.long
def test_put_that_needs_a_new_disk_is_refused_while_it_is_in_use(api):
    device = api.create(null_spec("data"))
    disk = Disk(device["status"]["id"])
    with open(disk.path, "rb"):
        problem = api.put(null_spec("data", size="32MiB", queues=1), status=409)
        assert problem["type"].endswith("in-use") and str(os.getpid()) in problem["detail"]
    assert disk.size() == 64 << 20 and api.get("data")["generation"] == 1


@pytest.mark.long
def test_a_change_of_labels_leaves_the_worker_alone(api):
    before = api.create(null_spec("data"))
    after = api.put(null_spec("data", labels={"a": "b"}))
    assert after["generation"] == 2 and after["status"]["worker"] == before["status"]["worker"]
    found = api.ask("GET", "/devices?label=a=b", 200)["items"]
    assert [device["name"] for device in found] == ["data"]


@pytest.mark.long
def test_many_devices_at_once(api):
    for i in range(12):
        api.create(null_spec(f"disk-{i}", queues=1, queueDepth=8), wait=None)
    for i in range(12):
        api.wait_phase(f"disk-{i}", "Live")
    numbers = {api.get(f"disk-{i}")["status"]["id"] for i in range(12)}
    assert numbers == set(range(12)) and ublk.disks() == sorted(numbers)


def test_worker_and_its_threads_can_be_recognised(api):
    pid = api.create(null_spec("data", queues=2))["status"]["worker"]["pid"]
    process = pathlib.Path("/proc", str(pid))
    names = {(task / "comm").read_text().strip() for task in (process / "task").iterdir()}
    assert {"ublkd-worker", "queue-0", "queue-1"} <= names
    assert b"\0data\0" in (process / "cmdline").read_bytes()


def test_worker_has_no_privileges_once_it_serves(api):
    pid = api.create(null_spec("data", queues=2))["status"]["worker"]["pid"]
    for task in pathlib.Path("/proc", str(pid), "task").iterdir():
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0, (task / "comm").read_text()
