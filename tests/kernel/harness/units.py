# SPDX-License-Identifier: MIT
"""ublkd as a service of systemd."""

import pathlib
import shutil
import uuid

from . import programs
from .shell import output, run

UNITS = pathlib.Path("/etc/systemd/system")
_EVERY_LINE = pathlib.Path("/proc/sys/kernel/printk_devkmsg")  # else the kernel takes ten from systemd in five seconds


def _start(limit):
    """What the unit of a disk runs to start it."""
    start = programs.source("units/start/ublkd-start")
    return f"{start} {programs.follow()} /run/ublkd %i {programs.ublkctl()} start --timeout={limit} %i"


def impatient(limit):
    """A drop-in for the units of disks that wait for a disk for as long as this only, such as "2s"."""
    return f"[Service]\nExecStartPre=\nExecStartPre={_start(limit)}\n"


def write(into):
    """Write the units as they are shipped, with the programs of the build, into the directory `into`."""
    service = programs.source("units/ublkd.service.in").read_text(encoding="utf-8")
    start = "ExecStart=@UBLKD_PROGRAM_PATH@"
    assert start in service
    service = service.replace(start, f"{start} --worker {programs.worker()}")
    service = service.replace("@UBLKD_PROGRAM_PATH@", programs.ublkd()).replace("@UBLKD_CTL_PATH@", programs.ublkctl())
    (into / "ublkd.service").write_text(service, encoding="utf-8")
    disk = programs.source("units/ublk-disk@.service.in").read_text(encoding="utf-8")
    disk = disk.replace("@UBLKD_CTL_PATH@", programs.ublkctl()).replace("@UBLKD_FOLLOW_PATH@", programs.follow())
    disk = disk.replace("@UBLKD_UNSTACK_PATH@", str(programs.source("units/unstack/ublkd-unstack")))
    disk = disk.replace("@UBLKD_START_PATH@", str(programs.source("units/start/ublkd-start")))
    disk = disk.replace("@UBLKD_ORDER_PATH@", str(programs.source("units/order/ublkd-order")))
    (into / "ublk-disk@.service").write_text(disk, encoding="utf-8")
    reason = programs.source("units/ublk-reason@.service.in").read_text(encoding="utf-8")
    reason = reason.replace("@UBLKD_REASON_PATH@", str(programs.source("units/reason/ublkd-reason")))
    reason = reason.replace("@UBLKD_FOLLOW_PATH@", programs.follow()).replace("@UBLKD_CTL_PATH@", programs.ublkctl())
    (into / "ublk-reason@.service").write_text(reason, encoding="utf-8")
    of_devices = pathlib.Path("dev-ublk-.device.d", "50-ublkd.conf")
    (into / of_devices.parent).mkdir(exist_ok=True)
    shutil.copy(programs.source("units") / of_devices, into / of_devices)
    for unit in ("ublkd.socket", "ublkd.target", "ublk-disk@.path", "ublk-watch@.service", "ublkd-workers.service", "ublkd.slice"):
        (into / unit).write_text(programs.source(f"units/{unit}").read_text(encoding="utf-8"), encoding="utf-8")


def install():
    """Install the units in this machine."""
    write(UNITS)
    run("systemctl", "daemon-reload")


def state(unit):
    """The state of a unit, such as "active"."""
    return output("systemctl", "show", "-p", "ActiveState", "--value", unit).strip()


def main_pid():
    """The pid of ublkd; 0: it does not run."""
    return int(output("systemctl", "show", "-p", "MainPID", "--value", "ublkd.service"))


class Log:
    """What the kernel and systemd log from now on."""

    def __init__(self):
        _EVERY_LINE.write_text("on\n", encoding="ascii")
        self._mark = f"a mark of the tests: {uuid.uuid4()}"
        pathlib.Path("/dev/kmsg").write_text(f"<5>{self._mark}\n", encoding="ascii")

    def text(self):
        """All of it."""
        _, mark, text = output("dmesg").partition(self._mark)
        assert mark, "the log of the kernel is too small"
        return text

    def lines(self):
        """The lines of systemd about the units of ublkd, oldest first."""
        return [line for line in self.text().splitlines() if "systemd[1]: ublkd" in line]
