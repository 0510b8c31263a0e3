# SPDX-License-Identifier: MIT
"""Users with an account and subordinate ids, who run containers with rootless Podman."""

import contextlib
import os
import pathlib
import socket

from . import programs
from .curl import Asker
from .fio import Fio
from .shell import output, run
from .wait import wait_until

_SUBORDINATE = 65536

# The guest has neither systemd nor control groups that a user may change.
_CONTAINERS = """
[containers]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
"""
_STORAGE = """
[storage]
driver = "vfs"
"""


class Account:
    """A user of the guest with a home directory and a range of subordinate ids of its own."""

    def __init__(self, name, uid):
        self.name, self.uid = name, uid
        first = 1000000 + (uid - 1000) * _SUBORDINATE
        ids = f"{first}-{first + _SUBORDINATE - 1}"
        run("useradd", "--uid", uid, "--create-home", "--user-group", "--shell", "/bin/sh", "-K", "SUB_UID_COUNT=0",
            "-K", "SUB_GID_COUNT=0", name)
        run("usermod", "--add-subuids", ids, "--add-subgids", ids, name)
        self.home = pathlib.Path("/home", name)
        self._runtime = pathlib.Path("/run/user", str(uid))
        self._runtime.parent.mkdir(exist_ok=True)
        self._make(self._runtime)
        self._make(self.home / ".config")
        configuration = self._make(self.home / ".config/containers")
        (configuration / "containers.conf").write_text(_CONTAINERS, encoding="ascii")
        (configuration / "storage.conf").write_text(_STORAGE, encoding="ascii")
        variables = {"HOME": self.home, "USER": name, "LOGNAME": name, "XDG_RUNTIME_DIR": self._runtime, "LANG": "C.UTF-8",
                     "PATH": "/usr/local/bin:/usr/bin:/bin",
                     "COMPOSE_HTTP_TIMEOUT": "300"}  # seconds; Podman's service takes over 60 in an emulated guest under load
        self.prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--init-groups", "env", "-i",
                       *(f"{key}={value}" for key, value in variables.items())]

    def _make(self, path):
        path.mkdir(mode=0o700)
        os.chown(path, self.uid, self.uid)
        return path

    def run(self, *command, **more):
        """Run a command as the user, in the home directory; return what it did."""
        return run(*self.prefix, *command, **{"timeout": 300, "cwd": self.home, **more})

    def import_image(self, name, *programs_of_the_guest):
        """Make an image of programs, as examples/containers has it."""
        make = programs.source("examples/containers/make-image")
        self.run("sh", "-c", '"$0" "$@" | podman import - "$NAME"'.replace("$NAME", name), make, *programs_of_the_guest)

    def remove(self):
        """End all processes of the user, its containers among them, and remove the account."""
        self.run("podman", "rm", "--all", "--force", "--time", "0", check=False)
        run("pkill", "-KILL", "-u", self.name, check=False)
        wait_until(lambda: run("pgrep", "-u", self.name, check=False).returncode == 1, f"no process of {self.name}")
        run("rm", "-rf", self.home, self._runtime)
        run("userdel", self.name)


class Container(Asker):
    """A container of a user that runs, with the socket of ublkd in it."""

    def __init__(self, account, image, daemon, *options):
        self.account, self.user = account, account.name
        self.id = account.run("podman", "run", "--detach", "--network=none", f"--volume={daemon.runtime}/ublkd.sock:/run/ublkd/ublkd.sock",
                              *options, image, "sleep", "infinity").stdout.split()[-1]
        self.prefix = [*account.prefix, "podman", "exec", self.id]

    def run(self, *command, **more):
        """Run a command as root of the container."""
        return self.account.run("podman", "exec", self.id, *command, **more)

    def output(self, *command):
        """What a command prints, without the white space around it."""
        return output(*self.prefix, *command, timeout=300, cwd=self.account.home)

    def remove(self):
        """End it."""
        self.account.run("podman", "rm", "--force", "--time", "0", self.id)


class FioInside(Fio):
    """fio in a container: `podman exec` and `docker exec` pass no signal on."""

    def __init__(self, container, directory, disk, **more):
        self._user = container.user
        super().__init__(directory, disk, prefix=container.prefix, **more)

    def finish(self):
        if self.running:
            run("kill", "-INT", output("pgrep", "-o", "-x", "-u", self._user, "fio"))
            self._process.wait(120)
        return super().finish()


@contextlib.contextmanager
def activated(make_daemon, **more):
    """A daemon whose socket stays while it is away, as that of systemd: a container has a mount of that socket."""
    with socket.socket(socket.AF_UNIX) as listener:
        script = f'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@" 3<&{listener.fileno()}'
        daemon = make_daemon(prefix=("bash", "-c", script, "bash"), pass_fds=(listener.fileno(),), **more)
        daemon.runtime.mkdir(mode=0o755, parents=True, exist_ok=True)
        path = daemon.runtime / "ublkd.sock"
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(64)
        yield daemon.start()
