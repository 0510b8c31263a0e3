# SPDX-License-Identifier: MIT
"""Wait for a condition; the only place of the suite that sleeps."""

import time

# Under emulation, with another guest beside this one, everything may take long.
TIMEOUT = 60


class TimedOut(AssertionError):
    """A condition did not come true in time."""


def wait_until(condition, what, timeout=TIMEOUT, pause=0.005):
    """Call `condition` until it returns something true, and return that.

    `what` completes the sentence "... did not happen"; it may be a function,
    called when the time is over, so that it can say how far things got.
    `pause` is the first one; later ones are longer.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() >= deadline:
            text = what() if callable(what) else what
            raise TimedOut(f"not seen within {timeout} s: {text}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def holds_for(condition, seconds, what):
    """Assert that `condition` stays true for a while: only for things that must NOT happen."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"no longer true: {what}"
        time.sleep(0.02)
