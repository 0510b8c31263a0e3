# SPDX-License-Identifier: MIT
"""Partitions of a disk: ublkd finds and shows them, because the kernel does not where a worker has no privileges."""

import contextlib
import errno
import os
import pathlib

import pytest

from harness import ublk
from harness.api import condition_of, loop_spec, null_spec
from harness.disk import Disk, block
from harness.shell import run
from harness.wait import holds_for, wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_MIB = 1 << 20
_GPT = "label: gpt\nstart=1MiB,size=8MiB\nstart=16MiB,size=16MiB\n"
_TWO = {1: (1, 8), 2: (16, 16)}


def _write_table(path, script):
    """Write a partition table. On a disk, sfdisk would take the refusal of BLKRRPART for a sign that it is in use."""
    run("sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", "--wipe=never", path, input=script)


def _write_table_of_store(store):
    """One partition, for blocks of 4 KiB. Not through the disk of the store: udev would read that."""
    run("fdisk", "--sector-size", "4096", "--wipe", "never", store.file, input="g\nn\n1\n256\n511\nw\n")


def _shown(disk):
    """{number: (start, size)} in MiB; None if one goes while it is read."""
    found = {}
    try:
        for folder in disk.sys.glob(f"ublkb{disk.number}p*"):
            start, size = (int((folder / name).read_text()) * 512 / _MIB for name in ("start", "size"))
            found[int((folder / "partition").read_text())] = (start, size)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return None
    return found


def _wait_shown(disk, wanted):
    wait_until(lambda: _shown(disk) == wanted, lambda: f"the partitions {wanted}; there are {_shown(disk)}")


def _node(disk, number):
    path = f"{disk.path}p{number}"
    wait_until(pathlib.Path(path).is_block_device, path)
    return path


@contextlib.contextmanager
def _mounted(disk, number, where):
    """A new ext4 on a partition; a file of it."""
    path = _node(disk, number)
    run("mkfs.ext4", "-q", path)
    where.mkdir()
    run("mount", path, where)
    try:
        (where / "file").write_bytes(block("f"))
        run("sync", "-f", where)
        yield where / "file"
    finally:
        run("umount", where)


def _wait_trouble(api, reason):
    device = api.wait_for(
        "data", lambda device: (condition_of(device, "Partitions") or {}).get("reason") == reason, f"with {reason}"
    )
    assert condition_of(device, "Partitions")["status"] == "False" and device["status"]["phase"] == "Live"


def _wait_no_trouble(api):
    api.wait_for("data", lambda device: condition_of(device, "Partitions") is None, "without trouble")


@pytest.fixture(name="table")
def disk_with_table(api, file_of):
    """A disk with a table that was there before."""
    path = file_of()
    _write_table(path, _GPT)
    disk = Disk(api.create(loop_spec("data", path, queues=2))["status"]["id"])
    _wait_shown(disk, _TWO)
    return disk


def test_no_queue_had_privileges_when_it_offered_its_requests(table):
    """Else the kernel would read the table itself: it says whether it may."""
    assert table.attribute("partscan") == "0"
    assert run("blockdev", "--rereadpt", table.path, check=False).returncode != 0


@pytest.mark.parametrize("more", [{}, {"blockSize": 4096}])
def test_logical_partitions_are_found(api, file_of, more):
    """The extended one has what the kernel gives it; blocks of 4 KiB are asked of the disk, whose table has others."""
    path = file_of()
    _write_table(path, "label: dos\nstart=1MiB,size=8MiB,type=83\nstart=16MiB,size=32MiB,type=5\nstart=17MiB,size=4MiB,type=83\n")
    disk = Disk(api.create(loop_spec("data", path, **more))["status"]["id"])
    if more:
        # Counted in these blocks, all of it lies beyond the end.
        _wait_trouble(api, "PartitionInvalid")
        assert _shown(disk) == {}
    else:
        _wait_shown(disk, {1: (1, 8), 2: (16, 1 / 1024), 5: (17, 4)})


