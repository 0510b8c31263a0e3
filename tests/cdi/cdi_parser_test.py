# SPDX-License-Identifier: MIT
"""The files for container engines, read by the parser of the authors of the interface, in version 1.1.0: engines have it."""
import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOOD = {"cdiVersion": "0.5.0", "kind": "ublkd.io/disk",
        "devices": [{"name": "a", "containerEdits": {"mounts": [{"hostPath": "/a", "containerPath": "/b", "options": ["bind"]}]}}]}


@pytest.fixture(name="parser", scope="module")
def _parser():
    """It needs Go 1.21, and a network the first time."""
    built = subprocess.run([ROOT / "scripts/test-go-program", "tests/cdi/parser"], check=False, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        pytest.skip("the parser cannot be built here: it needs Go 1.21 and a network")
    return built.stdout.strip()


def takes(parser, path):
    return subprocess.run([parser, path], check=False).returncode == 0


def test_the_authors_read_what_ublkd_writes(parser, written):
    assert [path for path in written if not takes(parser, path)] == []


@pytest.mark.parametrize("change", [
    {"cdiVersion": "2"}, {"kind": "disk"}, {"devices": []}, {"devices": [{"name": "@a"}]}, {"more": 1},
    {"devices": [{"name": "a", "containerEdits": {"mounts": [{"hostPath": "/a"}]}}]}])
def test_the_parser_refuses(parser, tmp_path, change):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(GOOD), encoding="utf-8")
    assert takes(parser, path)
    path.write_text(json.dumps({**GOOD, **change}), encoding="utf-8")
    assert not takes(parser, path)
