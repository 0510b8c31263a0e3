# SPDX-License-Identifier: MIT
"""Rootless Podman itself: a container asks for a disk, gets it while it runs, and reaches nothing that is not its user's."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sysconfig

import pytest

from harness.api import condition_of, loop_spec, null_spec
from harness.cdi import engines_directory
from harness.disk import Disk, block
from harness.fio import FileOnDisk
from harness.programs import ublkctl
from harness.rootless import Account, Container, FioInside, activated
from harness.tenants import User, kill_under, write_as
from harness.wait import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("podman") or not shutil.which("newuidmap"), reason="needs podman, crun and uidmap"),
]

_PROGRAMS = ("sh", "sleep", "dd", "cat", "curl", "ln", "mv", "mount", "mkfs.ext4", "mknod", "mkfifo", "mkdir", "unshare", str(ublkctl()))
_ALICE, _BOB = 2001, 2002
_SIZE = 64 << 20
_VOLUME = 400 << 20  # xfs wants 300 MiB

# Each argument is a node; prints those that could be written to. Podman makes a plain file to bind a node to.
_WRITE_TO_EACH = """
for file; do
    test -f "$file" && continue
    dd if=/dev/zero of="$file" bs=4096 count=1 conv=nocreat,notrunc oflag=direct status=none 2>/dev/null && echo "$file"
