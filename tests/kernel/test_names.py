# SPDX-License-Identifier: MIT
"""The names of a block device: names that the kernel assigns, and names that last."""

import subprocess

import pytest

from harness import programs
from harness.disk import Disk, block
from harness.mapper import Mapped

pytestmark = pytest.mark.long  # and one kernel runs each test


def _run(daemon, *arguments):
    """ublkctl: status, stdout and stderr."""
    command = [str(programs.build() / "ublkctl"), "--socket", str(daemon.runtime / "ublkd.sock"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, done.stdout, done.stderr


def ublkctl(daemon, *arguments):
    """What it prints; it must end well and warn of nothing."""
    status, out, err = _run(daemon, *arguments)
    assert (status, err) == (0, ""), f"{arguments}: {status}: {out}{err}"
    return out


@pytest.fixture
def mapped(file_of):
    """A disk of device mapper that holds a block of "m". Name it before `daemon`: it must go after it."""
    path = file_of("mapped.img", 8 << 20)
    with open(path, "r+b") as file:
        file.write(block("m"))
    disk = Mapped("names", path)
    yield disk
    disk.close()


def _condition(device):
    return next((item for item in device["status"]["conditions"] if item["type"] == "StablePath"), None)


def _events(api):
    items = api.ask("GET", "/events?device=data", 200, headers={"Accept": "application/json"})["items"]
    return [event for event in items if event["reason"] == "UnstablePath"]


@pytest.mark.parametrize("kind", ["mapper", pytest.param("by_id", marks=pytest.mark.variant)])
def test_a_stable_name_is_kept_as_it_is(mapped, daemon, kind):
    path = getattr(mapped, kind)
    ublkctl(daemon, "attach", path, "--name", "data")
    device = daemon.api.get("data")
    assert device["spec"]["target"]["path"] == path and _condition(device) is None and not _events(daemon.api)
    assert Disk(device["status"]["id"]).read(0, 4096) == block("m")
    for other in (mapped.node, mapped.mapper, mapped.by_id):
        assert ublkctl(daemon, "attach", other, "--name", "data").strip() == device["status"]["device"]
    assert ublkctl(daemon, "detach", mapped.node) == "data removed\n"


@pytest.mark.parametrize("by_link", [pytest.param(False, marks=pytest.mark.variant), True])
def test_a_name_of_the_kernel_is_served_with_a_warning(mapped, daemon, tmp_path, by_link):
    link = tmp_path / "link"
    link.symlink_to(mapped.node)
    path = str(link) if by_link else mapped.node
    status, node, output = _run(daemon, "attach", path, "--name", "data")
    device = daemon.api.get("data")
    assert status == 0 and node.strip() == device["status"]["device"] and device["status"]["phase"] == "Live"
    assert device["spec"]["target"]["path"] == path
    assert (_condition(device)["status"], _condition(device)["reason"]) == ("False", "UnstablePath")
    (event,) = _events(daemon.api)
    assert event["type"] == "Warning"
    for text in (output, event["message"], _condition(device)["message"], ublkctl(daemon, "describe", "data")):
        assert path in text and mapped.by_id in text
    daemon.api.wait_other_worker("data", daemon.kill_worker("data"))
    assert _condition(daemon.api.get("data"))["status"] == "False" and len(_events(daemon.api)) == 1
    ublkctl(daemon, "detach", "data")


def test_a_policy_refuses_the_name_of_the_kernel(mapped, make_daemon):
    daemon = make_daemon(more_options=["--unstable-paths=refuse"]).start()
    status, out, output = _run(daemon, "attach", mapped.node)
    assert status == 1 and out == "" and "/target/path" in output
    assert daemon.api.names() == []
    node = ublkctl(daemon, "attach", mapped.mapper, "--name", "data")
    assert ublkctl(daemon, "attach", mapped.node) == node, "it is attached already, by a name that stays"
    ublkctl(daemon, "detach", "data")
