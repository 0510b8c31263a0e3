# SPDX-License-Identifier: MIT
"""The engine of Docker, as Debian has it, without a network."""

import os
import pathlib
import shutil
import subprocess

from .curl import Asker
from .shell import output
from .wait import wait_until

_SOCKET = pathlib.Path("/var/run/docker.sock")
_PLUGIN = pathlib.Path("/etc/docker/plugins/ublkd.spec")

# The client of the same package, and not another one in /usr/local.
_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"}

# What is only so for a guest: no network, and no file system below it that takes layers.
_OPTIONS = ("--iptables=false", "--bridge=none", "--storage-driver=vfs", "--exec-opt", "native.cgroupdriver=cgroupfs")

PROGRAMS = ("dockerd", "containerd", "runc", "docker")


def is_installed():
    """Whether this machine has all of it."""
    return all(shutil.which(program, path=_PATH["PATH"]) for program in PROGRAMS)


class Docker:
    """dockerd at the usual socket."""

    def __init__(self, directory):
        directory.chmod(0o711)  # users of containers go through it
        self._directory = directory / "docker"
        self._directory.mkdir(0o711)
        self.environment = os.environ | _PATH
        self._log = (self._directory / "log").open("wb")
        self._process = None
        self._containers = self._start_containerd()

    def _spawn(self, *words):
        return subprocess.Popen(
            [*map(str, words)], env=self.environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)

    def _start_containerd(self):
        """dockerd starts it if there is none, and then gives it 15 seconds, in which a guest may not have read it from its disk."""
        top = self._directory / "containerd"
        top.mkdir(0o711)
        (top / "config").write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n', encoding="ascii")
        process = self._spawn(
            "containerd", "--config", top / "config", "--address", top / "socket", "--root", top / "root", "--state", top / "state")
        wait_until((top / "socket").exists, lambda: "containerd; its log: " + self.log()[-4000:], timeout=240)
        return process

    def start(self):
        """Start it, and wait until it answers."""
        self._process = self._spawn(
            "dockerd", *_OPTIONS, "--containerd", self._directory / "containerd/socket", "--data-root", self._directory / "data",
            "--exec-root", self._directory / "run", "--pidfile", self._directory / "pid")
        wait_until(self._answers, lambda: "dockerd; its log: " + self.log()[-4000:], timeout=240)
        return self

    def _answers(self):
        assert self._process.poll() is None, self.log()[-4000:]
        return _SOCKET.exists() and self.run("info", check=False).returncode == 0

    def log(self):
        """What it has written so far."""
        return (self._directory / "log").read_text(errors="replace")

    def stop(self):
        """SIGTERM ends it with its containers."""
        self._process.terminate()
        self._process.wait(120)

    def kill(self):
        """SIGKILL, as a crash. Its containers go on only with "live-restore"."""
        self._process.kill()
        self._process.wait(60)

    def run(self, *words, check=True, **more):
        """Run the client; return what it did."""
        return self.command("docker", *words, check=check, **more)

    def command(self, *words, check=True, **more):
        """Run a program that asks this engine; return what it did."""
        done = subprocess.run(
            [*map(str, words)], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
            **more)
        assert not check or done.returncode == 0, (words, done.returncode, done.stdout, done.stderr, self.log()[-4000:])
        return done

    def __call__(self, *words):
        return self.run(*words).stdout.strip()

    def use_plugin(self, socket):
        """Name a volume plug-in that does not listen where Docker looks for one."""
        _PLUGIN.parent.mkdir(parents=True, exist_ok=True)
        _PLUGIN.write_text(f"unix://{socket}", encoding="ascii")

    def remove(self):
        """End it, with all containers, and its file in /etc."""
        if self._process.poll() is None:
            containers = self("ps", "--all", "--quiet").split()
            if containers:
                self("rm", "--force", *containers)
            self.stop()
        self._containers.terminate()
        self._containers.wait(120)
        self._log.close()
        _PLUGIN.unlink(missing_ok=True)


class Container(Asker):
    """A container that runs, with the socket of ublkd in it."""

    def __init__(self, docker, image, *options):
        self._docker = docker
        self.id = docker("run", "--detach", "--network", "none", "--volume", "/run/ublkd/ublkd.sock:/run/ublkd/ublkd.sock", *options,
                         image, "sleep", "infinity")
        self.prefix = ["env", *(f"{key}={value}" for key, value in _PATH.items()), "docker", "exec", self.id]
        self.user = int(self.output("cat", "/proc/self/uid_map").split()[1])  # of its root, on the host

    def output(self, *command):
        """What a command prints, without the white space around it."""
        return output(*self.prefix, *command, timeout=300)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._docker("rm", "--force", self.id)
