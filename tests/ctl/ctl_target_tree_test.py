# SPDX-License-Identifier: MIT
"""Targets on other targets in FIELD=VALUE arguments, and in what is shown."""

import pytest

from ctl import answering

STRIPE = ["size=1GiB", "target.type=stripe", "target.children.0.type=null", "target.children.1.type=null"]


def spec_of(server, name="data"):
    return server.ask("GET", f"/devices/{name}").json["spec"]


def test_create_with_a_child(ctl, server, tmp_path):
    path = tmp_path / "007"
    path.touch()
    ctl("create", "data", "size=1MiB", "target.type=linear", "target.offset=1M", "target.child.type=loop", f"target.child.path={path}")
    assert spec_of(server)["target"] == {"type": "linear", "offset": "1MiB", "child": {"type": "loop", "path": str(path)}}
    assert str(path) in ctl("list", "-o", "wide").out
    assert f"  target.child.path = {path}\n" in ctl("describe", "data").out


def test_create_with_children(ctl, server):
    ctl("create", "data", *STRIPE, "target.chunk=64K", "target.children.2.type=linear", "target.children.2.child.type=null")
    assert spec_of(server)["target"] == {
        "type": "stripe", "chunk": "64KiB",
        "children": [{"type": "null"}, {"type": "null"}, {"type": "linear", "child": {"type": "null"}}]}
    shown = ctl("describe", "data").out
    assert "  target.children.1.type = null\n" in shown
    assert "  target.children.2.child.type = null\n" in shown


def test_set_changes_one_of_the_children(ctl, server):
    ctl("create", "data", *STRIPE)
    ctl("set", "data", "target.children.1.type=linear", "target.children.1.child.type=null", "target.children.1.length=1G")
    assert spec_of(server)["target"]["children"] == [{"type": "null"}, {"type": "linear", "child": {"type": "null"}, "length": "1GiB"}]
    ctl("set", "data", "target.children.1.length=null", "target.children.2.type=null")
    assert spec_of(server)["target"]["children"] == [{"type": "null"}, {"type": "linear", "child": {"type": "null"}}, {"type": "null"}]


@pytest.mark.parametrize("argument, tag", [("target.children.1.type=linear", '"7"'), ("target.chunk=8KiB", None)])
def test_set_does_not_undo_what_another_client_made_of_the_list(ctl, argument, tag):
    """A list is sent as a whole: as it was when it was read, it is right for no other spec than that."""
    device = {"name": "data", "generation": 7, "spec": {
        "name": "data", "target": {"type": "stripe", "children": [{"type": "null"}, {"type": "null"}]}}, "status": {}}
    patches = []
    with answering(device, '"7"', patches) as url:
        ctl("--url", url, "set", "data", argument, "--no-wait")
    assert [headers["If-Match"] for headers in patches] == [tag]


@pytest.mark.parametrize("argument", ["target.children.3.type=null", "target.children.x.type=null", "target.children.1=7"])
def test_a_number_of_no_child_is_refused(ctl, argument):
    ctl("create", "data", *STRIPE[:2], *([] if argument.endswith("7") else STRIPE[2:]), argument, status=2)


def test_a_fault_is_named_by_its_pointer(ctl):
    run = ctl("create", "data", "size=1GiB", "target.type=stripe", "target.children.0.type=null", "target.children.1.type=loop",
              "target.children.1.path=x", status=1)
    assert "/target/children/1/path" in run.err
