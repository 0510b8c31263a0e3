# SPDX-License-Identifier: MIT
"""ublkd that asks a polkitd on a bus of its own."""
import contextlib
import os
import pathlib
import signal
import tempfile

from daemon_process import Daemon, until
from polkit_bus import PolkitBus


class AskingDaemon(Daemon):
    """`path` is that of its socket, for other_user."""

    def __init__(self, directory, bus, *options):
        self.bus, self.options = bus, options
        super().__init__(directory)
        self.path = str(self.socket)

    def arguments(self):
        return [*super().arguments(), *self.options]

    def start(self):
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = self.bus.address
        try:
            super().start()
        finally:
            del os.environ["DBUS_SYSTEM_BUS_ADDRESS"]

    def stop(self):
        if self.process.poll() is None:
            super().stop()

    def names(self):
        return [item["name"] for item in self.ask("GET", "/devices").json["items"]]

    def reload(self, line):
        file = self.root / "etc/ublkd/ublkd.conf"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"[Manager]\n{line}\n", encoding="utf-8")
        before = self.count_logged("The configuration was reloaded")
        self.process.send_signal(signal.SIGHUP)
        until(lambda: self.count_logged("The configuration was reloaded") > before)


@contextlib.contextmanager
def serve(*options, start=True):
    with tempfile.TemporaryDirectory(prefix="ublkd-polkit-") as name:
        os.chmod(name, 0o755)
        bus = PolkitBus(pathlib.Path(name))
        try:
            if start:
                bus.start()
            daemon = AskingDaemon(pathlib.Path(name), bus, *options)
            try:
                yield daemon, bus
            finally:
                daemon.stop()
                assert daemon.count_logged("Sanitizer") == 0 and daemon.count_logged("runtime error") == 0
        finally:
            bus.stop()
