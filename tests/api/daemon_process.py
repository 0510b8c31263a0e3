# SPDX-License-Identifier: MIT
"""A ublkd without a driver, for the tests of the daemon."""
import os
import subprocess
import time

from api_server import DEADLINE, UnixConnection, ask

PROGRAM, WORKER = os.environ["UBLKD_PROGRAM"], os.environ["UBLKD_WORKER"]


def until(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


class Daemon:
    def __init__(self, directory):
        self.run, self.state, self.log = directory / "run", directory / "state", directory / "log"
        self.root = directory / "root"  # of its configuration files: not those of the machine
        self.policy = directory / "policy.d"  # not that of the machine
        self.socket = self.run / "ublkd.sock"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--config-root", self.root, "--worker", WORKER, "--state-dir", self.state,
                 "--runtime-dir", self.run, "--policy-dir", self.policy, *self.arguments()],
                stdin=subprocess.DEVNULL, stderr=log)
        until(self.answers)

    def arguments(self):
        """No device of the host that runs the tests."""
        return ["--devices-dir", self.state.with_name("no-files")]

    def answers(self):
        """A socket is there a moment before ublkd listens on it."""
        try:
            return self.ask("GET", "/healthz").status == 200
        except OSError:
            return False

    def ask(self, method, path, body=None):
        connection = UnixConnection(str(self.socket))
        try:
            return ask(connection, method, path, body)
        finally:
            connection.close()

    def records(self):
        return sorted(path.name for path in (self.run / "workers").glob("*.record"))

    def count_logged(self, words):
        return self.log.read_text(encoding="utf-8").count(words)

    def stop(self):
        self.process.terminate()
        assert self.process.wait(DEADLINE) == 0, self.log.read_text(encoding="utf-8")
