# SPDX-License-Identifier: MIT
"""Search a guest's kernel log for lines that fail a test."""

import re

# The first line of each kind of complaint; the lines below it (the trace) say
# no more, so that allowing one line is enough to allow a complaint.
_COMPLAINTS = re.compile(
    r"""
      \bWARNING:
    | \bBUG:                          # also KASAN, KFENCE, soft lockup, scheduling while atomic
    | \bkernel\ BUG\ at
    | \bOops\b
    | \bUBSAN:
    | \bINFO:\ task\b                 # ... blocked for more than N seconds
    | \bblocked\ (in\ [^\n]*)?for\ more\ than
    | \brcu:?\ INFO:
    | \brcu\S*\ (self-)?detected\ .*stall
    | \bgeneral\ protection\ fault
    | \bunable\ to\ handle\ (kernel|page)
    | \brefcount_t:
    | \blist_(add|del)\ corruption
    | \bpossible\ (circular|recursive)\ locking
    | \bKernel\ panic
    """,
    re.VERBOSE,
)
_PANIC = re.compile(r"\bKernel panic\b")


def complaints(text, allowed=()):
    """Return the lines that fail a test and match none of the regular
    expressions of `allowed`."""
    patterns = [re.compile(pattern) for pattern in allowed]
    return [
        line
        for line in text.splitlines()
        if _COMPLAINTS.search(line) and not any(pattern.search(line) for pattern in patterns)
    ]


def panic(text):
    """Return the line of the kernel's panic, or None."""
    for line in text.splitlines():
        if _PANIC.search(line):
            return line
    return None


def panic_trace(text, most=60):
    """Return the lines of a panic from its first complaint on, at most so many; []: there was none. They name the
    function that failed, which distinguishes a crash that is known from another one."""
    lines = text.splitlines()
    ends = [number for number, line in enumerate(lines) if _PANIC.search(line)]
    if not ends:
        return []
    begins = [number for number in range(max(0, ends[0] - most), ends[0] + 1) if _COMPLAINTS.search(lines[number])]
    return lines[begins[0]:ends[0] + 1][:most]
