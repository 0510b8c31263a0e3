"""The kernel's log of one test, and the lines of it that are forgiven.

Which lines are complaints is known to tests/vm/kernel_log.py, which also reads
the whole log once the guest is down.
"""

import os
import pathlib
import platform
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "vm"))

import kernel_log  # pylint: disable=wrong-import-position,import-error

# (series of the kernel, regular expression, reason). Nothing else is forgiven.
FORGIVEN = (
    (
        "6.12",
        r"WARNING: .*\bublk_ch_uring_cmd\b",
        "a worker that dies while it fetches during a recovery: 6.12 recovers from it, but warns",
    ),
)


def forgiven(release=None):
    """The regular expressions for a kernel."""
    release = release or platform.release()
    return [pattern for series, pattern, _reason in FORGIVEN if release.startswith(series + ".") or release == series]


class KernelWatch:
    """Reads what the kernel says from now on."""

    def __init__(self):
        self._descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        self._lines = []

    def text(self):
        """All that the kernel has said so far."""
        while True:
            try:
                record = os.read(self._descriptor, 16384)
            except BlockingIOError:
                break
            except BrokenPipeError:
                continue  # overwritten before it was read: the next read gives the oldest that is left
            self._lines.append(re.sub(r"^[^;]*;", "", record.decode(errors="replace").split("\n", 1)[0]))
        return "\n".join(self._lines)

    def complaints(self):
        """The lines that fail a test."""
        return kernel_log.complaints(self.text(), forgiven())

    def close(self):
        """Stop reading."""
        os.close(self._descriptor)
