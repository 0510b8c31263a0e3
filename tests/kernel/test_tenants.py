# SPDX-License-Identifier: MIT
"""Users without any right ask for disks and use them, with the real driver: what they have recovers like root's disks, and
they reach nothing that is not theirs."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from absent_names import check_answers, plain, program, requests_about_a_name, still_slower
from harness.api import null_spec
from harness.disk import Disk, block
from harness.fio import FileOnDisk, Fio
from harness.shell import run
from harness.tenants import Place, User, kill_under, write_as
from harness.wait import wait_until

pytestmark = pytest.mark.long

_ALICE, _BOB, _STRANGER = 2001, 2002, 2003
_SIZE = 64 << 20


def _rule(pool, **more):
    return {"pools": {"fast": {"directory": str(pool)}},
            "rules": [{"name": "test", "who": {"users": [_ALICE, _BOB]}, "targets": ["loop", "null"], "pools": ["fast"], "devices": 4,
                       "size": "1GiB", "queues": 4, "queueDepth": 128, "maxIoSize": "1MiB", "changesPerMinute": 100000, **more}]}


class _Place(Place):
    """A daemon with a policy and a pool on a file system of its own."""

    def __init__(self, make_daemon, directory, pool):
        self.pool = pool
        super().__init__(make_daemon, directory, _rule(pool))
        self.alice, self.bob, self.stranger = (User(self.daemon, uid) for uid in (_ALICE, _BOB, _STRANGER))


@pytest.fixture(name="place")
def place_of_tenants(ext4, make_daemon, directory):  # in this order: devices go before their pool
    pool = ext4 / "pool"
    pool.mkdir(mode=0o700)
    return _Place(make_daemon, directory, pool)


def _spec(user, name="data", **more):
    return {"name": f"u{user.uid}-{name}", "target": {"type": "loop", "pool": "fast"}, "size": _SIZE, **more}


def test_a_user_has_a_disk_that_recovers(place, kernel_log):  # pylint: disable=unused-argument
    """fio checks what it reads as that user, while the worker and ublkd are killed, and the image goes with the device."""
    alice, daemon = place.alice, place.daemon
    device = alice.create(_spec(alice))
    name, disk = device["name"], Disk(device["status"]["id"])
    assert device["tenant"] == f"uid:{_ALICE}"
    fio = Fio(place.home(alice), FileOnDisk(device["status"]["node"], disk), size="16M", jobs=2, prefix=alice.prefix)
    try:
        kill_under(fio, daemon, name)
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert alice.ask("GET", f"/devices/{name}")[1]["status"]["recoveries"]["count"] >= 1
    assert len([*place.pool.iterdir()]) == 1
    assert alice.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
    assert [*place.pool.iterdir()] == [] and not os.path.exists(device["status"]["node"])


def test_a_neighbour_reaches_nothing(place):
    alice, bob = place.alice, place.bob
    device = alice.create(_spec(alice))
    name, node = device["name"], device["status"]["node"]
    disk = Disk(device["status"]["id"])
    disk.write(0, block("a"))
    for method, path, body in (("GET", "", None), ("DELETE", "?force=true", None), ("PATCH", "", {"enabled": False}), ("GET", "/stats", None),
                               ("POST", "/restart", None), ("POST", "/stop", None)):
        assert bob.ask(method, f"/devices/{name}{path}", body)[0] == 404
    assert bob.ask("POST", "/devices", _spec(alice))[0] == 403 and bob.names() == []
    for path in (node, disk.path, f"/dev/ublkc{disk.number}", device["spec"]["target"]["path"]):
        assert write_as(_BOB, path) in ("EACCES", "EPERM", "ENOENT")
    assert device["status"]["links"] == [] and not os.path.lexists(f"/dev/ublk/by-name/{name}")
    assert bob.run("ls", "/dev/ublk/private").returncode != 0
    path_of_alice = {**_spec(bob), "target": {"type": "loop", "path": device["spec"]["target"]["path"]}}
    assert bob.ask("POST", "/devices", path_of_alice)[0] == 403
    stolen = {**_spec(bob), "target": {"type": "loop", "pool": "fast", "path": device["spec"]["target"]["path"]}}
    assert bob.ask("POST", "/devices", stolen)[0] in (403, 422)
    assert disk.read(0, 4096) == block("a") and place.daemon.api.phase(name) == "Live"


# What every user of the machine may read of disks: files, links, command lines and units.
_LOOK = """
cd "$1" && ls -R . /dev/ublk /dev/disk /run/udev /sys/fs/cgroup 2>/dev/null
cat disks/* live/* failed/* /run/udev/data/* /proc/mounts 2>/dev/null
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '
true
"""


def test_no_user_learns_the_name_of_a_device_of_another(place):
    device, public = place.alice.create(_spec(place.alice)), place.daemon.api.create(null_spec("of-root"))
    for again in (False, True):
        if again:  # a worker that was no spare
            for name in (device["name"], public["name"]):
                place.daemon.api.wait_other_worker(name, place.daemon.kill_worker(name))
        seen = place.bob.run("sh", "-c", _LOOK, "sh", place.daemon.runtime).stdout
        assert "by-name" in seen and public["name"] in seen and f"ublkb{device['status']['id']}" in seen
        assert [line for line in seen.splitlines() if device["name"] in line or device["uid"] in line] == []


@pytest.mark.variant
def test_a_rootless_container_is_its_user(place):
    """Root of it is the user on the host: to its own disk it can write, and to no other one."""
    inside = User(place.daemon, _ALICE, container=True)
    device = inside.create(_spec(inside))
    assert device["tenant"] == f"uid:{_ALICE}" and place.alice.names() == [device["name"]]
    node = device["status"]["node"]
    assert inside.run("dd", "if=/dev/zero", f"of={node}", "bs=4096", "count=1", "oflag=direct", "status=none").returncode == 0
    bobs = place.bob.create(_spec(place.bob))
    assert inside.names() == [device["name"]]
    assert inside.run("dd", "if=/dev/zero", f"of={bobs['status']['node']}", "bs=4096", "count=1", "status=none").returncode != 0
    assert inside.ask("DELETE", f"/devices/{bobs['name']}?force=true")[0] == 404


@pytest.mark.variant
@pytest.mark.timed
def test_a_live_disk_of_another_is_answered_like_an_absent_one_and_as_fast(place):
    """Of another tenant, and of root, for each request of the API that has a name."""
    document = place.daemon.api.ask("GET", "/openapi.json", 200)
    requests = requests_about_a_name(document, target={"type": "loop", "pool": "fast"}, size=_SIZE)
    place.bob.create(_spec(place.bob, "live"))
    place.daemon.api.create(null_spec("of-root"))

    for names in ((f"u{_BOB}-live", f"u{_BOB}-none"), ("of-root", "no-root")):
        def ask(wanted, rounds, names=names):
            done = place.alice.run(sys.executable, "-c", program(place.daemon.runtime / "ublkd.sock", wanted, names, rounds))
            found = json.loads(done.stdout)
            check_answers(found)
            return found

        ask(requests, 1)
        assert not still_slower(ask, plain(requests))
        assert place.daemon.api.phase(names[0]) == "Live"


def test_the_next_owner_reads_nothing_of_the_last_one(place):
    """The blocks of an image that was deleted are not those of the next one."""
    device = place.alice.create(_spec(place.alice))
    disk = Disk(device["status"]["id"])
    for offset in range(0, _SIZE, 4 << 20):
        disk.write(offset, block("s"))
    assert place.alice.ask("DELETE", f"/devices/{device['name']}?wait&timeout=60s")[0] == 204
    bobs = place.bob.create(_spec(place.bob))
    following = Disk(bobs["status"]["id"])
    for offset in range(0, _SIZE, 4 << 20):
        assert following.read(offset, 4096) == bytes(4096)


@pytest.mark.storm
def test_quotas_hold_when_many_ask_at_once(place):
    """Beside deaths of ublkd; an image that was made for a device that was refused does not exist."""
    def create(index):
        user = (place.alice, place.bob)[index % 2]
        try:
            return user.ask("POST", "/devices", _spec(user, f"{index}", queues=1))[0]
        except (AssertionError, ValueError):
            return 0  # ublkd was away

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = pool.map(create, range(40))
        place.daemon.kill()
        place.daemon.start()
        counts = list(answers)
    assert set(counts) <= {0, 201, 403, 503}
    for index in range(40, 60):
        create(index)
    for user in (place.alice, place.bob):
        assert len(user.names()) == 4
    for name in place.daemon.api.names():
        place.daemon.api.wait_phase(name, "Live")
    wait_until(lambda: len([*place.pool.iterdir()]) == 8, "one image for each device")


def test_a_rule_that_went_leaves_the_disks(place):
    device = place.alice.create(_spec(place.alice))
    node = device["status"]["node"]
    place.set_policy({"rules": []})
    place.daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: place.alice.ask("GET", "/devices")[0] == 403, "the tenant without a rule")
    assert write_as(_ALICE, node) is None
    assert place.stranger.ask("GET", f"/devices/{device['name']}")[0] == 403
    pid = place.daemon.kill_worker(device["name"])
    place.daemon.api.wait_other_worker(device["name"], pid)
    place.daemon.api.delete(device["name"])
    assert [*place.pool.iterdir()] == []


_BUFFERED = """
import sys
node = open(sys.argv[1], "r+b", buffering=0)  # the last close would write the pages
node.write(bytes(4 << 20))
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.variant
def test_the_slowest_disk_of_a_tenant_holds_up_sync_no_longer_than_its_limit(place):
    """With a death of its worker meanwhile. A disk that waits until a person acts, or is slower, is refused."""
    alice, daemon, slow = place.alice, place.daemon, {"limits": {"write": {"bytesPerSec": "1MiB"}}}
    for more in ({"onFull": "wait"}, {"recovery": {"trigger": "manual"}}, {"limits": {"write": {"bytesPerSec": "512KiB"}}},
                 {"limits": {"write": {"iops": 100}}}):
        assert alice.ask("POST", "/devices", _spec(alice, **more))[0] == 403, more
    device = alice.create(_spec(alice, **slow))
    command = [*alice.prefix, sys.executable, "-c", _BUFFERED, device["status"]["node"]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as writer:
        assert writer.stdout.readline() == b"\n"
        began = time.monotonic()
        with subprocess.Popen(["sync"]) as sync:
            daemon.api.wait_other_worker(device["name"], daemon.kill_worker(device["name"]))
            assert alice.ask("GET", f"/devices/{device['name']}")[0] == 200  # ublkd does not wait
            assert sync.wait(120) == 0
        assert time.monotonic() - began > 2, "sync waited for nothing, so this shows nothing"
        writer.stdin.close()


@pytest.mark.variant
def test_a_process_of_its_own_that_keeps_the_node_open_counts(place):
    """Until it ends: the disk is not removed beside it, and with force the device stays and counts."""
    alice, devices = place.alice, 4
    device = alice.create(_spec(alice))
    name = device["name"]
    opener = subprocess.Popen([*alice.prefix, "sh", "-c", 'exec 3<>"$1" && echo && exec sleep 1000', "sh", device["status"]["node"]],
                              stdout=subprocess.PIPE, cwd="/")
    try:
        assert opener.stdout.readline() == b"\n"
        status, problem = alice.ask("DELETE", f"/devices/{name}?wait&timeout=60s")
        assert status == 409 and f"process {opener.pid} (" in problem["detail"], problem
        assert write_as(_ALICE, device["status"]["node"]) is None
        assert alice.ask("DELETE", f"/devices/{name}?force=true")[0] == 202
        wait_until(lambda: not os.path.exists(device["status"]["node"]), "the node gone")
        for index in range(1, devices):
            alice.create(_spec(alice, f"{index}"))
        status, problem = alice.ask("POST", "/devices", _spec(alice, "more"))
        assert status == 403 and problem["errors"][0]["reason"] == "PolicyExceeded", problem
        assert alice.ask("POST", "/devices", _spec(alice))[0] == 409
        assert name in alice.names()
    finally:
        opener.kill()
        opener.wait()
        opener.stdout.close()
    wait_until(lambda: name not in alice.names(), "the device gone")
    assert alice.create(_spec(alice))["uid"] != device["uid"]


@pytest.fixture(name="account")
def account_that_can_go():
    """The name of a user of the machine, with the number of alice."""
    run("useradd", "--uid", str(_ALICE), "--no-create-home", "--user-group", "carol")
    yield "carol"
    for name in ("carol", "dave"):
        run("userdel", name, check=False)


@pytest.mark.variant
def test_an_account_that_is_removed_leaves_its_disks_to_its_number(place, account):
    """They are served and recovered without it. Who gets the number next owns them, if a rule names him."""
    rules = _rule(place.pool)

    def allow(name):
        rules["rules"][0]["who"] = {"users": [name]}
        place.set_policy(rules)
        place.daemon.process.send_signal(signal.SIGHUP)

    allow(account)
    wait_until(lambda: place.bob.ask("GET", "/devices")[0] == 403, "the rule for the account alone")
    device = place.alice.create(_spec(place.alice))
    name, disk = device["name"], Disk(device["status"]["id"])
    disk.write(0, block("c"))
    run("userdel", account)
    place.daemon.api.wait_other_worker(name, place.daemon.kill_worker(name))
    place.daemon.kill()
    place.daemon.start()
    place.daemon.api.wait_phase(name, "Live")
    assert disk.read(0, 4096) == block("c")
    assert place.alice.ask("GET", f"/devices/{name}")[0] == 403  # the rule names no user that exists
    assert place.daemon.api.get(name)["tenant"] == f"uid:{_ALICE}"
    run("useradd", "--uid", str(_ALICE), "--no-create-home", "--user-group", "dave")
    assert place.alice.ask("GET", f"/devices/{name}")[0] == 403
    allow("dave")
    wait_until(lambda: place.alice.ask("GET", f"/devices/{name}")[0] == 200, "the rule for the next one with the number")
    assert place.alice.names() == [name]
    node = place.daemon.api.wait_for(name, lambda now: now["status"]["node"], "with a node")["status"]["node"]
    assert write_as(_ALICE, node, "d") is None and disk.read(0, 4096) == block("d")
    assert place.alice.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
    assert [*place.pool.iterdir()] == []
