# SPDX-License-Identifier: MIT
"""Input that no client should send; most of it is tested without a driver, elsewhere."""

import json

import pytest

from hostile_names import HOSTILE_NAMES
from harness import ublk
from harness.api import null_spec

pytestmark = pytest.mark.long  # and one kernel runs each test

_JSON = {"Content-Type": "application/json"}


_MALFORMED = ("", "{", "[", "nul", '{"name": "data",}', "\xff\xfe", '{"name": "a"} x', '{"name": "a\\u0000b"}')
_BAD_NAMES = ("a/b", "../etc", "/", ".", "..", "", "A", "a b", "x" * 64, *HOSTILE_NAMES)


def test_malformed_json(api):
    for text in _MALFORMED:
        api.ask("POST", "/devices", 400, data=text.encode("latin-1"), headers=_JSON)
    assert api.names() == []


def test_oversized_body(api):
    text = json.dumps(null_spec("data", labels={"a": "x" * (1 << 20)}))
    response = api.request("POST", "/devices", data=text, headers=_JSON)
    assert response.status_code == 413
    assert api.is_ready() and api.names() == []


def test_deeply_nested_json(api):
    api.ask("POST", "/devices", (400, 422), data="[" * 100000, headers=_JSON)
    assert api.is_ready()


def test_bad_names(api):
    for name in _BAD_NAMES:
        problem = api.create(null_spec(name), status=422)
        assert [error["pointer"] for error in problem["errors"]] == ["/name"], name
    assert api.names() == []


def test_every_fault_is_reported(api):
    spec = {"name": "a/b", "target": {"type": "null", "path": "/x"}, "size": 1, "queues": 0, "colour": "red"}
    problem = api.create(spec, status=422)
    pointers = {error["pointer"] for error in problem["errors"]}
    assert {"/name", "/target/path", "/queues", "/colour"} <= pointers
    assert api.names() == [] and ublk.numbers() == []


def test_data_path_that_the_kernel_or_target_cannot_do_is_refused_or_done(api):
    """Asking for more than there is must end in a sentence, never in another path."""
    response = api.request("POST", "/devices?wait=ready&timeout=60s", json=null_spec("data", dataPath="zero-copy"))
    if response.status_code == 201:
        assert response.json()["status"]["dataPath"] == "zero-copy"
    else:
        assert response.status_code == 422 and "dataPath" in response.json()["detail"]
