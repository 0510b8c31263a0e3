# SPDX-License-Identifier: MIT
"""The directory in which container engines look for CDI files."""

import contextlib
import pathlib

_PATH = pathlib.Path("/var/run/cdi")


@contextlib.contextmanager
def engines_directory():
    """Name it for daemons that end before it: then no file is left."""
    _PATH.mkdir(mode=0o755)
    yield _PATH
    left = sorted(path.name for path in _PATH.iterdir())
    for name in left:
        (_PATH / name).unlink()
    _PATH.rmdir()
    assert not left, f"files left in {_PATH}: {left}"
