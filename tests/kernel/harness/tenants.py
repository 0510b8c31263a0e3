# SPDX-License-Identifier: MIT
"""Devices of tenants, and what users can do with a node."""

import errno
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

_TRY = """
import os, sys
try:
    node = os.open(sys.argv[1], os.O_RDWR)
    os.pwrite(node, sys.argv[2].encode() * 4096, 0)
    os.fsync(node)
except OSError as error:
    print(error.errno)
else:
    print(0)
"""


def hand_over(state, name, uid, file=None):
    """Make a user the tenant of a device: in the database, as if he had created it. No ublkd runs on that. `file`: that the
    device is on, which becomes the user's as well: each worker opens it with the rights of the user."""
    if file:
        os.chown(file, uid, uid)
        os.chmod(pathlib.Path(file).parent, 0o755)
    database = sqlite3.connect(state / "ublkd.db")
    with database:
        changed = database.execute("UPDATE device SET tenant = ? WHERE name = ?", (f"uid:{uid}", name)).rowcount
    database.close()
    assert changed == 1


def kill_under(fio, daemon, name):
    """Kill the worker of a device twice, and then ublkd, while fio runs; it runs on."""
    for _ in range(2):
        fio.wait_running()
        daemon.api.wait_other_worker(name, daemon.kill_worker(name))
    fio.wait_running()
    daemon.kill()
    daemon.start()
    daemon.api.wait_phase(name, "Live")
    fio.wait_running()


def write_as(uid, path, letter="t", pid=None, gid=None):
    """Write a block to a node as a user, in the mount namespace of a process; return the name of the error, or None. `gid`: of a
    group that has not the number of the user."""
    enter = ["nsenter", f"--mount=/proc/{pid}/ns/mnt"] if pid else []
    ids = [f"--reuid={uid}", f"--regid={uid if gid is None else gid}", "--clear-groups"]
    command = [*enter, "setpriv", *ids, sys.executable, "-c", _TRY, str(path), letter]
    number = int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60, cwd="/").stdout)
    return errno.errorcode[number] if number else None


class Elsewhere:
    """A mount namespace of its own with a node bound to a file: a container that ublkd does not know."""

    def __init__(self, node, owner):
        self._directory = tempfile.mkdtemp(prefix="there-")
        os.chmod(self._directory, 0o755)
        self.path = os.path.join(self._directory, "node")
        with open(self.path, "wb"):
            pass
        script = 'mount --bind "$1" "$2" && echo && exec sleep 1000'
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", node, self.path],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )
        assert self.process.stdout.readline() == b"\n"
        assert self.write_as(owner) is None, "the node cannot be opened there, so it shows nothing"

    def write_as(self, uid, letter="t"):
        """Write a block there; return the name of the error, or None."""
        return write_as(uid, self.path, letter, pid=self.process.pid)

    def number(self):
        """The device number of the node that is bound there."""
        return int(subprocess.run(
            ["nsenter", f"--mount=/proc/{self.process.pid}/ns/mnt", "stat", "-c", "%r", self.path],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self._directory)


# Makes a container of the process, as a rootless one: users, mounts and a root directory of its own, in which user 0 is the
# user of the host that it was before.
_CONTAINER = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--"]


class User:
    """A user of the machine who asks with curl, on the host or in a container."""

    def __init__(self, daemon, uid, container=False):
        self.uid, self.daemon = uid, daemon
        ids = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        self.prefix = [*ids, *(_CONTAINER if container else [])]

    def run(self, *command, **more):
        """Run a command as the user; return what it did."""
        return subprocess.run([*self.prefix, *command], check=False, stdout=subprocess.PIPE, text=True, timeout=120, cwd="/", **more)

    def ask(self, method, path, body=None):
        """Send a request; return the status and the JSON of the answer, or None."""
        data = ["--json", json.dumps(body)] if body is not None else []
        done = self.run("curl", "-sS", "-X", method, *data, "-w", "\n%{http_code}", "--unix-socket", self.daemon.runtime / "ublkd.sock",
                        f"http://localhost{path}")
        assert done.returncode == 0, done
        text, status = done.stdout.rsplit("\n", 1)
        return int(status), json.loads(text) if text else None

    def create(self, spec):
        """Create a device that this user may have; return it when it is Live and has its node."""
        status, device = self.ask("POST", "/devices?wait=ready&timeout=60s", spec)
        assert status == 201, device
        return self.daemon.api.wait_for(spec["name"], lambda now: now["status"]["node"], "with a node")

    def names(self):
        """The names of all devices that the user sees."""
        status, answer = self.ask("GET", "/devices?limit=500")
        assert status == 200, answer
        return [item["name"] for item in answer["items"]]


class Place:
    """A daemon with a policy, in a directory that every user can reach."""

    def __init__(self, make_daemon, directory, policy, **more):
        self.directory = directory
        self.policy = directory / "policy.d"
        self.policy.mkdir(mode=0o755)
        self.set_policy(policy)
        directory.chmod(0o755)
        self.daemon = make_daemon(more_options=("--policy-dir", str(self.policy)), **more)
        self.daemon.directory.chmod(0o755)
        self.daemon.start()

    def set_policy(self, policy):
        path = self.policy / "10-test.json"
        path.write_text(json.dumps(policy), encoding="utf-8")
        path.chmod(0o644)

    def home(self, user):
        """A directory that the user may write to."""
        home = self.directory / f"home-{user.uid}"
        home.mkdir(exist_ok=True)
        os.chown(home, user.uid, user.uid)
        return home
