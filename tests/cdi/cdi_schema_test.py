# SPDX-License-Identifier: MIT
"""The files for container engines against the schema of the Container Device Interface."""
import json
import os
import pathlib
import subprocess

import jsonschema
import pytest

PROGRAM = os.environ.get("UBLKD_CDI_SPEC_TEST", "build/tests/unit/ublkd/nodes/cdi_spec_test")
SCHEMA = json.loads(pathlib.Path(__file__).with_name("cdi.schema.json").read_text(encoding="utf-8"))
# That of the authors, as Debian 12 has it in golang-github-container-orchestrated-devices-container-device-interface-dev.
AUTHORS = pathlib.Path(os.environ.get(
    "UBLKD_CDI_SCHEMA",
    "/usr/share/gocode/src/github.com/container-orchestrated-devices/container-device-interface/schema")) / "schema.json"
SKIP = 77


def check(file):
    jsonschema.Draft202012Validator(SCHEMA).validate(file)


def check_as_the_authors(file):
    """Their schema refers to a file beside it."""
    resolver = jsonschema.RefResolver(AUTHORS.as_uri(), json.loads(AUTHORS.read_text(encoding="utf-8")))
    jsonschema.Draft7Validator(resolver.referrer, resolver=resolver).validate(file)


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("change", [
    {"cdiVersion": "2"}, {"kind": "disk"}, {"devices": []}, {"devices": [{"name": "a"}]}, {"more": 1},
    {"devices": [{"name": "a", "containerEdits": {"deviceNodes": [{"hostPath": "/dev/a"}]}}]}])
def test_the_schema_refuses(change):
    good = {"cdiVersion": "0.5.0", "kind": "a.b/c", "devices": [{"name": "a", "containerEdits": {"env": ["A=b"]}}]}
    check(good)
    with pytest.raises(jsonschema.ValidationError):
        check({**good, **change})


@pytest.mark.skipif(not AUTHORS.exists(), reason="no schema of the authors")
def test_the_schema_of_the_authors_refuses():
    """So it is read whole, with what it refers to."""
    good = {"cdiVersion": "0.5.0", "kind": "a.b/c", "devices": [{"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/a"}]}}]}
    check_as_the_authors(good)
    for nodes in ([{"path": 1}], {}):
        with pytest.raises(jsonschema.ValidationError):
            check_as_the_authors({**good, "devices": [{"name": "a", "containerEdits": {"deviceNodes": nodes}}]})


@pytest.mark.parametrize("checks", [check, pytest.param(check_as_the_authors, marks=pytest.mark.skipif(
    not AUTHORS.exists(), reason="no schema of the authors"))])
def test_what_ublkd_writes_is_valid(tmp_path, checks):
    status = subprocess.run([PROGRAM, "--write", tmp_path / "cdi"], check=False).returncode
    if status == SKIP:
        pytest.exit("no trusted extended attributes here", returncode=SKIP)  # ctest sees it
    assert status == 0
    files = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "cdi").iterdir()]
    assert len(files) == 2
    for file in files:
        checks(file)
