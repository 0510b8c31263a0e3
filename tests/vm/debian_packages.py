# SPDX-License-Identifier: MIT
"""Fetch Debian packages of other suites without touching the machine's apt.

Each suite gets a private apt: own sources, state and cache in a scratch
directory.  The machine's apt.conf.d still counts (proxies, credentials), its
sources, preferences and hooks do not.  The mirror is the machine's own, and
signatures are checked against the Debian archive keyring, which has the keys
of Debian 12 and 13 on both.
"""

import functools
import glob
import os
import re
import subprocess
import time

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_DEFAULT_MIRROR = "http://deb.debian.org/debian"
_MIRROR_PATTERN = re.compile(
    r"(?<!\S)((?:https?|ftp|file|mirror\+https?|mirror\+file)://?\S*/debian(?:\.list)?/?)(?!\S)"
)

# Seconds before each other try: apt tries a connection again by itself, but
# not, for instance, lists that do not fit together while the mirror changes.
_PAUSES = (10, 30)

# Read last, so that it can take away what the machine's apt.conf.d says.
_LAST_CONFIGURATION = """
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets::deb::DEP-11;
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Update::Error-Mode "any";
"""


class PackageError(Exception):
    """A package could not be downloaded; the text is for the user."""


def machine_mirror():
    """Return the Debian mirror that this machine's own sources use."""
    override = os.environ.get("UBLKD_DEBIAN_MIRROR")
    if override:
        return override
    files = ["/etc/apt/sources.list"]
    files += sorted(glob.glob("/etc/apt/sources.list.d/*.sources"))
    files += sorted(glob.glob("/etc/apt/sources.list.d/*.list"))
    for path in files:
        try:
            with open(path, encoding="utf-8") as source:
                lines = [line for line in source if not line.lstrip().startswith("#")]
        except OSError:
            continue
        match = _MIRROR_PATTERN.search(" ".join(lines))
        if match:
            return match.group(1).rstrip("/")
    return _DEFAULT_MIRROR


def newest(versioned, version_of):
    """Return the item with the highest Debian version."""

    def compare(left, right):
        command = ["dpkg", "--compare-versions", version_of(left), "gt", version_of(right)]
        return 1 if subprocess.run(command, check=False).returncode == 0 else -1

    return max(versioned, key=functools.cmp_to_key(compare))


class Suite:
    """One Debian suite, seen through a private apt."""

    def __init__(self, name, scratch):
        self.name = name
        self._root = os.path.join(scratch, f"apt-{name}")
        self._write_configuration()
        self._download("apt-get", "update", "-qq")

    def _write_configuration(self):
        for directory in ("state/lists/partial", "cache/archives/partial", "packages"):
            os.makedirs(os.path.join(self._root, directory))
        machine = [path for path in (os.environ.get("APT_CONFIG"), "/etc/apt/apt.conf") if path]
        includes = "".join(f'#include "{path}";\n' for path in machine if os.path.isfile(path))
        files = {
            "sources.list": f"deb [arch=amd64 signed-by={KEYRING}] {machine_mirror()} {self.name} main\n",
            "status": "",
            "last.conf": includes + _LAST_CONFIGURATION,
            "first.conf": f"""
Dir::State "{self._root}/state";
Dir::State::status "{self._root}/status";
Dir::Cache "{self._root}/cache";
Dir::Etc::SourceList "{self._root}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::Etc::Main "{self._root}/last.conf";
""",
        }
        for name, text in files.items():
            with open(os.path.join(self._root, name), "w", encoding="utf-8") as output:
                output.write(text)

    def _apt(self, *command):
        environment = dict(os.environ, APT_CONFIG=f"{self._root}/first.conf", LC_ALL="C.UTF-8")
        done = subprocess.run(
            command,
            env=environment,
            cwd=os.path.join(self._root, "packages"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("E:")]
            reason = "; ".join(lines) or done.stderr.strip()
            raise PackageError(f"{' '.join(command[:2])} for Debian {self.name} failed: {reason}")
        return done.stdout

    def _download(self, *command):
        for pause in _PAUSES:
            try:
                return self._apt(*command)
            except PackageError:
                time.sleep(pause)
        return self._apt(*command)

    def names(self, pattern):
        """Return the names of the packages that `pattern` matches as a whole."""
        every = self._apt("apt-cache", "pkgnames").split()
        return sorted(name for name in every if re.fullmatch(pattern, name))

    def version(self, name):
        """Return the version of a package."""
        text = self._apt("apt-cache", "show", "--no-all-versions", name)
        return re.search(r"^Version: (\S+)$", text, re.MULTILINE).group(1)

    def unpack(self, name, directory):
        """Download a package and unpack it into a directory, not install it."""
        packages = os.path.join(self._root, "packages")
        before = set(os.listdir(packages))
        self._download("apt-get", "download", "-qq", name)
        (package,) = (name for name in set(os.listdir(packages)) - before if name.endswith(".deb"))
        path = os.path.join(packages, package)
        subprocess.run(["dpkg-deb", "-x", path, directory], check=True)
        os.unlink(path)
