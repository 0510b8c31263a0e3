# SPDX-License-Identifier: MIT
"""Every file says under which licence it is: in an SPDX line near its beginning, or in REUSE.toml."""

import fnmatch
import pathlib
import tomllib

import pytest
from docs_test import ROOT, git

NEAR_THE_BEGINNING = 600  # bytes
LICENCE = b"SPDX-License-Identifier: MIT"


def without_comments():
    """The patterns of REUSE.toml."""
    tables = tomllib.loads((ROOT / "REUSE.toml").read_text(encoding="utf-8"))["annotations"]
    return [pattern.replace("**", "*") for table in tables for pattern in table["path"]]


@pytest.fixture(name="files", scope="module")
def tracked_files():
    """Not those of a packager, who has put his own into the source archive."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard")
    if names is None:
        pytest.skip("git knows which files belong to the project, and this is not a clone")
    return [name for name in names if (ROOT / name).is_file()]


def says(name):
    return LICENCE in pathlib.Path(ROOT, name).read_bytes()[:NEAR_THE_BEGINNING]


def test_every_file_has_its_licence(files):
    patterns = without_comments()
    silent = [name for name in files if name != "LICENSE" and not says(name)]
    assert [name for name in silent if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []


def test_what_has_no_line_of_its_own_is_there(files):
    for pattern in without_comments():
        assert fnmatch.filter(files, pattern), f"{pattern} of REUSE.toml matches no file"
