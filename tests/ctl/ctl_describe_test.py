# SPDX-License-Identifier: MIT
"""What describe shows of a device, and list beside it."""
import re

import pytest
from ctl import field

NULL = ["target.type=null", "size=1MiB"]


def test_describe(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("status data Backoff BackingFileMissing It is missing; trying again in 4 s.")
    run = ctl("describe", "data")
    assert "Phase:" in run.out and "Backoff" in run.out
    assert "Next:           It is missing; trying again in 4 s.\n" in run.out
    assert "  target.type = null\n" in run.out
    assert any(line.split()[:3] == ["Ready", "False", "BackingFileMissing"] for line in run.lines)


def test_describe_shows_the_data_path_and_kernel_features(ctl):
    ctl("create", "data", *NULL)
    run = ctl("describe", "data")
    assert field(run, "Data path") == "copy: The test has nothing else."
    assert field(run, "ublk features") == "USER_RECOVERY" and "Kernel:" not in run.out


@pytest.mark.parametrize("replaced, words",
                         [(0, "0 workers replaced"), (1, "1 worker replaced"), (24, "24 workers replaced")])
def test_describe_counts_replaced_workers_and_not_restarts(ctl, server, replaced, words):
    """The count includes failed attempts: 24 stood beside one recovery, as "restarts"."""
    server.tell(f"restarts {replaced}")
    ctl("create", "data", *NULL)
    assert field(ctl("describe", "data"), "Worker").endswith(f", {words}")


FAULTS = {
    "BackingWhole": ("BackingTruncated", "The backing store was cut off under the disk. All I/O fails."),
    "Durable": ("FlushFailed", "A flush failed. Every flush fails."),
    "Space": ("StoreFull", "A write has found no room in the backing store."),
    "ErrorFree": ("WriteFailed", "A write failed."),
    "Progress": ("BackingSlow", "The worker waits for the backing store."),
    "Resources": ("ResourcesNotInForce", "No limit of resources is in force."),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_served_disk_with_a_fault_of_its_store_is_not_plain(ctl, server, kind):
    ctl("create", "data", *NULL)
    ctl("create", "other", *NULL)
    assert "REASON" not in ctl("list").lines[0]
    reason, sentence = FAULTS[kind]
    server.tell(f"condition data {kind} False {reason} {sentence}")
    assert field(ctl("describe", "data"), "Now") == f"It serves. {sentence}"
    assert field(ctl("describe", "other"), "Now") == "It serves."
    run = ctl("list")
    assert run.lines[0].split()[-1] == "REASON"
    data, other = run.rows
    assert data[1] == "Live" and data[-1] == reason and other[-1] == "-"
    assert [row[-1] for row in ctl("list", "-o", "wide").rows] == [reason, "-"]
    assert [row[-1] for row in ctl("list", "--columns", "NAME,REASON").rows] == [reason, "-"]


def test_describe_shows_how_old_a_look_at_the_room_is(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("condition data Space False StoreFull It is full.")
    assert "ublkd looked" not in ctl("describe", "data").out
    server.tell("condition data Space False StoreLow It had 7 MiB left.")
    assert re.search(r"StoreLow .* It had 7 MiB left\. \(ublkd looked 3m2\ds ago\.\)", ctl("describe", "data").out)
    (ready, space) = server.ask("GET", "/devices/data").json["status"]["conditions"]
    assert "observedAt" in space and "observedAt" not in ready


def test_list_shows_all_faults_of_a_disk(ctl, server):
    ctl("create", "data", *NULL)
    for kind, (reason, sentence) in FAULTS.items():
        server.tell(f"condition data {kind} False {reason} {sentence}")
    server.tell("condition data PathLeadsToStore False PathGone It is gone.")
    assert ctl("list").rows[0][-1] == "PathGone,FlushFailed,BackingTruncated,StoreFull,WriteFailed,BackingSlow,ResourcesNotInForce"


@pytest.mark.parametrize("reason", ["PathGone", "PathLeadsElsewhere"])
def test_a_served_disk_whose_path_leads_elsewhere_is_not_plain(ctl, server, reason):
    ctl("create", "data", *NULL)
    server.tell(f"condition data PathLeadsToStore False {reason} The file was moved.")
    assert ctl("list").rows[0][-1] == reason
    assert field(ctl("describe", "data"), "Now") == "It serves. The file was moved."
    server.tell("status data Backoff BackingFileMissing There is no file.")
    assert ctl("list").rows[0][-1] == "BackingFileMissing"
    assert field(ctl("describe", "data"), "Next") == "There is no file."


def test_a_worker_of_another_version_is_shown(ctl, server):
    ctl("create", "data", *NULL)
    ctl("create", "other", *NULL)
    server.tell("condition data NeedsRestart True OtherVersion The worker has version 1.")
    data, other = ctl("list").rows
    assert data[-1] == "NeedsRestart" and other[-1] == "-"
    assert ctl("list", "-o", "wide").rows[0][-1] == "NeedsRestart"
    assert field(ctl("describe", "data"), "Worker").endswith(", needs a restart")
    assert not field(ctl("describe", "other"), "Worker").endswith(", needs a restart")
    server.tell("condition data Durable False FlushFailed A flush failed.")
    assert ctl("list").rows[0][-1] == "FlushFailed,NeedsRestart"
    needs = {item["name"]: item["status"]["needsRestart"] for item in ctl("list", "-o", "json").json["items"]}
    assert needs == {"data": True, "other": False}


def test_list_shows_why_a_device_is_not_live(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("status data Backoff BackingInUse Another process writes to it.")
    assert ctl("list").rows[0][-1] == "BackingInUse"


def test_list_shows_the_disk_of_an_outdated_record(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("status data Failed RecordOutdated Its disk is served.")
    (row,) = ctl("list").rows
    assert row[:3] == ["data", "Failed", "/dev/ublkb0"] and row[-1] == "RecordOutdated(served)"


def test_describe_shows_io_errors(ctl, server):
    ctl("create", "data", *NULL)
    assert field(ctl("describe", "data"), "I/O errors") == "none"
    server.tell("errors data 0 0 2")
    server.tell("errors data 1 1 1")
    assert field(ctl("describe", "data"), "I/O errors") == "3 (read 2, write 1)"
    server.tell("stats-error 5")
    assert field(ctl("describe", "data"), "I/O errors") == "-"


def test_describe_shows_the_newest_error_of_each_operation_and_when(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("failed data 1 28 17 1048576 4096")
    server.tell("failed data 2 5 1 0 0")  # a flush has no place
    lines = [line.partition(":")[2].strip() for line in ctl("describe", "data").lines if line.startswith("Last error:")]
    at, age = "2023-11-14T22:13:20.123Z", re.compile(r" \([0-9a-z]+ ago\)$")
    assert all(map(age.search, lines))
    assert [age.sub("", line) for line in lines] == [f"write of 4096 bytes at byte 1048576: ENOSPC, {at}", f"flush: EIO, {at}"]


def test_describe_omits_events_of_an_earlier_device_of_the_name(ctl, server):
    ctl("create", "data", *NULL)
    server.tell("note data LongAgo It was another one.")
    assert "LongAgo" in ctl("describe", "data").out
    ctl("delete", "data")
    ctl("create", "data", *NULL)
    run = ctl("describe", "data")
    assert "LongAgo" not in run.out and "Created" in run.out.split("Events:")[1]


def test_describe_shows_the_next_attempt(ctl, server):
    ctl("create", "data", *NULL)
    assert "Next attempt" not in ctl("describe", "data").out
    server.tell("status data Backoff BackingFileMissing The file /x is missing. | Another try is under way.")
    assert "Next attempt:" in ctl("describe", "data").out
    assert "2023-11-14T22:13:20.123Z; 2 in a row have failed" in ctl("describe", "data").out


def test_describe_shows_the_users_of_a_disk_on_request(ctl, server):
    """Only a refused removal had named them."""
    ctl("create", "data", *NULL, "id=0")
    server.tell("busy 0 process 4211 (fio), mounted at /mnt")
    assert field(ctl("describe", "data", "-u"), "Users") == "process 4211 (fio), mounted at /mnt"
    server.tell("idle")
    assert field(ctl("describe", "data", "--users"), "Users") == "none"
    assert "Users:" not in ctl("describe", "data").out, "the search takes time, and the right to change the device"
    assert ctl("get", "data").json["status"]["phase"] == "Live"


def test_the_file_system_and_its_mount(server, ctl):
    ctl("create", "data", "target.type=null", "size=1MiB")
    assert "File system:" not in ctl("describe", "data").out and "Mount:" not in ctl("describe", "data").out
    server.ask("POST", "/devices/data/filesystem", {"type": "xfs"})
    device = server.ask("POST", "/devices/data/mount", {}).json
    assert field(ctl("describe", "data"), "File system") == f"xfs, made, UUID {device['status']['filesystem']['uuid']}"
    assert field(ctl("describe", "data"), "Mount").split(",")[0] == device["status"]["mount"]
