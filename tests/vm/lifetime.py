# SPDX-License-Identifier: MIT
"""No guest outlives the program that started it, in whichever way that ends.

tests/vm/run ends its guest on a signal, and removes its directory. So what
runs it passes a signal on and waits; and the kernel sends one for a parent
that was killed.
"""

import ctypes
import os
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_LIMIT = 30  # seconds for tests/vm/run to end its guest; it needs one


def _stop(number, _frame):
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # once is enough: what follows cleans up
    sys.exit(128 + number)


def stop_on_signals():
    """Have each signal that asks for the end of this program raise SystemExit, so that `with` and `finally` run."""
    for number in _SIGNALS:
        signal.signal(number, _stop)


def end_with_parent(number):
    """Return a preexec_fn: the kernel sends the child that signal when this thread, its parent, is gone."""
    parent = os.getpid()

    def prepare():
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(128 + number)  # the parent died before the call

    return prepare


def start(command, **arguments):
    """Start tests/vm/run as a subprocess.Popen that ends with this program."""
    return subprocess.Popen(command, preexec_fn=end_with_parent(signal.SIGTERM), **arguments)  # no threads here


def end(process):
    """End tests/vm/run with its guest, if it still runs."""
    process.terminate()
    try:
        process.wait(_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()  # the kernel kills its guest
        process.wait()


def run(command, **arguments):
    """Run tests/vm/run and return its exit code; an exception, as of stop_on_signals(), ends it first."""
    process = start(command, **arguments)
    try:
        return process.wait()
    finally:
        end(process)