done
true
"""


@pytest.fixture(name="alice", scope="module")
def _alice(guest):  # pylint: disable=unused-argument
    account = Account("alice", _ALICE)
    account.import_image("tools", *_PROGRAMS)
    yield account
    account.remove()


@pytest.fixture(name="bob", scope="module")
def _bob(guest):  # pylint: disable=unused-argument
    account = Account("bob", _BOB)
    account.import_image("tools", *_PROGRAMS)
    yield account
    account.remove()


@pytest.fixture(name="cdi")
def directory_of_the_engines():
    with engines_directory() as path:
        yield path


@pytest.fixture(name="daemon")
def daemon_with_a_policy(ext4, cdi, make_daemon, directory):  # in this order: devices go before their pool and their files
    pool, policy = ext4 / "pool", directory / "policy.d"
    pool.mkdir(mode=0o700)
    policy.mkdir(mode=0o755)
    for path in (directory, ext4.parent.parent, ext4.parent, ext4):
        path.chmod(0o755)
    (policy / "10-test.json").write_text(json.dumps({
        "pools": {"fast": {"directory": str(pool)}},
        "rules": [{"name": "test", "who": {"users": [_ALICE, _BOB]}, "targets": ["loop"], "pools": ["fast"], "directories": [str(ext4)],
                   "mount": True, "devices": 4, "size": "1GiB"}],
    }), encoding="utf-8")
    with activated(make_daemon, more_options=("--policy-dir", str(policy), "--cdi-dir", str(cdi))) as daemon:
        daemon.directory.chmod(0o755)
        yield daemon


@pytest.fixture(name="inside")
def container_of_alice(alice, daemon, directory):
    shared = directory / "shared"
    shared.mkdir()
    os.chown(shared, alice.uid, alice.uid)
    libraries = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"  # of fio: too many for the image
    container = Container(alice, "tools", daemon, f"--volume={shared}:{shared}", f"--volume={libraries}:{libraries}:ro",
                          f"--volume={shutil.which('fio')}:/usr/bin/fio:ro")
    yield container
    container.remove()


def _image(uid, name):
    return {"name": f"u{uid}-{name}", "target": {"type": "loop", "pool": "fast"}, "size": _SIZE}


def _create(container, daemon):
    name = f"u{container.account.uid}-data"
    status, device = container.ask("POST", "/devices?wait=ready&timeout=60s", _image(container.account.uid, "data"))
    assert status == 201 and device["tenant"] == f"uid:{container.account.uid}", device
    return daemon.api.wait_for(name, lambda now: now["status"]["node"], "with a node")


@pytest.mark.storm
def test_a_container_has_a_disk_and_another_user_has_none_of_it(daemon, inside):
    """In short, what the others do with Podman at length: this one is in each `./check`."""
    device = _create(inside, daemon)
    name, disk, node = device["name"], Disk(device["status"]["id"]), device["status"]["node"]
    deliver = ("POST", f"/devices/{name}/deliver", {"path": "/dev/data"})
    assert inside.ask(*deliver) == (200, {"path": "/dev/data"})
    assert inside.output("sh", "-c", _WRITE_TO_EACH, "sh", "/dev/data") == "/dev/data"
    daemon.api.wait_other_worker(name, daemon.kill_worker(name))
    disk.write(0, block("a"))
    assert inside.output("sh", "-c", _WRITE_TO_EACH, "sh", "/dev/data") == "/dev/data"
    assert disk.read(0, 4096) == bytes(4096)
    other = User(daemon, _BOB)
    assert other.ask("GET", f"/devices/{name}")[0] == 404
    assert other.ask(*deliver)[0] == 404
    assert write_as(_BOB, node) == "EACCES"
    assert inside.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
    shown = inside.run("dd", "if=/dev/zero", "of=/dev/data", "bs=4096", "count=1", "conv=nocreat", check=False)
    assert shown.returncode != 0 and not os.path.exists(node)
    log = daemon.log()
    assert re.search(rf"POST /devices\S* by user {_ALICE} \(pid \d+, in a user namespace\), .*: 201", log), log
    assert re.search(rf"POST /devices/{name}/deliver by user {_BOB} \(pid \d+\), .*: 404", log), log


@pytest.mark.storm
def test_a_container_that_keeps_the_id_of_its_user_has_no_disk(alice, daemon, inside):
    """Its user namespace is one inside another one: it has neither a device of its own nor that of its user."""
    name = _create(inside, daemon)["name"]
    kept = Container(alice, "tools", daemon, "--userns=keep-id")
    try:
        assert kept.ask_each(("POST", "/devices", _image(_ALICE, "more")), ("GET", f"/devices/{name}", None),
                             ("DELETE", f"/devices/{name}?force=true", None)) == [403] * 3
        problem = kept.ask("POST", "/devices", _image(_ALICE, "more"))[1]
        assert problem["type"].endswith("forbidden") and "--userns=keep-id" in problem["detail"]
    finally:
        kept.remove()
    assert daemon.api.names() == [name]


@pytest.mark.storm
def test_a_running_container_gets_a_disk_that_recovers(daemon, inside, directory):
    device = _create(inside, daemon)
    name, disk = device["name"], Disk(device["status"]["id"])
    assert inside.ask("POST", f"/devices/{name}/deliver", {"path": "/dev/data"}) == (200, {"path": "/dev/data"})
    assert inside.output("sh", "-c", _WRITE_TO_EACH, "sh", "/dev/data") == "/dev/data"
    inside.run("mkfs.ext4", "-q", "/dev/data")
    assert disk.read(0, 4096)[1080:1082] == b"\x53\xef"  # the magic number of ext4
    fio = FioInside(inside, directory / "shared", FileOnDisk("/dev/data", disk), size="16M", jobs=2)
    try:
        kill_under(fio, daemon, name)
        fio.finish().assert_clean()
    finally:
        fio.kill()
    assert inside.ask("GET", f"/devices/{name}")[1]["status"]["recoveries"]["count"] >= 1
    assert inside.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
    assert inside.output("sh", "-c", _WRITE_TO_EACH, "sh", "/dev/data") == ""
    _create(inside, daemon)
    deliver = ("POST", f"/devices/{name}/deliver", {"path": "/dev/data"})
    wait_until(lambda: inside.ask(*deliver)[0] == 200, "the path free, once ublkd has unmounted the node of the disk that is gone")
    assert inside.output("sh", "-c", _WRITE_TO_EACH, "sh", "/dev/data") == "/dev/data"


@pytest.mark.storm
def test_a_new_container_gets_its_users_disk_by_its_name(alice, daemon, cdi, file_of):
    """Podman reads the directory, in which it may not read the files of the administrators and of other users."""
    disk = Disk(User(daemon, _ALICE).create(_image(_ALICE, "data"))["status"]["id"])
    daemon.api.create(loop_spec("roots", file_of()))
    uid = User(daemon, _BOB).create(_image(_BOB, "data"))["uid"]

    def write(name):
        return alice.run("podman", "run", "--rm", "--network=none", f"--device=ublkd.io/disk={name}", "tools", "sh", "-c", _WRITE_TO_EACH,
                         "sh", f"/dev/ublk/by-name/{name}", check=False)

    disk.write(0, block("a"))
    written = write(f"u{_ALICE}-data")
    assert written.stdout.splitlines()[-1:] == [f"/dev/ublk/by-name/u{_ALICE}-data"], written
    assert disk.read(0, 4096) == bytes(4096)
    for name, file in (("roots", "ublkd-roots.json"), (f"u{_BOB}-data", f"ublkd-@{uid}.json")):
        assert (cdi / file).exists() and alice.run("cat", cdi / file, check=False).returncode != 0
        assert write(name).returncode != 0


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.storm
def test_a_running_container_gets_a_mounted_volume(alice, daemon, inside, file_of, kind):
    """Its root owns the root of the file system, and what it writes belongs to root on the disk and to its user on the host."""
    def ask(verb, body, status=200):
        return daemon.api.ask("POST", f"/devices/volume/{verb}", status, json=body)

    daemon.api.create(loop_spec("volume", file_of(size=_VOLUME)))
    pid = int(alice.run("podman", "inspect", "--format", "{{.State.Pid}}", inside.id).stdout.split()[-1])
    delivery = {"path": "/data", "mount": True, "pid": pid}
    ask("filesystem", {"type": kind})
    ask("deliver", delivery, 409)  # not mounted
    outside = ask("mount", {})["status"]["mount"]
    assert inside.ask("POST", "/devices/volume/deliver", {"path": "/data", "mount": True})[0] == 404  # it is root's
    own = _create(inside, daemon)["name"]
    assert inside.ask("POST", f"/devices/{own}/deliver", {"path": "/dev/data", "pid": pid})[0] == 403
    assert ask("deliver", delivery) == {"path": "/data"}
    inside.run("sh", "-c", "echo hello >/data/file && test -O /data && test -O /data/file")
    there = f"/proc/{pid}/root/data"
    assert (os.stat(f"{outside}/file").st_uid, os.stat(f"{there}/file").st_uid) == (0, alice.uid)
    assert not os.path.exists("/data/file")
    flags = os.statvfs(there).f_flag
    assert flags & os.ST_NOSUID and flags & os.ST_NODEV
    daemon.kill_worker("volume")
    inside.run("sh", "-c", "echo again >>/data/file")
    daemon.kill()
    daemon.start()
    daemon.api.wait_phase("volume", "Live")
    assert "in-use" in ask("unmount", {}, 409)["type"]  # the container has it
    use = os.open(there, os.O_RDONLY)
    assert "in-use" in ask("unmount", {"allHolders": True}, 409)["type"]
    os.close(use)
    inside.run("sh", "-c", "test -e /data/file")
    assert "in-use" in daemon.api.ask("DELETE", "/devices/volume", 409)["type"]
    assert ask("unmount", {"allHolders": True})["status"]["mount"] is None
    assert inside.run("sh", "-c", "test -e /data/file", check=False).returncode == 1
    daemon.api.ask("DELETE", "/devices/volume?wait&timeout=60s", 204)


@pytest.mark.storm
def test_a_tenant_without_a_node_has_a_file_system(alice, daemon, inside):
    """It is made, mounted and delivered for root of the container, who never writes to the disk past it."""
    name = f"u{alice.uid}-data"

    def ask(verb, body):
        return inside.ask("POST", f"/devices/{name}/{verb}", body)

    spec = {"name": name, "target": {"type": "loop", "pool": "fast"}, "size": _SIZE, "privateNode": False}
    status, device = inside.ask("POST", "/devices?wait=ready&timeout=60s", spec)
    assert status == 201 and device["status"]["node"] is None, device
    steps = (("filesystem", {"type": "ext4"}), ("mount", {}), ("deliver", {"path": "/data", "mount": True}))
    assert [ask(*step)[0] for step in steps] == [200] * 3
    assert not os.path.exists(f"/dev/ublk/private/{device['uid']}")
    inside.run("sh", "-c", "echo hello >/data/file && test -O /data/file")
    daemon.kill_worker(name)
    inside.run("sh", "-c", "echo again >>/data/file")
    assert inside.ask("DELETE", f"/devices/{name}")[0] == 409  # in use
    assert ask("unmount", {})[0] == 409  # the container has it
    assert ask("unmount", {"allHolders": True})[0] == 200
    assert inside.run("sh", "-c", "test -e /data/file", check=False).returncode == 1
    assert inside.ask("PATCH", f"/devices/{name}", {"privateNode": True})[0] == 422  # a copy may be left somewhere
    assert inside.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204


@pytest.mark.storm
def test_ublkctl_works_in_a_container(alice, bob, daemon, inside):
    def ctl(*words):
        return inside.output("ublkctl", *words)

    daemon.api.create(null_spec("roots"))
    others = Container(bob, "tools", daemon)
    try:
        _create(others, daemon)
        name = f"u{alice.uid}-more"
        ctl("create", name, "target.type=loop", "target.pool=fast", "size=64MiB")
        assert ctl("list", "-o", "name").split() == [name]
        assert sorted(daemon.api.names()) == ["roots", name, f"u{bob.uid}-data"]
        device = json.loads(ctl("get", name, "-o", "json"))
        assert device["spec"]["size"] == "64MiB" and device["tenant"] == f"uid:{alice.uid}"
        assert device["status"]["node"] in ctl("describe", name)
        ctl("set", name, "labels.app=db")
        ctl("delete", name)
        assert ctl("list", "-o", "name") == ""
        assert sorted(daemon.api.names()) == ["roots", f"u{bob.uid}-data"]
    finally:
        others.remove()


def _host(path):
    """A node of the host in a container that has /dev of the host."""
    return path.replace("/dev/", "/host/")


@contextlib.contextmanager
def _hostile(bob, daemon, *options):
    """A container of bob with /dev of the host and all capabilities that rootless Podman gives."""
    container = Container(bob, "tools", daemon, "--volume=/dev:/host", "--privileged", *options)
    try:
        yield container
    finally:
        container.remove()


def _attacks_on(name, spec):
    """Each request that would change or show a device."""
    changes = (("restart", None), ("stop", None), ("start", None), ("recover", None), ("filesystem", {"type": "ext4"}), ("mount", {}),
               ("unmount", {"allHolders": True}), ("deliver", {"path": "/tmp/data"}), ("actions/scrub", None))
    return [("GET", f"/devices/{name}", None), ("GET", f"/devices/{name}/stats", None), ("GET", f"/devices/{name}/actions", None), ("PATCH", f"/devices/{name}", {"enabled": False}),
            *(("POST", f"/devices/{name}/{verb}", body) for verb, body in changes), ("DELETE", f"/devices/{name}?force=true", None),
            ("PUT", f"/devices/{name}", spec | {"name": name})]


@pytest.mark.storm
def test_a_hostile_container_reaches_no_disk_of_another_user(bob, daemon, inside):
    """Not by the API, and not by /dev of the host. Its requests are answered as those about a device that does not exist."""
    device = _create(inside, daemon)
    name, disk, node = device["name"], Disk(device["status"]["id"]), device["status"]["node"]
    disk.write(0, block("a"))
    with _hostile(bob, daemon) as hostile:
        own = _create(hostile, daemon)["status"]["node"]
        attacks = _attacks_on(name, device["spec"])
        answers = hostile.ask_each(*attacks)
        assert answers == [*[404] * (len(attacks) - 1), 403]  # PUT would make a device with a name that is not bob's
        assert hostile.ask_each(*_attacks_on(f"{name}-more", device["spec"])) == answers
        assert hostile.ask_each(("POST", "/devices", device["spec"]), ("GET", "/host", None)) == [403, 403]
        nodes = [_host(path) for path in (own, node, disk.path, f"/dev/ublkc{disk.number}")]
        hostile.run("sh", "-c", "for node; do test -e $node || exit 1; done", "sh", *nodes)
        assert hostile.output("sh", "-c", _WRITE_TO_EACH, "sh", *nodes) == _host(own)
        assert hostile.output("sh", "-c", "cd /host/ublk/private && echo *") == "*"  # not listed
        shown = hostile.output("sh", "-c", "echo /host/* /host/*/* /host/*/*/*")
        assert f"/host/ublkb{disk.number}" in shown
        assert name not in shown and device["uid"] not in shown
        number = os.stat(node).st_rdev
        assert hostile.run("mknod", "/tmp/node", "b", os.major(number), os.minor(number), check=False).returncode != 0
    given = bob.run("podman", "run", "--rm", "--network=none", f"--device={own}:/dev/own", f"--volume={node}:/dev/data", "tools",
                    "sh", "-c", _WRITE_TO_EACH, "sh", "/dev/own", "/dev/data")
    assert given.stdout.splitlines()[-1] == "/dev/own"
    assert disk.read(0, 4096) == block("a") and daemon.api.phase(name) == "Live"
    assert daemon.api.get(name)["generation"] == device["generation"]


def _loop_of_bob(name, path, **more):
    return {"name": f"u{_BOB}-{name}", "target": {"type": "loop", "path": str(path), **more}, "size": _SIZE}


@pytest.mark.storm
def test_a_hostile_container_gets_no_image_of_another_user_as_its_disk(bob, daemon, ext4):
    """Not by its path, with or without the pool, by a link, /proc or a disk, although the rule gives bob the directory above."""
    device = User(daemon, _ALICE).create(_image(_ALICE, "data"))
    disk, image = Disk(device["status"]["id"]), device["spec"]["target"]["path"]
    disk.write(0, block("a"))
    own = ext4 / "bob"
    own.mkdir()
    os.chown(own, bob.uid, bob.uid)
    with _hostile(bob, daemon, f"--volume={ext4}:{ext4}") as hostile:
        hostile.run("ln", "-s", image, own / "link")
        assert hostile.run("ln", image, own / "name", check=False).returncode != 0
        assert hostile.run("cat", image, check=False).returncode != 0
        assert hostile.ask_each(*(("POST", "/devices", _loop_of_bob("x", path, **more)) for path, more in (
            (image, {"pool": "fast"}), (f"/proc/1/root{image}", {}), (_host(disk.path), {}), (disk.path, {}), ("/tmp/x", {}),
        ))) == [422, *[403] * 4]
        for name, path in (("image", image), ("link", own / "link")):
            assert hostile.ask("POST", "/devices", _loop_of_bob(name, path))[0] == 201
        reasons = {"image": "BackingFileNotPermitted", "link": "BackingFileUnsuitable"}
        for name, reason in reasons.items():
            daemon.api.wait_for(f"u{_BOB}-{name}", lambda now, reason=reason: condition_of(now)["reason"] == reason, reason)
            seen = hostile.ask("GET", f"/devices/u{_BOB}-{name}")[1]
            assert seen["status"]["node"] is None and condition_of(seen)["reason"] == reason
    assert disk.read(0, 4096) == block("a") and os.path.exists(image) and daemon.api.phase(device["name"]) == "Live"


@pytest.mark.storm
def test_a_hostile_container_has_no_more_than_its_rule(bob, daemon, ext4):
    """Not by more devices or requests, a user namespace of its own, what it has put at a path, or a file that is none."""
    own = ext4 / "bob"
    own.mkdir()
    os.chown(own, bob.uid, bob.uid)
    with _hostile(bob, daemon, f"--volume={ext4}:{ext4}") as hostile:
        name = _create(hostile, daemon)["name"]
        hostile.run("sh", "-c", "mkdir -p /tmp && : >/tmp/file && ln -s /tmp/file /tmp/link && ln -s /tmp /there")
        for path, reason in (("/tmp/file", "Occupied"), ("/tmp/link", "Occupied"), ("/there/data", "LinkInPath")):
            status, problem = hostile.ask("POST", f"/devices/{name}/deliver", {"path": path})
            assert (status, problem["errors"][0]["reason"]) == (409, reason), problem
        hostile.run("sh", "-c", "test -f /tmp/file && test ! -s /tmp/file && test -L /tmp/link && test ! -e /tmp/data")
        hostile.run("mkfifo", own / "fifo")
        fifo = _loop_of_bob("fifo", own / "fifo")
        assert hostile.ask("POST", "/devices", fifo)[0] == 201
        daemon.api.wait_for(fifo["name"], lambda now: condition_of(now)["reason"] == "BackingFileUnsuitable", "the FIFO refused")
        assert hostile.output("unshare", "--user", "--map-root-user", "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE",
                              "--unix-socket", "/run/ublkd/ublkd.sock", f"http://localhost/devices/{name}") == "403"
        for more in ("third", "fourth"):
            assert hostile.ask("POST", "/devices", _image(_BOB, more))[0] == 201
        status, problem = hostile.ask("POST", "/devices", _image(_BOB, "fifth"))
        assert (status, problem["errors"][0]["reason"]) == (403, "PolicyExceeded"), problem
        answers = hostile.ask_each(*[("DELETE", f"/devices/u{_BOB}-none", None)] * 130)
        assert answers[0] == 404 and answers[-1] == 429
    User(daemon, _ALICE).create(_image(_ALICE, "data"))  # the limits were bob's


@pytest.mark.storm
def test_a_hostile_container_keeps_no_way_to_the_next_disk_of_the_number(bob, daemon, cdi):
    """It has had the node bound at its start, delivered, and in /dev of the host; and it reads no CDI file of another user."""
    device = User(daemon, _BOB).create(_image(_BOB, "data"))
    name, node = device["name"], device["status"]["node"]
    number = os.stat(node).st_rdev
    with _hostile(bob, daemon, f"--volume={node}:/own", f"--volume={cdi}:/cdi") as hostile:
        def written_to(*paths):
            return hostile.output("sh", "-c", _WRITE_TO_EACH, "sh", *paths).split()

        assert hostile.ask("POST", f"/devices/{name}/deliver", {"path": "/dev/data"})[0] == 200
        kept = ["/own", "/dev/data", _host(node)]
        assert written_to(*kept) == kept
        assert hostile.ask("DELETE", f"/devices/{name}?wait&timeout=60s")[0] == 204
        following = User(daemon, _ALICE).create(_image(_ALICE, "next"))
        disk = Disk(following["status"]["id"])
        assert os.stat(disk.path).st_rdev == number, "another number, so this shows nothing"
        disk.write(0, block("a"))
        assert written_to(*kept) == []
        file = f"ublkd-@{following['uid']}.json"
        assert (cdi / file).exists()
        for attack in (f"cat /cdi/{file}", f": >/cdi/{file}", ": >/cdi/ublkd-more.json"):
            assert hostile.run("sh", "-c", attack, check=False).returncode != 0
    assert disk.read(0, 4096) == block("a")


# Its file and a link to one of root, in turns; a connection of FUSE that no process reads.
_SWAP = """
until test -e "$2/stop"; do
    ln -sf "$1" "$2/new" && mv -f "$2/new" "$2/swapped"
    ln -f "$2/disk.img" "$2/new" && mv -f "$2/new" "$2/swapped" && echo
    sleep 0.1
