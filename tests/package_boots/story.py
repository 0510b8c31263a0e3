# SPDX-License-Identifier: MIT
"""What both boots know."""

import pathlib

from harness.shell import output

POINT = pathlib.Path("/srv/data")
IMAGE = pathlib.Path("/srv/images/data.img")
DISK = "/dev/ublk/by-name/data"
LINE = f"{DISK} {POINT} ext4 defaults 0 2\n"
WRITTEN = POINT / "written"
UNIT = "ublk-disk@data.service"
DROP_IN = pathlib.Path("/etc/systemd/system", f"{UNIT}.d", "tests.conf")  # of the administrator
DESCRIPTION = "What the administrator calls it"
MEMBER = "daemon"  # a user whom the administrator lets read


def state(unit):
    """The state of a unit, such as "active"."""
    return output("systemctl", "show", "--property", "ActiveState", "--value", unit)