def test_a_disk_without_a_table_has_no_partitions_and_no_trouble(api):
    disk = Disk(api.create(null_spec("data"))["status"]["id"])
    holds_for(lambda: _shown(disk) == {}, 2, "no partitions")
    assert condition_of(api.get("data"), "Partitions") is None


def test_a_table_that_a_program_writes_is_shown(table):
    """Without a command to do so: the program closes the disk."""
    _write_table(table.path, _GPT + "start=40MiB,size=4MiB\n")
    _wait_shown(table, _TWO | {3: (40, 4)})
    run("wipefs", "--quiet", "--all", "--force", table.path)
    _wait_shown(table, {})


def test_programs_can_add_and_remove_partitions(table):
    run("partx", "--delete", table.path)
    assert _shown(table) == {}
    run("partx", "--add", table.path)
    assert _shown(table) == _TWO


@pytest.mark.long
def test_none_are_shown_where_none_are_wanted(api, file_of, daemon, directory):
    """The field changes under the disk, which stays with its worker. What is in use stays, and is named."""
    path = file_of()
    _write_table(path, _GPT)
    spec = loop_spec("data", path, partitions=False)
    disk = Disk(api.create(spec)["status"]["id"])
    worker = daemon.worker_pid("data")
    holds_for(lambda: _shown(disk) == {}, 2, "no partitions")
    _write_table(disk.path, _GPT)
    holds_for(lambda: _shown(disk) == {}, 2, "no partitions")
    api.put(spec | {"partitions": True})
    _wait_shown(disk, _TWO)
    with _mounted(disk, 1, directory / "mnt") as file:
        api.put(spec)
        _wait_trouble(api, "PartitionInUse")
        assert _shown(disk) == {1: _TWO[1]}
        assert file.read_bytes() == block("f")
    _wait_shown(disk, {})
    _wait_no_trouble(api)
    assert daemon.worker_pid("data") == worker and api.phase("data") == "Live"


@pytest.mark.long
def test_a_partition_in_use_is_not_moved(api, table, directory):
    """The table says otherwise: the others change, and this one does once it is free."""
    with _mounted(table, 2, directory / "mnt") as file:
        _write_table(table.path, "label: gpt\nstart=1MiB,size=4MiB\nstart=20MiB,size=8MiB\n")
        _wait_trouble(api, "PartitionInUse")
        _wait_shown(table, {1: (1, 4), 2: _TWO[2]})
        assert file.read_bytes() == block("f")
    _wait_shown(table, {1: (1, 4), 2: (20, 8)})
    _wait_no_trouble(api)


def test_an_entry_beyond_the_end_is_named(api, file_of):
    path = file_of()
    _write_table(path, "label: dos\nstart=1MiB,size=8MiB\nstart=16MiB,size=40MiB\n")
    disk = Disk(api.create(loop_spec("data", path, size="32MiB"))["status"]["id"])
    _wait_trouble(api, "PartitionInvalid")
    _wait_shown(disk, {1: (1, 8)})
    api.put(loop_spec("data", path, size="64MiB"))  # it grows, or where the kernel cannot do that there is a new disk
    _wait_shown(disk, {1: (1, 8), 2: (16, 40)})
    _wait_no_trouble(api)


def test_a_mounted_partition_stays_over_the_death_of_its_worker(api, table, daemon, directory):
    with _mounted(table, 1, directory / "mnt") as file:
        number = table.attribute(f"ublkb{table.number}p1/dev")
        api.wait_other_worker("data", daemon.kill_worker("data"))
        file.with_name("other").write_bytes(block("o"))
        run("sync", "-f", file.parent)
        assert table.attribute(f"ublkb{table.number}p1/dev") == number
        assert file.read_bytes() == block("f") and _shown(table) == _TWO


def test_partitions_stay_over_the_death_of_ublkd(api, table, daemon, directory):
    """The next one changes what differs from the table, and nothing else."""
    with _mounted(table, 1, directory / "mnt") as file:
        number = table.attribute(f"ublkb{table.number}p1/dev")
        daemon.kill()
        run("partx", "--delete", "--nr", "2", table.path)
        daemon.start()
        _wait_shown(table, _TWO)
        assert table.attribute(f"ublkb{table.number}p1/dev") == number and file.read_bytes() == block("f")
    assert condition_of(api.get("data"), "Partitions") is None


