# SPDX-License-Identifier: MIT
"""Run programs."""

import subprocess


class Failed(AssertionError):
    """A program that did not end as it should."""


def run(*command, check=True, timeout=120, input=None, **more):  # pylint: disable=redefined-builtin
    """Run a program; its output is captured as text, and a failure shows it.

    One that does not end in time is killed, and not waited for: it may be
    stuck in the kernel.
    """
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        [str(word) for word in command],
        stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **more,
    )
    words = " ".join(map(str, command))
    try:
        text, _ = process.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired as expired:
        process.kill()
        printed = (expired.output or b"").decode(errors="replace")
        raise Failed(f"{words} did not end within {timeout} s: {printed}") from None
    if check and process.returncode != 0:
        raise Failed(f"{words} ended with {process.returncode}: {text}")
    return subprocess.CompletedProcess(command, process.returncode, text)


def output(*command, **more):
    """Return what a program prints, without the white space around it."""
    return run(*command, **more).stdout.strip()
