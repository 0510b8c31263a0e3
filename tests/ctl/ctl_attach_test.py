# SPDX-License-Identifier: MIT
"""attach and detach, like those of losetup."""
import os
import threading

import pytest

from ctl import FAILED, NOT_FOUND, REFUSED, TIMED_OUT, USAGE


def image(tmp_path, name="data.img"):
    path = tmp_path / name
    path.write_bytes(bytes(1 << 20))
    return str(path)


def test_attach_prints_the_node(ctl, server, tmp_path):
    path = image(tmp_path, "My Data.img")
    assert ctl("attach", "My Data.img").out == "/dev/ublkb0\n"
    stored = server.ask("GET", "/devices/my-data").json["spec"]
    assert stored == {"name": "my-data", "target": {"type": "loop", "path": path}}


def test_a_second_attach_returns_the_same_disk(ctl, tmp_path):
    path = image(tmp_path)
    (tmp_path / "link").symlink_to(path)
    ctl("attach", path)
    ctl("attach", str(tmp_path / "link"))
    assert ctl("list", "-o", "name").lines == ["data"]


def test_a_part_of_a_file_is_not_the_file(ctl, server, tmp_path):
    path = image(tmp_path)
    ctl("create", "part", "target.type=linear", "target.child.type=loop", f"target.child.path={path}", "target.child.offset=4K")
    ctl("attach", path)
    assert ctl("list", "-o", "name").lines == ["data", "part"]
    assert server.ask("GET", "/devices/data").json["spec"]["target"] == {"type": "loop", "path": path}


def test_other_disks_of_a_file_have_other_names(ctl, server, tmp_path):
    path = image(tmp_path)
    ctl("attach", path)
    ctl("attach", "-r", path)
    ctl("attach", "-r", path, "--offset", "4K")
    ctl("attach", "-r", path, "--name", "mine")
    assert ctl("list", "-o", "name").lines == ["data", "data-2", "data-3", "mine"]
    assert server.ask("GET", "/devices/data-3").json["spec"]["target"]["offset"] == 4096
    assert server.ask("GET", "/devices/mine").json["spec"]["readOnly"] is True


def test_a_name_that_is_taken_is_refused(ctl, tmp_path):
    ctl("create", "mine", "target.type=null", "size=1MiB")
    assert ctl("attach", image(tmp_path), "--name", "mine", status=REFUSED).err
    assert "/name" in ctl("attach", image(tmp_path), "--name", "Bad Name", status=FAILED).err
    ctl("attach", image(tmp_path), "--name", "x" * 64, status=USAGE)
    ctl("attach", image(tmp_path), "--offset", "1kb", status=USAGE)


def test_attach_of_a_missing_file(ctl, server):
    output = ctl("attach", "nowhere.img", status=FAILED).err
    assert output.startswith("ublkctl: nowhere.img: The file does not exist; check the path,") and "truncate" in output
    assert server.ask("GET", "/devices").json["items"] == []


@pytest.mark.parametrize("path", ["/dev/sdzz", "/dev/disk/by-id/none"])
def test_attach_does_not_advise_to_create_a_file_in_dev(ctl, path):
    output = ctl("attach", path, status=FAILED).err
    assert "does not exist" in output and "truncate" not in output


def test_attach_does_not_advise_to_recreate_a_file_with_a_disk(ctl, tmp_path):
    """An empty file instead of the missing one would be the loss of its data."""
    path = image(tmp_path)
    ctl("attach", path)
    os.rename(path, path + ".away")
    for word in (path, "data.img"):
        output = ctl("attach", word, status=FAILED).err
        assert "the disk of the device data lies in it; bring it back" in output and "truncate" not in output
    assert ctl("detach", "data.img").out == "data removed\n"


def test_the_path_stays_as_it_was_given(ctl, server, tmp_path):
    """A link keeps its name when its target has another name after the next boot."""
    (tmp_path / "store").mkdir()
    image(tmp_path / "store", "v1.img")
    (tmp_path / "link.img").symlink_to("store/v1.img")
    (tmp_path / "store" / "up").symlink_to(tmp_path / "store")
    for word, path in (("link.img", "link.img"), ("./store/../link.img", "link.img"), (f"{tmp_path}//store/./v1.img", "store/v1.img"),
                       ("store/up/../store/v1.img", "store/up/../store/v1.img")):
        ctl("attach", word)
        (device,) = server.ask("GET", "/devices").json["items"]
        assert device["spec"]["target"]["path"] == f"{tmp_path}/{path}"
        assert ctl("detach", word).out == f"{device['name']} removed\n"


