# SPDX-License-Identifier: MIT
"""The control plane and worker processes by themselves, without the rest of the daemon (tests/kernel/ctl)."""

import pytest

from harness import programs
from harness.shell import run


@pytest.mark.long
def test_commands_and_one_life_of_a_disk():
    """Every command's answers, and a disk from birth through recoveries to its end."""
    run(str(programs.build() / "tests" / "kernel" / "ctl" / "ctl_test"), programs.worker())
