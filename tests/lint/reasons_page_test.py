# SPDX-License-Identifier: MIT
"""docs/reasons.md is what the table of reasons makes of it, and the table has every reason that a worker reports."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["UBLKD_BUILD"])
PAGE = (ROOT / "docs/reasons.md").read_text(encoding="utf-8")
NAMES = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)

# As problem_add() and fail_with() take it. Other literals of the targets are not CamelCase.
REASON = re.compile(r'"([A-Z][a-z]+(?:[A-Z][a-z0-9]*)+)"')


def test_the_page_is_what_the_table_makes_of_it():
    made = (BUILD / "docs/reasons/reasons.md").read_text(encoding="utf-8")
    assert made == PAGE, "docs/reasons.md is stale: cmake --build build --target update_reasons"


def test_each_is_there_once():
    assert len(NAMES) > 100
    assert NAMES == sorted(set(NAMES))


# The rules of a description, and those of a tree, are for specs: a client gets their problems, and no worker reports them.
SOURCES = sorted(path for path in ROOT.glob("targets/**/*.c") if not path.name.endswith(("_desc.c", "fault_parse.c", "target_tree.c", "target_tree_parse.c")))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_worker_reports_is_in_the_table(path):
    unknown = set(REASON.findall(path.read_text(encoding="utf-8"))) - set(NAMES)
    assert not unknown, f"not in ublkd/model/reason_table.c: {', '.join(sorted(unknown))}"


def test_advice_destroys_nothing():
    """No advice removes a device or its data, or forces anything."""
    for row in PAGE.splitlines():
        advice = row.split("|")[3] if row.startswith("| `") else ""
        assert not re.search(r"--force|ublkctl (delete|detach|prune)|\bmkfs|wipefs|\brm\b", advice), row
