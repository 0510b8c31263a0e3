# SPDX-License-Identifier: MIT
"""Runs a command in the guest, and reports why it failed."""

import subprocess


class CommandError(Exception):
    """A command failed; the text is for the user."""


def run(*command, timeout=120):
    """Return what a command prints; raise CommandError if it fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise CommandError(f"{command[0]} was not done after {timeout} s") from problem
    if done.returncode != 0:
        last = "; ".join(done.stdout.strip().splitlines()[-3:])
        raise CommandError(f"{' '.join(command)} ended with {done.returncode}: {last}")
    return done.stdout


def write(path, text):
    """Write to a file of sysfs or configfs."""
    with open(path, "w", encoding="ascii") as output:
        output.write(str(text))


def read(path):
    """Return the text of a file, stripped."""
    with open(path, encoding="utf-8", errors="replace") as source:
        return source.read().strip()
