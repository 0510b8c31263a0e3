# SPDX-License-Identifier: MIT
"""attach with a size, labels, direct I/O, and until the next boot."""
import threading

import pytest
from ctl import FAILED, REFUSED, TIMED_OUT, USAGE
from ctl_attach_test import image
from ctl_terminal_test import Terminal


def stored(server, name="data"):
    return server.ask("GET", f"/devices/{name}").json["spec"]


def test_all_options_are_in_the_spec(ctl, server, tmp_path):
    path = image(tmp_path)
    ctl("attach", path, "--size", "512K", "-l", "app=db", "--label", "tier=a=b", "--direct-io", "off", "--temporary", "--offset", "4K")
    assert stored(server) == {
        "name": "data", "target": {"type": "loop", "path": path, "offset": 4096, "directIo": "off"}, "size": "512KiB",
        "labels": {"app": "db", "tier": "a=b"}, "temporary": True}


@pytest.mark.parametrize("given, wanted", [("512K", "512KiB"), ("512KiB", "512KiB"), ("524288", 524288)])
def test_a_size_is_understood_as_elsewhere(ctl, server, tmp_path, given, wanted):
    ctl("attach", image(tmp_path), "--size", given)
    assert stored(server)["size"] == wanted


@pytest.mark.parametrize("arguments", [["--size", "1kb"], ["--size", "0"], ["--size", ""], ["--direct-io", "maybe"], ["-l", "app"]])
def test_a_wrong_value_attaches_nothing(ctl, tmp_path, arguments):
    ctl("attach", image(tmp_path), *arguments, status=USAGE)
    assert ctl("list", "-o", "name").out == ""


def test_a_size_that_the_api_refuses(ctl, tmp_path):
    assert "multiple of 512" in ctl("attach", image(tmp_path), "--size", "1000", status=FAILED).err
    assert ctl("list", "-o", "name").out == ""


@pytest.mark.parametrize("option, value", [("size", "512K"), ("label", "app=db"), ("direct-io", "on"), ("temporary", None)])
def test_an_attached_file_with_another_option_is_refused(ctl, server, tmp_path, option, value):
    path = image(tmp_path)
    arguments = [f"--{option}"] + ([value] if value else [])
    node = ctl("attach", path).out
    run = ctl("attach", path, *arguments, status=REFUSED)
    assert run.out == "" and f"the device data, which differs in --{option}" in run.err
    assert ctl("list", "-o", "name").lines == ["data"] and set(stored(server)) == {"name", "target"}
    assert ctl("attach", path).out == node


def test_an_attached_file_with_the_same_options_is_the_same_disk(ctl, tmp_path):
    path = image(tmp_path)
    arguments = ["--size", "512K", "-l", "app=db", "--direct-io", "on", "--temporary"]
    node = ctl("attach", path, *arguments).out
    assert ctl("attach", path, *arguments).out == node
    assert ctl("attach", path, "--size", "524288", "--temporary").out == node, "the same size in other words"
    assert ctl("list", "-o", "name").lines == ["data"]


def test_a_terminal_shows_that_a_disk_comes_back(ctl, tmp_path):
    path = image(tmp_path)
    text, status = Terminal(ctl, "attach", path).end()
    assert status == 0 and "/dev/ublkb0\r\n" in text and "comes back after each boot" in text and "--temporary" in text
    ctl("detach", "data")
    text, status = Terminal(ctl, "attach", path, "--temporary").end()
    assert status == 0 and "comes back after each boot" not in text and "for this boot" not in text and "temporary" in text
    assert ctl("attach", path, "--temporary").err == "", "a script reads the node only"


def test_attach_of_a_file_on_a_temporary_disk_warns(ctl, server, tmp_path):
    path = image(tmp_path)
    node = ctl("attach", path, "--temporary").out
    run = ctl.run("attach", path)
    assert run.status == 0 and run.out == node
    assert "temporary" in run.err and "'ublkctl set data temporary=false'" in run.err
    assert len(run.err.splitlines()) == 1
    ctl("set", "data", "temporary=false")
    assert ctl("attach", path).out == node


def test_describe_and_set_of_a_temporary_disk(ctl, server, tmp_path):
    ctl("attach", image(tmp_path), "--temporary")
    assert "until the next boot" in ctl("describe", "data").out
    ctl("set", "data", "temporary=false")
    assert stored(server)["temporary"] is False and "until the next boot" not in ctl("describe", "data").out


def test_help_shows_that_a_disk_comes_back(ctl):
    words = " ".join(ctl("attach", "--help").out.split())
    assert "comes back after a reboot" in words and "With --temporary it does not come back" in words


def test_attach_waits_for_the_end_of_the_disk_before(ctl, server, tmp_path):
    """As after a boot, when ublkd removes the temporary device of the file."""
    path = image(tmp_path)
    ctl("attach", path, "--temporary")
    server.tell("auto off")
    ctl("delete", "data", "--no-wait")
    server.tell("status data Stopping Deleting It is being removed.")
    answer = []
    thread = threading.Thread(target=lambda: answer.append(ctl.run("attach", path)))
    thread.start()
    server.until("watches", 1)
    server.tell("auto on")
    server.tell("remove data")
    thread.join()
    assert answer[0].status == 0 and answer[0].out == "/dev/ublkb0\n", answer[0].err
    assert "temporary" not in stored(server)
    server.tell("auto off")
    ctl("delete", "data", "--no-wait")
    server.tell("status data Stopping Deleting It is being removed.")
    ctl("attach", path, "--timeout", "200ms", status=TIMED_OUT)
