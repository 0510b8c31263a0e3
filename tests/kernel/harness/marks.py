# SPDX-License-Identifier: MIT
"""Parameters of a test that only ./check --all tries."""

import pytest


def variants(*values):
    """These values: a test beside them, with another value, shows the main part. A tuple is several parameters."""
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.variant) for value in values]
