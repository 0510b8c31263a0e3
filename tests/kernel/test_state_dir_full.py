# SPDX-License-Identifier: MIT
"""A full disk under the database."""

import errno

import pytest

from harness import ublk
from harness.api import null_spec
from harness.disk import Disk, block
from harness.shell import run

pytestmark = pytest.mark.long  # and one kernel runs each test


@pytest.fixture(name="small")
def small_file_system(directory):
    """A file system that is soon full."""
    mount = directory / "small"
    mount.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", mount)
    yield mount
    run("umount", mount)


def _fill(path):
    with open(path, "wb", buffering=0) as file:
        for size in (4096, 512, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                assert error.errno == errno.ENOSPC


def _bulky(name):
    return null_spec(name, enabled=False, labels={f"l{i}": "x" * 255 for i in range(60)})


def _create_until_refused(api):
    """What the database holds already may leave room for a few more."""
    for i in range(200):
        name = f"bulky-{i}"
        response = api.request("POST", "/devices", json=_bulky(name))
        if response.status_code != 201:
            return name, response
        api.ask("GET", f"/devices/{name}", 200)
    raise AssertionError("the full disk was never noticed")


def test_full_database_refuses_and_leaves_nothing_half_done(small, make_daemon):
    daemon = make_daemon(state=small).start()
    api = daemon.api
    disk = Disk(api.create(null_spec("kept"))["status"]["id"])
    filler = small / "filler"
    _fill(filler)
    name, response = _create_until_refused(api)
    (problem,) = api.ask("GET", "/host", 200)["problems"]
    assert problem["title"] == "StateDirectoryFull" and str(small) in problem["detail"]
    assert response.status_code in (500, 503, 507)
    assert response.headers["Content-Type"].startswith("application/problem+json")
    api.ask("GET", f"/devices/{name}", 404)
    assert name not in api.names() and ublk.disks() == [disk.number]
    # The disks that are there do not depend on it.
    disk.write(0, block("w"))
    api.wait_other_worker("kept", daemon.kill_worker("kept"))
    names = sorted(api.names())
    filler.unlink()
    assert api.ask("GET", "/host", 200)["problems"] == []
    api.create(_bulky(name), wait=None)
    api.create(null_spec("new"))
    daemon.kill()
    daemon.start()
    assert sorted(api.names()) == sorted([*names, name, "new"])


def test_start_with_a_full_disk_reports_it(small, make_daemon):
    daemon = make_daemon(state=small)
    filler = small / "filler"
    _fill(filler)
    daemon.start(ready=False)
    daemon.process.wait(60)
    assert daemon.process.returncode != 0
    assert str(small) in daemon.log() and ("full" in daemon.log() or "No space" in daemon.log())
    filler.unlink()
    daemon.start()
