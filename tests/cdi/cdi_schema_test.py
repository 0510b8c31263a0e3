# SPDX-License-Identifier: MIT
"""The files for container engines against the schema of the Container Device Interface."""
import json
import pathlib

import jsonschema
import pytest

SCHEMA = json.loads(pathlib.Path(__file__).with_name("cdi.schema.json").read_text(encoding="utf-8"))


def check(file):
    jsonschema.Draft202012Validator(SCHEMA).validate(file)


def test_the_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("change", [
    {"cdiVersion": "2"}, {"kind": "disk"}, {"devices": []}, {"devices": [{"name": "a"}]}, {"more": 1},
    {"devices": [{"name": "a", "containerEdits": {"deviceNodes": [{"hostPath": "/dev/a"}]}}]}])
def test_the_schema_refuses(change):
    good = {"cdiVersion": "0.5.0", "kind": "a.b/c", "devices": [{"name": "a", "containerEdits": {"env": ["A=b"]}}]}
    check(good)
    with pytest.raises(jsonschema.ValidationError):
        check({**good, **change})


def test_what_ublkd_writes_is_valid(written):
    for file in written.values():
        check(file)
