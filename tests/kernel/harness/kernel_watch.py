# SPDX-License-Identifier: MIT
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

# (series of the kernel, "7": all of 7.N; regular expression, reason). Nothing else is forgiven.
FORGIVEN = (
    (
        "6.12",
        r"WARNING: .*\bublk_ch_uring_cmd\b",
        "a worker that dies while it fetches during a recovery: 6.12 recovers from it, but warns",
    ),
    (
        "7",
        r"WARNING: mm/page_alloc.c:\d+ at __alloc_pages_slowpath\S* .*: kswapd\d+/",
        "the root of the guest is virtiofs: to drop an inode, it asks for memory that must not fail, also in kswapd",
    ),
)

# (series of the kernel or None: each; regular expression, reason). A kernel that went down like this was not brought
# down by what is tested: the tests that are left are run in another guest.
KNOWN_CRASHES = (
    (
        "6.12",
        r"RIP: \S*:io_fallback_tw\+",
        "when a ublk server is killed under load, the driver may cancel a command for which it has queued task work"
        " already, and io_uring touches it after it was freed (CVE-2025-37906, fixed in 6.15; in 6.12 it is not)",
    ),
    (
        "6.12",
        r"Workqueue: events ublk_quiesce_work_fn\b.*\n(?:.*\n){0,2}?.*RIP: \S*:io_uring_cmd_done\+",
        "the driver's work that quiesces a disk cancels commands (ublk_cancel_dev()) after it has released the lock of the"
        " disk: it may meet a recovery that has begun meanwhile and has reset them",
    ),
    (
        None,
        r"\bOops: int3:(?:.*\n){1,8}?.*Code: (?:[0-9a-f]{2} )*(?!cc)[0-9a-f]{2} <",
        "the emulator executed a breakpoint that the kernel had put into its own code for a moment (to switch a static"
        " key) and had removed again: the byte before the one that the dump marks has ceased to be int3 (0xcc)",
    ),
)


def known_crash(series, log):
    """The reason of a crash that is known, or None."""
    for known_series, pattern, reason in KNOWN_CRASHES:
        if known_series in (None, series) and re.search(pattern, log) and kernel_log.panic(log):
            return reason
    return None


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
        """All that the kernel has logged so far."""
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
