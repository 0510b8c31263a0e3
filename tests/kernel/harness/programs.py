# SPDX-License-Identifier: MIT
"""Where the programs under test are."""

import os
import pathlib

_ROOT = pathlib.Path(__file__).resolve().parents[3]


def build():
    """The directory of the build under test."""
    return pathlib.Path(os.environ.get("UBLKD_BUILD") or _ROOT / "build").resolve()


def source(path):
    """A file of the source tree."""
    return _ROOT / path


def ublkd():
    """The supervisor."""
    return str(build() / "ublkd")


def follow():
    """The process of the unit of a disk."""
    return str(build() / "ublkd-follow")


def ublkd_helper():
    """The program of ublkd's own processes."""
    return str(build() / "ublkd-helper")


def ublkd_volumes():
    """The volume plug-in."""
    return str(build() / "ublkd-volumes")


def ublkd_mortal():
    """The supervisor, which dies at a chosen point: tests/kernel/mortal."""
    return str(build() / "tests" / "kernel" / "ublkd-mortal")


def testy_store():
    """The plugin of nbdkit for stores that hold or fail what they are asked: tests/kernel/testy."""
    return str(build() / "tests" / "kernel" / "testy-store.so")


def worker():
    """The worker."""
    return str(build() / "ublkd-worker")


def worker_without_fence():
    """A worker whose rings never hold any file, /dev/ublkcN least of all, and no lock: only to see a test fail."""
    return str(build() / "ublkd-worker-without-fence")


def worker_restless():
    """A worker that gives memory back all the time: tests/kernel/restless."""
    return str(build() / "ublkd-worker-restless")


def worker_hostile():
    """A worker that attacks the machine when a test orders it: tests/kernel/hostile."""
    return str(build() / "ublkd-worker-hostile")


def worker_spinning():
    """A worker whose queue spins after SIGRTMAX: tests/kernel/spinning."""
    return str(build() / "ublkd-worker-spinning")


def worker_talkative():
    """A worker that writes to its log after SIGRTMAX-1 to -3: tests/kernel/talkative."""
    return str(build() / "ublkd-worker-talkative")


def worker_probing(network):
    """A worker whose null target tries sockets: tests/kernel/probing. `network`: it declares that it needs them."""
    return str(build() / f"ublkd-worker-probing{'-network' if network else ''}")


def ublkd_keeping():
    """The supervisor of worker_keeping(): tests/kernel/keeping."""
    return str(build() / "tests" / "kernel" / "ublkd-keeping")


def worker_keeping():
    """A worker whose null target has its data in the memory that outlives the worker: tests/kernel/keeping."""
    return str(build() / "ublkd-worker-keeping")


def worker_waiting():
    """A worker whose null target waits in every way that there is: tests/kernel/waiting."""
    return str(build() / "ublkd-worker-waiting")


def ublkctl():
    """The command line client."""
    return str(build() / "ublkctl")


def stranger():
    """The other party: tests/kernel/stranger."""
    return str(build() / "tests" / "kernel" / "ublk-stranger")
