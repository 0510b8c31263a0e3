# SPDX-License-Identifier: MIT
"""A ublkd of a test's own."""

import json
import os
import pathlib
import signal
import subprocess

from . import programs
from .api import Api
from .shell import output
from .wait import wait_until

_STOP_LIMIT = 60


class Daemon:
    """ublkd with directories of its own below `directory`."""

    def __init__(
        self, directory, *, worker=None, state=None, runtime=None, prefix=(), program=None, more_options=(),
        pass_fds=(),
    ):
        self.directory = pathlib.Path(directory)
        self.state = pathlib.Path(state) if state else self.directory / "state"
        self.runtime = pathlib.Path(runtime) if runtime else self.directory / "run"
        self.log_file = self.directory / "ublkd.log"
        self.worker = worker or programs.worker()
        self.prefix = tuple(prefix)
        self.program = program or programs.ublkd()
        self.more_options = tuple(more_options)
        self.pass_fds = tuple(pass_fds)
        self.process = None
        self.api = Api(self.runtime / "ublkd.sock")

    def command(self):
        """How it is started."""
        return [
            *self.prefix, self.program, "--state-dir", str(self.state), "--runtime-dir", str(self.runtime),
            "--worker", str(self.worker), "--log-level", "debug", *self.more_options,
        ]

    def start(self, ready=True):
        """Start it, by default until its first pass is over."""
        assert not self.running, "it runs already"
        with open(self.log_file, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                pass_fds=self.pass_fds,
            )
        if ready:
            # To ask takes CPU time that its start needs too.
            wait_until(self._is_ready, lambda: f"ublkd ready; its log: {self.log()[-4000:]}", pause=0.1)
        return self

    def _is_ready(self):
        assert self.running, f"ublkd ended with {self.process.returncode}: {self.log()[-4000:]}"
        return self.api.is_ready()

    @property
    def running(self):
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        """Of the supervisor."""
        return self.process.pid

    def kill(self):
        """SIGKILL, as a crash."""
        self.process.kill()
        self.process.wait(_STOP_LIMIT)

    def stop(self):
        """SIGTERM, as systemctl stop; it must end well."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(_STOP_LIMIT)
        assert self.process.returncode == 0, f"ublkd ended with {self.process.returncode}: {self.log()[-4000:]}"

    def log(self):
        """All that it has logged."""
        try:
            return self.log_file.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def ctl(self, *arguments):
        """Run ublkctl; return what it printed."""
        return output(programs.ublkctl(), "--socket", self.runtime / "ublkd.sock", *arguments)

    def events(self, name):
        """What happened to a device, oldest first."""
        return [json.loads(line) for line in self.ctl("events", "-o", "json", name).splitlines()]

    def metric(self, name, device):
        """The value of a metric of a device."""
        lines = self.api.request("GET", "/metrics").text.splitlines()
        (value,) = [line.split()[-1] for line in lines if line.startswith(f'{name}{{device="{device}"}}')]
        return float(value)

    def worker_pid(self, name):
        """The pid of a device's worker. While ublkd replaces the worker, there is none; this waits for the next one."""
        return self.api.wait_worker(name)["status"]["worker"]["pid"]

    def kill_worker(self, name):
        """SIGKILL to a device's worker; return its pid."""
        pid = self.worker_pid(name)
        os.kill(pid, signal.SIGKILL)
        return pid
