# SPDX-License-Identifier: MIT
"""A target gets what it declares, while it serves: the network of the host, by TCP, and nothing else."""

import errno
import pathlib
import socket
import struct
import threading

import pytest

from harness import programs
from harness.api import null_spec
from harness.disk import Disk

_BLOCK, _PORTS = 4096, 65536
# tests/kernel/probing has the same order.
_OTHERS = ("listen", "UDP", "raw", "MPTCP", "local", "netlink", "open a file", "leave the network")


@pytest.fixture(name="service")
def tcp_service():
    """A service on 127.0.0.1 that answers; return its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.sendall(client.recv(1))

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _probe(disk, block):
    """What the target answered: None if it was done, else the name of the error."""
    (result,) = struct.unpack_from("=i", disk.read(block * _BLOCK, _BLOCK))
    return errno.errorcode[-result] if result < 0 else None


def _start(make_daemon, network):
    """The disk is not scanned for partitions: each read is something that is tried."""
    daemon = make_daemon(worker=programs.worker_probing(network)).start()
    spec = null_spec("probing", size=f"{(_PORTS + len(_OTHERS)) * 4}KiB", dataPath="copy", queues=1, readOnly=True)
    return daemon, Disk(daemon.api.create(spec)["status"]["id"])


def _network(pid):
    return pathlib.Path(f"/proc/{pid}/ns/net").readlink()


def _others(disk):
    return {name: _probe(disk, _PORTS + index) for index, name in enumerate(_OTHERS)}


def test_a_target_that_declares_the_network_has_it(service, make_daemon):
    daemon, disk = _start(make_daemon, network=True)
    for recovered in (False, True):
        pid = daemon.worker_pid("probing")
        assert _network(pid) == _network("self")
        assert pathlib.Path(f"/proc/{pid}/ns/ipc").readlink() != pathlib.Path("/proc/self/ns/ipc").readlink()
        assert _probe(disk, service) is None
        assert _others(disk) == dict.fromkeys(_OTHERS, "EPERM")
        if not recovered:
            daemon.kill_worker("probing")
            daemon.api.wait_other_worker("probing", pid)


def test_a_target_that_declares_nothing_has_nothing(service, make_daemon):
    daemon, disk = _start(make_daemon, network=False)
    assert _network(daemon.worker_pid("probing")) != _network("self")
    assert _probe(disk, service) == "EPERM"
    assert _others(disk) == dict.fromkeys(_OTHERS, "EPERM")
