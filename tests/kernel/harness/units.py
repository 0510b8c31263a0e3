# SPDX-License-Identifier: MIT
"""ublkd as a service of systemd."""

import pathlib
import uuid

from . import programs
from .shell import output, run

UNITS = pathlib.Path("/etc/systemd/system")


def install():
    """Install the units as they are shipped, with the programs of the build."""
    service = programs.source("units/ublkd.service.in").read_text(encoding="utf-8")
    start = "ExecStart=@UBLKD_PROGRAM_PATH@"
    assert start in service
    service = service.replace(start, f"{start} --worker {programs.worker()}")
    (UNITS / "ublkd.service").write_text(service.replace("@UBLKD_PROGRAM_PATH@", programs.ublkd()), encoding="utf-8")
    for unit in ("ublkd.socket", "ublkd-workers.service", "ublkd.slice"):
        (UNITS / unit).write_text(programs.source(f"units/{unit}").read_text(encoding="utf-8"), encoding="utf-8")
    run("systemctl", "daemon-reload")


def main_pid():
    """The pid of ublkd; 0: it does not run."""
    return int(output("systemctl", "show", "-p", "MainPID", "--value", "ublkd.service"))


class Log:
    """What systemd logs of the units of ublkd from now on."""

    def __init__(self):
        self._mark = f"a mark of the tests: {uuid.uuid4()}"
        pathlib.Path("/dev/kmsg").write_text(f"<5>{self._mark}\n", encoding="ascii")

    def lines(self):
        """All of its lines, oldest first."""
        _, mark, text = output("dmesg").partition(self._mark)
        assert mark, "the log of the kernel is too small"
        return [line for line in text.splitlines() if "systemd[1]: ublkd" in line]