def test_the_path_of_a_link_in_dev_stays(ctl, server):
    """/dev/stdin and the like are links in every /dev; ublkd refuses their targets."""
    with open("/dev/null", encoding="utf-8") as stdin:
        ctl.run("attach", "/dev/stdin", stdin=None, pass_fds=(stdin.fileno(),))
    (device,) = server.ask("GET", "/devices").json["items"]
    assert (device["name"], device["spec"]["target"]["path"]) == ("stdin", "/dev/stdin")


def test_a_disk_is_found_by_every_name_of_its_file(ctl, tmp_path):
    path = image(tmp_path)
    os.link(path, tmp_path / "hard.img")
    (tmp_path / "soft.img").symlink_to("hard.img")
    (tmp_path / "folder").symlink_to(tmp_path)
    words = [path, "hard.img", "soft.img", "folder/soft.img", "folder/../" + os.path.basename(tmp_path) + "/data.img"]
    for word in words:
        node = ctl("attach", word).out
        assert [ctl("attach", other).out for other in words] == [node] * len(words)
        assert len(ctl("list", "-o", "name").lines) == 1
        ctl("detach", words[-1 - words.index(word)])
    assert ctl("list", "-o", "name").lines == []


def test_a_link_that_leads_elsewhere_now_is_another_disk(ctl, server, tmp_path):
    """ublkd reports that in a condition. The text of the path is the same, so detach does not guess."""
    image(tmp_path, "one.img")
    image(tmp_path, "two.img")
    (tmp_path / "link").symlink_to("one.img")
    ctl("attach", "link", "--name", "first")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("two.img")
    server.tell("condition first PathLeadsToStore False AnotherFile It leads to another file.")
    ctl("attach", "link", "--name", "second")
    ctl("attach", "two.img")
    assert ctl("list", "-o", "name").lines == ["first", "second"]
    assert "first and second" in ctl("detach", "link", status=REFUSED).err


def test_a_file_that_was_replaced_does_not_silently_become_a_second_disk(ctl, server, tmp_path):
    path = image(tmp_path)
    node = ctl("attach", path).out
    server.tell("condition data PathLeadsToStore False PathLeadsElsewhere It leads to another file.")
    # "--name data" printed the node of the old file.
    for more in ([], ["--name", "data"], ["--offset", "4K"], ["-r"]):
        output = ctl("attach", path, *more, status=REFUSED).err
        assert "the device data (/dev/ublkb0) serves" in output and "It leads to another file." in output
        assert "'ublkctl attach --name NAME FILE'" in output
        assert ctl("list", "-o", "name").lines == ["data"]
    assert "replaced under a device of that path, refuses" in " ".join(ctl("attach", "--help").out.split())
    ctl("attach", path, "--name", "new")
    ctl("attach", path)
    assert ctl("list", "-o", "name").lines == ["data", "new"]
    server.tell("condition data PathLeadsToStore True PathLeadsToStore It leads there again.")
    assert ctl("attach", path, "--name", "data").out == node


