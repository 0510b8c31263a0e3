# SPDX-License-Identifier: MIT
"""A real polkitd on a bus of its own. It sees the action of ublkd and the rules of the test in place of those of the
machine: it starts in a mount namespace."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess

from daemon_process import until

ACTIONS = pathlib.Path(__file__).resolve().parents[2] / "units/polkit/io.ublkd.policy"
POLKITD = next((path for path in ("/usr/lib/polkit-1/polkitd", "/usr/libexec/polkitd") if os.path.exists(path)), None)


def can_start():
    """Not in a container that may not mount."""
    if not POLKITD or not all(map(shutil.which, ("dbus-daemon", "dbus-send", "unshare"))):
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


IS_THERE = can_start()

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow send_type="signal"/>
  </policy>
</busconfig>
"""

# polkit names users by their numbers whom /etc/passwd does not have. The bus takes none of them, so a user with an agent
# needs a name.
ALLOWED, REFUSED, OTHERS = 71001, 71002, 71100
ASKED = pwd.getpwnam("daemon").pw_uid  # no rule is about it: an administrator would have to authenticate
RULES = f"""
polkit.addRule(function(action, subject) {{
    if (action.id == "io.ublkd.manage" && subject.user == "{ALLOWED}")
        return polkit.Result.YES;
    if (action.id == "io.ublkd.manage" && subject.user == "{REFUSED}")
        return polkit.Result.NO;
}});
polkit.addAdminRule(function(action, subject) {{
    return ["unix-user:0"];
}});
"""

START = """mount --bind "$1" /usr/share/polkit-1/actions && mount --bind "$2" /etc/polkit-1/rules.d && exec "$3" --no-debug"""


class PolkitBus:
    """`address` is that of the bus, also before it runs."""

    def __init__(self, directory):
        self.directory = directory
        self.path = directory / "bus"
        self.address = f"unix:path={self.path}"
        self.environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": self.address}
        self.bus = self.polkit = None
        for name in ("actions", "rules"):
            (directory / name).mkdir()
            (directory / name).chmod(0o755)
        shutil.copy(ACTIONS, directory / "actions")
        (directory / "rules/10-test.rules").write_text(RULES, encoding="utf-8")
        (directory / "bus.conf").write_text(BUS.format(path=self.path), encoding="utf-8")

    def log(self, name):
        return open(self.directory / name, "ab")

    def start_bus(self):
        self.path.unlink(missing_ok=True)
        with self.log("bus.log") as log:
            self.bus = subprocess.Popen(
                ["dbus-daemon", f"--config-file={self.directory}/bus.conf", "--nofork", "--nopidfile"], stdout=log, stderr=log)
        until(self.path.is_socket)

    def start_polkit(self):
        with self.log("polkit.log") as log:
            self.polkit = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", START, "sh", self.directory / "actions",
                 self.directory / "rules", POLKITD], stdout=log, stderr=log, env=self.environment)
        until(self.has_polkit)

    def has_polkit(self):
        run = subprocess.run(
            ["dbus-send", f"--bus={self.address}", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/",
             "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.PolicyKit1"],
            capture_output=True, text=True, timeout=20, check=False)
        return run.stdout.split() == ["boolean", "true"]

    def connections(self):
        """How many clients the bus has, beside this question."""
        run = subprocess.run(
            ["dbus-send", f"--bus={self.address}", "--print-reply=literal", "--dest=org.freedesktop.DBus", "/",
             "org.freedesktop.DBus.ListNames"], capture_output=True, text=True, timeout=20, check=True)
        return sum(word.startswith(":") for word in run.stdout.split()) - 1

    def start(self):
        self.start_bus()
        self.start_polkit()

    def pause_polkit(self):
        self.polkit.send_signal(signal.SIGSTOP)

    def resume_polkit(self):
        self.polkit.send_signal(signal.SIGCONT)

    def stop_polkit(self):
        self.polkit.kill()
        self.polkit.wait(20)
        self.polkit = None

    def stop_bus(self):
        self.bus.kill()
        self.bus.wait(20)
        self.bus = None

    def stop(self):
        if self.polkit:
            self.stop_polkit()
        if self.bus:
            self.stop_bus()
