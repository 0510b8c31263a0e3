# SPDX-License-Identifier: MIT
"""The events that the database has: ublkd writes them up to a second after they happen."""

import shutil
import sqlite3
import tempfile

from .wait import wait_until


def _count_in_database(daemon, reason):
    """How often it happened as far as the disk knows. A copy is read: ublkd has the database for itself."""
    with tempfile.TemporaryDirectory() as copy:
        for file in daemon.state.glob("ublkd.db*"):
            shutil.copy(file, copy)
        try:
            database = sqlite3.connect(f"{copy}/ublkd.db")
            rows = database.execute("SELECT count FROM event WHERE reason = ?", (reason,)).fetchall()
            database.close()
        except sqlite3.DatabaseError:  # copied while it was written
            return 0
    return sum(count for (count,) in rows)


def wait_written(daemon, reason, count):
    """Wait until the events of that reason outlive a ublkd that is killed now."""
    wait_until(lambda: _count_in_database(daemon, reason) == count, f"{count} times {reason} written")
