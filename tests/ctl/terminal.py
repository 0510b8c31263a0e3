# SPDX-License-Identifier: MIT
"""Run ublkctl on a terminal."""
import fcntl
import os
import pty
import select
import struct
import termios

from ctl import DEADLINE


class Terminal:
    """ublkctl on a terminal, or with some of its streams on it."""

    def __init__(self, ctl, *arguments, streams=(0, 1, 2), columns=0, **environment):
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
        self.text = b""
        pid = os.fork()
        if pid == 0:
            os.setsid()
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches it
            null = os.open("/dev/null", os.O_RDWR)
            for stream in range(3):
                os.dup2(follower if stream in streams else null, stream)
            os.execve(ctl.program, [ctl.program, *arguments], {**ctl.environment(TERM="xterm"), **environment})
        self.pid = pid
        os.close(follower)

    def read(self):
        """A piece, or nothing at the end."""
        if not select.select([self.leader], [], [], DEADLINE)[0]:
            raise AssertionError(f"nothing more came after {self.text!r}")
        try:
            piece = os.read(self.leader, 65536)
        except OSError:  # EIO: the last process has closed it
            piece = b""
        self.text += piece
        return piece

    def send(self, keys):
        os.write(self.leader, keys)

    def read_until(self, words):
        while words not in self.text:
            assert self.read(), f"{words} did not come: {self.text!r}"

    def end(self):
        """Its whole output, and its exit status."""
        while self.read():
            pass
        os.close(self.leader)
        return self.text.decode(), os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
