# SPDX-License-Identifier: MIT
"""Every C file has the format of .clang-format, as clang-format 14 (Debian 12's) understands it; another version
breaks lines elsewhere, so the build registers this test only where that one is installed."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import rules  # pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_format():
    run = subprocess.run(
        ["clang-format-14", "--dry-run", "--Werror", *rules.tracked_c_files(ROOT)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    unformatted = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "clang-format-violations" in line})
    assert unformatted == [], "run clang-format-14 -i on them"
    assert run.returncode == 0, run.stderr[:4000]