done
"""
_SILENT = 'exec 3<>/host/fuse && mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 silent "$1" && echo && exec sleep infinity'
_MULTIPLY = """
for number in "$1"/*; do mount --rbind "$1" "$number" || exit 1; done
count=0; while read -r line; do count=$((count + 1)); done </proc/self/mountinfo; echo $count
"""
_MOUNTS = 12  # each one doubles their number


@contextlib.contextmanager
def _program(container, *command):
    """A program in a container that has printed a line, and goes on."""
    with subprocess.Popen([*container.prefix, *map(str, command)], stdout=subprocess.PIPE, cwd=container.account.home) as process:
        try:
            assert process.stdout.readline() == b"\n"
            yield process
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.storm
def test_a_hostile_container_gains_nothing_by_its_mounts(bob, daemon, ext4):
    """Not by a path that it swaps for a link, a volume that is read-only, a FUSE that never answers, or thousands of mounts."""
    own, fixed, secret = ext4 / "bob", ext4 / "fixed", ext4 / "secret"
    for path in (own, fixed, own / "silent", own / "many", *(own / "many" / str(number) for number in range(_MOUNTS))):
        path.mkdir()
        os.chown(path, bob.uid, bob.uid)
    for path, uid, first in (
        (own / "disk.img", bob.uid, bytes(4096)), (fixed / "disk.img", bob.uid, bytes(4096)), (secret, 0, block("s")),
    ):
        path.write_bytes(first)
        os.truncate(path, _SIZE)
        os.chown(path, uid, uid)
        path.chmod(0o600)
    os.chmod("/dev/fuse", 0o666)  # as udev has it
    with _hostile(bob, daemon, f"--volume={own}:{own}", f"--volume={fixed}:/fixed:ro") as hostile:
        spec = _loop_of_bob("swapped", own / "swapped")
        with _program(hostile, "sh", "-c", _SWAP, "sh", secret, own):
            for _ in range(2):
                status, answer = hostile.ask("POST", "/devices?wait=ready&timeout=60s", spec)
                if status == 201:
                    assert Disk(answer["status"]["id"]).read(0, 4096) == bytes(4096)
                else:
                    assert (status, answer["type"]) == (422, "urn:ublkd:problem:cannot-start"), answer
                assert hostile.ask("DELETE", f"/devices/{spec['name']}?wait&timeout=60s")[0] == 204
        (own / "stop").touch()  # podman exec passes no signal on
        spec = _loop_of_bob("fixed", "/fixed/disk.img")
        status, problem = hostile.ask("POST", "/devices", spec)
        assert (status, problem["errors"][0]["reason"]) == (403, "PathOfContainer"), problem
        assert hostile.ask_each(("POST", "/devices", spec | {"readOnly": True}), ("PATCH", f"/devices/{spec['name']}", {"readOnly": False}),
                                ("DELETE", f"/devices/{spec['name']}?wait&timeout=60s", None)) == [201, 403, 204]
        with _program(hostile, "sh", "-c", _SILENT, "sh", own / "silent"):
            status, problem = hostile.ask("POST", "/devices", _loop_of_bob("silent", own / "silent/disk.img"))
            assert (status, problem["errors"][0]["reason"]) == (403, "PathOfContainer"), problem
            assert int(hostile.output("sh", "-c", _MULTIPLY, "sh", own / "many")) >= 1 << _MOUNTS
            status, answer = hostile.ask("POST", "/devices", _loop_of_bob("disk", own / "disk.img"))
            assert status == 201 and answer["spec"]["target"]["path"] == str(own / "disk.img") or (
                status == 403 and answer["errors"][0]["reason"] == "PathOfContainer"), answer
            User(daemon, _ALICE).create(_image(_ALICE, "data"))
    assert secret.read_bytes()[:4096] == block("s")
