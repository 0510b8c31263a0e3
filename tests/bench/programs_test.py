# SPDX-License-Identifier: MIT
"""What a benchmark copies for its guest is all that ublkd needs to start. The driver is not needed for that."""
import os
import sys

_BENCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench")
sys.path[:0] = [_BENCH, os.path.join(_BENCH, "guest")]

# pylint: disable=wrong-import-position
import host
from ublkd_api import Daemon


def test_the_copied_ublkd_starts(tmp_path):
    with host.Workspace() as workspace:
        programs, missing, _ = workspace.own_programs(os.environ["BUILD_DIR"])
        assert missing == {}
        daemon = Daemon(programs["ublkd"], str(tmp_path / "state"), ready="/healthz")
        daemon.close()
