# SPDX-License-Identifier: MIT
"""owner.uid and owner.gid by name."""
import grp
import pwd

import pytest
from ctl import FAILED

NULL = ["target.type=null", "size=1MiB"]


def test_names_of_this_machine(ctl):
    ctl("create", "data", *NULL, "owner.uid=daemon", "owner.gid=disk")
    owner = {"uid": pwd.getpwnam("daemon").pw_uid, "gid": grp.getgrnam("disk").gr_gid}
    assert ctl("get", "data").json["spec"]["owner"] == owner
    ctl("set", "data", "owner.uid=root")
    assert ctl("get", "data").json["spec"]["owner"] == {**owner, "uid": 0}


def test_numbers_and_null_stay_as_they_are(ctl):
    ctl("create", "data", *NULL, "owner.uid=1234", "owner.gid=5")
    assert ctl("get", "data").json["spec"]["owner"] == {"uid": 1234, "gid": 5}
    ctl("set", "data", "owner.uid=null")
    assert ctl("get", "data").json["spec"]["owner"] == {"gid": 5}


@pytest.mark.parametrize("argument", ["owner.uid=no-such-user", "owner.gid=no-such-group", "owner.uid=disk-and-more"])
def test_an_unknown_name_is_refused_by_its_name(ctl, argument):
    assert f"{argument}: cannot find the number" in ctl("create", "data", *NULL, argument, status=FAILED).err
    assert ctl("list", "-o", "name").out == ""


def test_other_fields_take_no_names(ctl):
    ctl("create", "data", *NULL, "labels.uid=daemon", status=0)
    assert ctl("get", "data").json["spec"]["labels"] == {"uid": "daemon"}
