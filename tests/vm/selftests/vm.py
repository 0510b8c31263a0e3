# SPDX-License-Identifier: MIT
"""Run tests/vm/run from a test."""

import os
import subprocess

RUN = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "run")


def vm(*options, shell=None, command=None, **arguments):
    """Run a shell script or a command in a guest; return the finished process."""
    command = command or ["sh", "-euc", shell]
    return subprocess.run(
        [RUN, *options, "--", *command],
        stdin=subprocess.DEVNULL,
        check=False,
        **{"capture_output": True, "text": True, **arguments},
    )
