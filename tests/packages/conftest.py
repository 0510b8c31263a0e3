# SPDX-License-Identifier: MIT
"""A guest with systemd in which packages can be installed. A test begins without any device, and with the package of this
version or without any: dpkg takes long under emulation, so an installation serves several tests."""

import os
import pathlib
import shutil
import sys
import tempfile

import pytest

_HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "kernel")]

# pylint: disable=wrong-import-position
import machine
from harness.kernel_watch import KernelWatch
from harness.shell import run

_FORBIDS_SERVICES = pathlib.Path("/usr/sbin/policy-rc.d")  # images of containers have one
_INDEXES_MAN_PAGES = pathlib.Path("/var/lib/man-db/auto-update")  # which takes minutes under emulation


def _off_the_overlay(directory, archive):
    """Hide a directory of the guest behind a tmpfs with what the archive has."""
    run("mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", directory)
    run("tar", "-C", directory, "-xpf", archive)


def _keep_etc_off_the_overlay():
    """On Linux 6.12 the lock of /etc/passwd has failed with ESTALE there, and with it dpkg. systemd and udev look below
    /etc by path, and so find what is in the tmpfs."""
    archive = pathlib.Path("/run/etc.tar")
    run("tar", "-C", "/etc", "-cpf", archive, ".")
    _off_the_overlay("/etc", archive)
    archive.unlink()


@pytest.fixture(scope="session", autouse=True)
def guest():
    """Only in a throw-away machine: the package is installed on it."""
    command_line = pathlib.Path("/proc/cmdline").read_text(encoding="ascii")
    assert "rootfstype=virtiofs" in command_line, "run these with tests/packages/run: it makes a VM for them"
    _off_the_overlay("/var/lib/dpkg", os.environ["UBLKD_DPKG"])
    _keep_etc_off_the_overlay()
    for path in (_FORBIDS_SERVICES, _INDEXES_MAN_PAGES):
        path.unlink(missing_ok=True)
    assert not machine.has_package(), "this machine has ublkd installed: purge it first"


@pytest.fixture(name="kernel_log", autouse=True)
def fixture_kernel_log(guest):  # pylint: disable=redefined-outer-name,unused-argument
    """The kernel's log of this test, which must hold no complaint."""
    watch = KernelWatch()
    yield watch
    complaints = watch.complaints()
    watch.close()
    assert not complaints, "the kernel complains: " + "; ".join(complaints)


@pytest.fixture(name="directory")
def fixture_directory():
    """A directory for stores and mounts."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="p-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(name="cleared", autouse=True)
def fixture_cleared(directory):  # pylint: disable=unused-argument
    """Afterwards there is no device, whatever the test has done."""
    yield
    machine.clear()


@pytest.fixture(name="installed")
def fixture_installed(cleared):  # pylint: disable=unused-argument
    """The API of the service that this version has brought."""
    if not machine.has_this_version():
        machine.purge()
        machine.dpkg("--install", machine.THIS)
    return machine.api()


@pytest.fixture(name="bare")
def fixture_bare(cleared):  # pylint: disable=unused-argument
    """No package."""
    machine.purge()
