# SPDX-License-Identifier: MIT
"""Disks on which fio writes and verifies while packages come and go."""

import contextlib
import pathlib

import machine
from harness.disk import Disk
from harness.fio import Disks, FileOnDisk, Fio
from harness.shell import run
from harness.wait import wait_until

ENOUGH = 200  # requests, among them some with which fio verifies
_OF_EACH = 20  # requests, of one of many disks


@contextlib.contextmanager
def _fio(directory, disk, **options):
    """It writes and verifies until the end of the block, without any error. With pauses: dpkg needs the CPUs, too."""
    load = Fio(directory, disk, **options)
    try:
        load.wait_running()
        yield
        load.finish().assert_clean()
    finally:
        load.kill()


@contextlib.contextmanager
def mounted_under_load(directory, kernel_log):
    """The disk "data" with an ext4, on which fio writes and verifies until the end of the block: without any error."""
    device = machine.create("data", directory / "data.img", 256 << 20)
    disk, mount = Disk(device["status"]["id"]), directory / "mount"
    link = pathlib.Path("/dev/ublk/by-name/data")
    wait_until(link.exists, "the link of the disk")
    run("mkfs.ext4", "-q", link)
    mount.mkdir()
    run("mount", link, mount)
    try:
        run("fallocate", "--length", "32M", mount / "file")  # fio would write a file first that is too small
        with _fio(directory, FileOnDisk(mount / "file", disk), depth=4, more=("--thinktime=10ms",)):
            yield disk
            disk.wait_progress(ENOUGH)
    finally:
        run("umount", mount)
    run("fsck.ext4", "-f", "-n", link)
    assert "I/O error" not in kernel_log.text()


@contextlib.contextmanager
def all_under_load(directory, disks):
    """fio writes and verifies on each of the disks until the end of the block: without any error."""
    in_turn = ("--file_service_type=roundrobin", "--thinktime=160ms", f"--thinktime_blocks={len(disks)}")
    size = f"{4 * len(disks)}M"
    with _fio(directory, Disks(disks), depth=len(disks), size=size, name="many", more=in_turn):
        yield
        wait_all_progress(disks)


def wait_all_progress(disks):
    """Wait until each disk has answered more requests."""
    before = [disk.completed() for disk in disks]

    def stuck():
        return [disk.path for disk, count in zip(disks, before) if disk.completed() < count + _OF_EACH]

    wait_until(lambda: not stuck(), lambda: f"{_OF_EACH} more requests answered by each of {stuck()}")
