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
"""

ENTER = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def unshare(flags):
    check(libc.unshare(flags))
    child = os.fork()  # a PID namespace has children of it only
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
def mount_tmpfs(target):
    check(libc.mount(b"none", b"/", None, 0x44000, None))  # MS_REC | MS_PRIVATE
    check(libc.mount(b"none", target, b"tmpfs", 0, None))
"""

BECOME = """
os.setgroups(groups); os.setgid(uid); os.setuid(uid)
"""

# What makes a container of the process, before it becomes the user: any one of these does.
CONTAINERS = {
    "PIDs": "unshare(0x20000000)",
    "root directory": """
unshare(0x20000)
mount_tmpfs(b"/mnt")
for entry in os.scandir("/"):
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), "/mnt" + entry.path)
    elif entry.is_dir() and entry.name != "mnt":
        os.mkdir("/mnt" + entry.path)
        check(libc.mount(entry.path.encode(), b"/mnt" + entry.path.encode(), None, 0x5000, None))  # MS_BIND | MS_REC
os.chroot("/mnt")
os.chdir("/")
""",
}
# It has the root directory of the host below its own, and the right to make it its own.
CONTAINERS["root directory of the host"] = CONTAINERS["root directory"].replace('os.chroot("/mnt")', """
os.mkdir("/mnt/host")
check(libc.mount(b"/", b"/mnt/host", None, 0x5000, None))
os.chroot("/mnt")
os.chroot("/host")
""")
# User 0 of it is user 0 of the host: the most that a user namespace may map.
CONTAINERS["users"] = """
inside, mapped = os.pipe(), os.pipe()
child = os.fork()
if child:
    os.read(inside[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w", encoding="ascii") as file:
            file.write("0 0 100000")
    os.write(mapped[1], b"x")
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
check(libc.unshare(0x10000000))
os.write(inside[1], b"x")
os.read(mapped[0], 1)
"""
# A service of the host with a mount namespace of its own.
PRIVATE_MOUNTS = """
unshare(0x20000)
mount_tmpfs(b"/mnt")
"""


@contextlib.contextmanager
def user(server, code, uid=65534, groups=(), container=""):
    """Run Python as that user, with `path` of the socket; in a container if one is given. The process ends when the block
    does, and must succeed. It can print lines, and read the end of its stdin."""
    program = PRELUDE + ENTER + container + BECOME + code
    child = subprocess.Popen([sys.executable, "-c", program, server.path, str(uid), ",".join(map(str, groups))],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             cwd=os.path.dirname(os.path.abspath(__file__)))
    try:
        yield child
    finally:
        child.stdin.close()
        rest = child.stdout.read()
        assert child.wait(60) == 0, rest


def run_as_user(server, code, uid=65534, groups=(), container=""):
    """What the code prints."""
    with user(server, code, uid, groups, container) as child:
        output = child.stdout.read()
    return output