def test_other_paths_that_lead_nowhere(ctl, tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    path = image(tmp_path)
    for word, advice in (("circle", "form a loop; name the file"), (path + "/x", "check the path"), ("x" * 300, "use a shorter one")):
        assert advice in ctl("attach", str(tmp_path / word), status=FAILED).err


@pytest.mark.parametrize("next_try", ["That was try 2 in a row. The next try is at 07:31:28.217Z.", "Another try is under way."])
def test_an_attach_that_fails_leaves_nothing_behind(ctl, server, tmp_path, next_try):
    server.tell("auto off")
    answer = []
    path = image(tmp_path)
    thread = threading.Thread(target=lambda: answer.append(ctl.run("attach", path)))
    thread.start()
    server.until("waits", 1)
    server.tell("auto on")
    server.tell(f"status data Backoff BackingTooSmall It is too small. | {next_try}")
    thread.join()
    assert answer[0].status == FAILED and "It is too small.\n" in answer[0].err and answer[0].out == ""
    assert "try" not in answer[0].err and "nothing is left behind" in answer[0].err
    ctl("wait", "data", "--for", "gone")


def test_an_attach_that_times_out_is_undone(ctl, server, tmp_path):
    server.tell("auto off")
    run = ctl("attach", image(tmp_path), "--timeout", "100ms", status=TIMED_OUT)
    assert run.out == "" and "the device data is being removed" in run.err, "and not reported as done"
    server.tell("remove data")


def test_detach_by_node_file_and_name(ctl, tmp_path):
    path = image(tmp_path)
    for word in ("/dev/ublkb0", path, "data.img", "data"):
        ctl("attach", path)
        assert ctl("detach", word).out == "data removed\n"
    assert "No disk has this" in ctl("detach", path, status=NOT_FOUND).err


def test_detach_of_several(ctl, tmp_path):
    one, two = image(tmp_path, "one.img"), image(tmp_path, "two.img")
    ctl("attach", one)
    ctl("attach", two)
    run = ctl("detach", one, "/dev/none", two, status=NOT_FOUND)
    assert run.lines == ["one removed", "two removed"]


def test_detach_of_a_file_with_two_disks_asks_which(ctl, tmp_path):
    path = image(tmp_path)
    ctl("attach", "-r", path)
    ctl("attach", "-r", path, "--offset", "4096")
    run = ctl("detach", path, status=REFUSED)
    assert "data and data-2" in run.err
    ctl("detach", "data-2")
    ctl("detach", path)


def test_detach_of_a_disk_in_use_names_its_users(ctl, server, tmp_path):
    path = image(tmp_path)
    ctl("create", "data", "target.type=loop", f"target.path={path}", "id=0")
    server.tell("busy 0 mounted at /srv")
    assert "mounted at /srv" in ctl("detach", path, status=REFUSED).err
    ctl("detach", path, "--force")


def test_detach_prefers_the_node_to_the_disk_that_it_backs(ctl):
    ctl("create", "upper", "target.type=loop", "target.path=/dev/ublkb7", "id=8")
    ctl("create", "lower", "target.type=null", "size=1MiB", "id=7")
    ctl("create", "top", "target.type=loop", "target.path=/dev/ublkb7", "id=9")
    assert ctl("detach", "/dev/ublkb7").out == "lower removed\n"
    assert ctl("list", "-o", "name").lines == ["top", "upper"]


def test_a_missing_driver_is_reported_at_once(ctl, server, tmp_path):
    server.tell("auto off")
    answer = []
    path = image(tmp_path)
    thread = threading.Thread(target=lambda: answer.append(ctl.run("attach", path, "--timeout", "10min")))
    thread.start()
    server.until("waits", 1)
    server.tell("status data Pending HostNotReady The ublk driver is not loaded.")
    thread.join()
    assert answer[0].status == FAILED and "driver is not loaded." in answer[0].err and "is being removed" in answer[0].err
    server.tell("remove data")


def test_attach_warns_of_the_part_that_is_not_on_the_disk(ctl, tmp_path):
    (tmp_path / "odd.img").write_bytes(bytes(512 * 4 + 100))
    run = ctl.run("attach", "odd.img")
    assert run.status == 0 and run.out == "/dev/ublkb0\n" and "The last 100 bytes are not on the disk" in run.err
    path = image(tmp_path)
    ctl("create", "part", "target.type=loop", f"target.path={path}", "size=512KiB")
    run = ctl.run("attach", path)
    assert run.status == 0 and "the device part does not cover the whole file: its size is set to 512KiB" in run.err


def test_attach_warns_of_a_path_that_may_be_another_disk_after_a_reboot(ctl, server, tmp_path):
    path = image(tmp_path)
    ctl("attach", path)
    server.tell("condition data StablePath False UnstablePath It may be another disk; use /dev/disk/by-id/wwn-1.")
    run = ctl.run("attach", path)
    assert run.status == 0 and run.out == "/dev/ublkb0\n"
    assert run.err == f"ublkctl: {path}: It may be another disk; use /dev/disk/by-id/wwn-1.\n"
    assert "/dev/disk/by-id/wwn-1" in ctl("describe", "data").out
    run = ctl.run("create", "data", "target.type=loop", f"target.path={path}")
    assert run.status == 0 and "/dev/disk/by-id/wwn-1" in run.err
