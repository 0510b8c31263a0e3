# SPDX-License-Identifier: MIT
"""The rate of this machine's time stamp counter, which is that of an emulated guest.

A guest that is left to find it out compares the counter with an emulated
timer for some milliseconds. Where the emulator has to wait for a CPU in them,
Linux takes a wrong rate ("tsc: PIT calibration deviates from HPET"), and
the guest's clock runs several times too fast: so do all its time limits.
"""

import ctypes
import mmap
import platform
import time

_READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret
_TRIES = 50
_SECONDS = 0.1


def _now(read_counter):
    """(nanoseconds, count) of one moment: of several looks the one that took the least time."""
    looks = []
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        count = read_counter()
        after = time.monotonic_ns()
        looks.append((after - before, (before + after) // 2, count))
    return min(looks)[1:]


def tsc_khz():
    """Return the rate in kHz, or None where there is none to read, or this process may not run code of its own."""
    if platform.machine() != "x86_64":
        return None
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    code.write(_READ_COUNTER)
    read_counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    start, first = _now(read_counter)
    time.sleep(_SECONDS)
    end, last = _now(read_counter)
    return round((last - first) * 1000000 / (end - start))
