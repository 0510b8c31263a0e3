# SPDX-License-Identifier: MIT
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from strict_skips import pytest_runtest_makereport  # noqa: E402, F401 (pytest finds it by name)

_PROGRAM = os.environ.get("UBLKD_CDI_SPEC_TEST", "build/tests/unit/ublkd/nodes/cdi_spec_test")
_SKIP = 77


@pytest.fixture
def written(tmp_path):
    """The files that ublkd writes, by their paths."""
    status = subprocess.run([_PROGRAM, "--write", tmp_path / "cdi"], check=False).returncode
    if status == _SKIP:
        pytest.exit("no trusted extended attributes here", returncode=_SKIP)  # ctest sees it
    assert status == 0
    files = {path: json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "cdi").iterdir()}
    assert len(files) == 2
    return files
