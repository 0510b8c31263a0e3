# SPDX-License-Identifier: MIT
"""What names a block device for good: its WWID, the UUID of its partition, the file below it; or nothing."""

import os
import pathlib

import pytest

from harness.api import loop_spec
from harness.kernel_disks import held_partition, loop_disk, scsi_debug
from harness.shell import run
from harness.wait import wait_until

pytestmark = pytest.mark.long  # and one kernel runs each test

_UUID = "4c51d9f3-0a5c-4f64-9f0e-2f6f3c1d7a55"
_TABLE = f"label: gpt\nstart=2048, size=16384, uuid={_UUID}\n"


def _status(daemon):
    """How the status names the store of the disk, and the line of `describe`."""
    (line,) = [line for line in daemon.ctl("describe", "data").splitlines() if line.startswith("Backing")]
    return daemon.api.get("data")["status"]["backing"], line


def _look(daemon, path):
    """The same of a disk that is there for a moment only."""
    daemon.api.create(loop_spec("data", path))
    found = _status(daemon)
    daemon.api.delete("data")
    return found


def _udev_has(path, key):
    number = os.stat(path).st_rdev
    data = pathlib.Path(f"/run/udev/data/b{os.major(number)}:{os.minor(number)}")
    return data.exists() and f"E:{key}=" in data.read_text(encoding="utf-8")


@pytest.mark.variant
def test_a_wwid(daemon):
    """It is the same after the disk was unplugged; a partition adds where it begins. By itself scsi_debug puts the
    number of its host into the WWID, which differs if the last host is still being released."""
    with scsi_debug(vpd_use_hostno=0) as path:
        wwid = pathlib.Path("/sys/block", os.path.basename(path), "device/wwid").read_text(encoding="ascii")
        first, line = _look(daemon, path)
        assert "until the next boot" not in line
    assert first["basis"] == "wwid" and first["lasting"] and first["identity"] == f"wwid:{wwid.rstrip()}"
    with scsi_debug(vpd_use_hostno=0) as path:
        assert _look(daemon, path)[0]["identity"] == first["identity"]
        run("sfdisk", "-q", path, input="label: dos\nstart=2048\n")
        with held_partition(path, 1) as partition:
            part, _ = _look(daemon, partition)
    assert part["basis"] == "wwid" and part["identity"] == f"{first['identity']}+{2048 * 512}"


def test_a_partition_has_a_uuid_and_its_disk_has_no_name(daemon, file_of):
    """A loop device whose file has no name any more has none either."""
    wholes, parts = [], []
    for _ in range(2):
        image = file_of(size=16 << 20)
        run("sfdisk", "-q", image, input=_TABLE)
        with loop_disk(image, "--partscan") as disk, held_partition(disk, 1) as partition:
            image.unlink()
            wait_until(lambda path=partition: _udev_has(path, "ID_PART_ENTRY_UUID"), "what udev knows of it")
            parts.append(_look(daemon, partition))
            wholes.append(_look(daemon, disk))
    for backing, line in parts:
        assert (backing["basis"], backing["lasting"]) == ("partition-uuid", True)
        assert backing["identity"] == f"partition-uuid:{_UUID}" and "until the next boot" not in line
    for backing, line in wholes:
        assert (backing["basis"], backing["lasting"]) == ("diskseq", False) and "; until the next boot)" in line
    assert wholes[0][0]["identity"] != wholes[1][0]["identity"]


@pytest.mark.variant
def test_the_file_of_a_loop_device(daemon, ext4, file_of):
    """The same file from the same place on, by another loop device; from another place on it is another store."""
    image = file_of(where=ext4)
    found = []
    for offset in (1 << 20, 1 << 20, 8 << 20):
        with loop_disk(image, "--offset", offset) as path:
            backing, line = _look(daemon, path)
        assert (backing["basis"], backing["lasting"]) == ("loop-file", True) and "until the next boot" not in line
        found.append(backing["identity"])
    assert found[0] == found[1] != found[2]
