# SPDX-License-Identifier: MIT
"""Be another user of the Unix socket: a process that gives up root after it has read what only root may read."""
import contextlib
import os
import subprocess
import sys

import pytest

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

PRELUDE = """
import json, os, socket, sys
os.environ["UBLKD_API_SERVER"] = "unused"
from api_server import UnixConnection, ask, check_problem, spec
import conformance
conformance.document()  # this account may be the only one that can read it
path, uid, groups = sys.argv[1], int(sys.argv[2]), [int(group) for group in sys.argv[3].split(",") if group]
os.setgroups(groups); os.setgid(uid); os.setuid(uid)
"""


@contextlib.contextmanager
def user(server, code, uid=65534, groups=()):
    """Run Python as that user, with `path` of the socket. The process ends when the block does, and must succeed. It can
    print lines, and read the end of its stdin."""
    child = subprocess.Popen([sys.executable, "-c", PRELUDE + code, server.path, str(uid), ",".join(map(str, groups))],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             cwd=os.path.dirname(os.path.abspath(__file__)))
    try:
        yield child
    finally:
        child.stdin.close()
        rest = child.stdout.read()
        assert child.wait(60) == 0, rest


def run_as_user(server, code, uid=65534, groups=()):
    """What the code prints."""
    with user(server, code, uid, groups) as child:
        output = child.stdout.read()
    return output