def test_a_disk_with_a_mounted_partition_is_not_removed(api, table, directory):
    where = directory / "mnt"
    with _mounted(table, 1, where) as file:
        assert str(where) in api.delete("data", status=409)["detail"]
        assert file.read_bytes() == block("f")
    api.delete("data")


def test_ublkd_starts_where_root_has_no_inotify_instance_left(make_daemon, file_of):
    """It sees no table that a program writes until it starts again; the partitions of a new disk are shown."""
    limit = pathlib.Path("/proc/sys/fs/inotify/max_user_instances")
    before = limit.read_text(encoding="ascii")
    path = file_of()
    _write_table(path, _GPT)
    limit.write_text("0", encoding="ascii")
    try:
        daemon = make_daemon().start()
        disk = Disk(daemon.api.create(loop_spec("data", path))["status"]["id"])
        _wait_shown(disk, _TWO)
        _write_table(disk.path, _GPT + "start=40MiB,size=4MiB\n")
        holds_for(lambda: _shown(disk) == _TWO, 2, "the partitions of before")
    finally:
        limit.write_text(before, encoding="ascii")
    daemon.stop()
    daemon.start()
    _wait_shown(disk, _TWO | {3: (40, 4)})


def _scanners():
    """The processes that look at partitions."""
    return [int(path.parent.name) for path in pathlib.Path("/proc").glob("[0-9]*/comm") if _comm(path) == "ublkd-partition"]


def _comm(path):
    try:
        return path.read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _is_reader(pid):
    try:
        return _status(pid)["Seccomp"] == "2"
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return False


def _reader():
    return next(filter(_is_reader, _scanners()), None)


@pytest.mark.storm
def test_a_disk_that_does_not_answer_is_live_and_has_its_partitions_later(store, daemon):
    """Nothing waits for the reader of the table, which has no privileges; it is given up, and another one tries."""
    api = daemon.api
    _write_table_of_store(store)
    with store.holding_reads():
        disk = Disk(api.create(loop_spec("data", store.path, queues=1))["status"]["id"])
        pid = wait_until(_reader, "the reader of the table")
        status = _status(pid)
        assert status["Uid"].split() == status["Gid"].split() == ["65534"] * 4
        assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0 and status["NoNewPrivs"] == "1"
        files = {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        assert len(files) == 2 and disk.path in files
        assert pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii").strip() == "1000"
        _wait_trouble(api, "PartitionsUnknown")
        worker = daemon.worker_pid("data")
        api.ask("GET", "/healthz", 200)
    _wait_shown(disk, {1: (1, 1)})
    _wait_no_trouble(api)
    wait_until(lambda: pid not in _scanners(), "the end of the process that was given up")
    assert daemon.worker_pid("data") == worker
    api.delete("data")


@pytest.mark.long
def test_a_disk_is_removed_while_its_table_is_read(store, daemon):
    """That does not make the disk one in use. What it has asked the disk for holds up the removal, and nothing else."""
    api = daemon.api
    with store.holding_reads():
        api.create(loop_spec("data", store.path, queues=1))
        wait_until(_reader, "the reader of the table")
        api.ask("DELETE", "/devices/data", 202)
        api.wait_for("data", lambda device: device["status"]["phase"] == "Stopping", "being removed")
        api.create(null_spec("other"))
        api.delete("other")
    wait_until(lambda: api.names() == [] and ublk.numbers() == [], "the removal done")


def test_worker_dies_while_the_table_is_read(store, daemon):
    """A recovery does not wait for the reader, nor for what it has asked."""
    api = daemon.api
    _write_table_of_store(store)
    with store.holding_reads():
        disk = Disk(api.create(loop_spec("data", store.path, queues=1))["status"]["id"])
        wait_until(_reader, "the reader of the table")
        pid = daemon.kill_worker("data")
    api.wait_other_worker("data", pid)
    _wait_shown(disk, {1: (1, 1)})
    api.delete("data")
