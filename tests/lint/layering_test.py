"""The tree keeps to the rules of rules.py, and is formatted."""

import shutil
import subprocess
from pathlib import Path

import pytest
import rules

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_rule(rule):
    assert rules.check_tree(ROOT, [rule]) == []


def test_there_is_something_to_check():
    paths = rules.tracked_c_files(ROOT)
    assert "ublkd/plan.c" in paths and len(paths) > 50


def test_every_list_of_rules_names_files_that_exist():
    paths = rules.tracked_c_files(ROOT)
    for pattern in rules.PURE + rules.UAPI_USERS + rules.LOGGERS + [pattern for pattern, _ in rules.QUOTED]:
        assert any(rules.fits(path, [pattern]) for path in paths), f"{pattern} fits no file"


def test_format():
    clang_format = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not clang_format:
        pytest.skip("clang-format is not installed")
    run = subprocess.run(
        [clang_format, "--dry-run", "--Werror", *rules.tracked_c_files(ROOT)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    unformatted = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "clang-format-violations" in line})
    assert unformatted == [], "run clang-format -i on them"
    assert run.returncode == 0, run.stderr[:4000]
