# SPDX-License-Identifier: MIT
"""For a conftest.py: `from strict_skips import pytest_runtest_makereport`."""
import os

import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """With CI=true a skip is a failure: nothing that is missing there may hide that a test has not run."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, and with CI=true that is a failure: {report.longrepr}"
