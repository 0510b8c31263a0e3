# SPDX-License-Identifier: MIT
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from strict_skips import pytest_runtest_makereport  # noqa: E402, F401 (pytest finds it by name)
