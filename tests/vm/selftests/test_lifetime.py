# SPDX-License-Identifier: MIT
"""What runs tests/vm/run takes the guest with it when it ends. No guest here: a program is in the place of tests/vm/run,
which ends on SIGTERM as that does."""

import os
import pathlib
import select
import signal
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_LIMIT = 10  # seconds

# In the place of tests/vm/run. The fifo is at its end when no process has it open.
_GUEST = """
import pathlib, signal, sys
def end(*_):
    pathlib.Path(sys.argv[2]).touch()
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
fifo = open(sys.argv[1], "w")
print("started", file=fifo, flush=True)
signal.pause()
"""

# A program that runs guests, with that in the place of each: `subprocess.Popen` of what lifetime.py starts.
_RUNNER = """
import importlib.machinery, importlib.util, subprocess, sys
sys.dont_write_bytecode = True
program, guest, sys.argv = sys.argv[1], sys.argv[2:6], [sys.argv[1], *sys.argv[6:]]
real = subprocess.Popen
def popen(command, *arguments, **more):
    chosen = guest if str(command[0]).endswith("tests/vm/run") else command
    return real(chosen, *arguments, **more)
subprocess.Popen = popen
loader = importlib.machinery.SourceFileLoader("runner", program)
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
loader.exec_module(runner)
runner._missing = lambda: None
runner.kernels.settle = lambda series: series
runner.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_guest_ends_with_a_runner_that_is_stopped(tmp_path, number):
    fifo, ended = tmp_path / "fifo", tmp_path / "ended"
    os.mkfifo(fifo)
    runner, guest = tmp_path / "runner.py", tmp_path / "guest.py"
    runner.write_text(_RUNNER, encoding="utf-8")
    guest.write_text(_GUEST, encoding="utf-8")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, str(runner), str(_ROOT / "tests/kernel/run"), sys.executable, str(guest), str(fifo),
               str(ended), "--kernel", "7", "--no-reboot", "--no-systemd", "--no-boot", "--no-pressure"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | {"TMPDIR": str(temporary)}) as run:
        with open(fifo, "rb", buffering=0) as source:
            assert source.read(100) == b"started\n"
            run.send_signal(number)
            run.wait(timeout=_LIMIT)
            ready, _, _ = select.select([source], [], [], _LIMIT)
            assert ready and source.read(1) == b"", "the guest outlives its runner"
    assert ended.exists()
    assert run.returncode == (-number if number == signal.SIGKILL else 128 + number)
    if number != signal.SIGKILL:
        assert not list(temporary.iterdir())
