# SPDX-License-Identifier: MIT
"""The tests over a reboot: tests/kernel/run boots one machine twice."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
