# SPDX-License-Identifier: MIT
"""Profiles of AppArmor in the guest, whose kernel has it switched on."""

import pathlib

from .shell import run

# The classes of a later version, such as the creation of user namespaces, are not decided then, and so allowed.
_VERSION = "abi <abi/3.0>,"
_EVERYTHING = "capability, file, network, unix, mount, umount, pivot_root, ptrace, signal,"


def confined(profile):
    """What starts a program under a profile."""
    return "aa-exec", "-p", profile, "--"


class AppArmor:
    """The interface of the kernel, mounted at a place of its own: at the usual one, engines of containers would find it and
    confine the containers of other tests."""

    def __init__(self, directory):
        self._mounted = pathlib.Path(directory) / "securityfs"
        self._mounted.mkdir()
        self._loaded = set()
        run("mount", "-t", "securityfs", "none", self._mounted)

    def modules(self):
        """The security modules of this kernel."""
        return (self._mounted / "lsm").read_text(encoding="ascii").strip().split(",")

    def load(self, profile, *denied):
        """Load a profile that allows all but some things, also in place of an older one, for processes that run as well."""
        rules = " ".join(f"deny {what}," for what in denied)
        interface = self._mounted / "apparmor"
        run("apparmor_parser", "--replace", "--skip-cache", "--subdomainfs", interface, "--kernel-features", interface / "features",
            input=f"{_VERSION}\nprofile {profile} flags=(attach_disconnected) {{ {_EVERYTHING} {rules} }}\n")
        self._loaded.add(profile)

    def close(self):
        """Remove the profiles; processes that they confine are free then."""
        for profile in self._loaded:
            (self._mounted / "apparmor/.remove").write_text(profile, encoding="ascii")
        run("umount", self._mounted)
        self._mounted.rmdir()
