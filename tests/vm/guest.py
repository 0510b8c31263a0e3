# SPDX-License-Identifier: MIT
"""One guest, from its temporary directory to its result.

Guest.run() starts virtiofsd and QEMU, passes the command's output on as it
comes, and ends both as soon as the result and the last line of the kernel's
log are there.  A guest that dies before the command starts is the emulator's
business and is started again, at most twice; once the command runs, nothing is.
"""

import os
import re
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

import emulator
import host_clock
import kernel_log
import lifetime

_HERE = os.path.dirname(os.path.realpath(__file__))
_SCRIPTS = ("init", "start", "start-systemd", "run-command")
_HIDDEN = ("/tmp", "/run", "/dev/shm")  # fresh in the guest, whatever the host has there
_ATTEMPTS = 3
_START_LIMIT = 180  # seconds until the command runs; a quiet machine needs 5 to 10
_ETC_START_LIMIT = 720  # with an /etc of the caller, which may have much started before the command, and wait for it
_END_LIMIT = 10  # seconds for the end of the kernel's log to arrive
_SHUTDOWN_LIMIT = 300  # seconds
_TICK = 0.05
_SYSRQ = b"\x0f"  # on the console; the next character is the request
_SYSRQ_LIMIT = 2  # seconds for its answer to arrive

_COMMAND_LINE = (
    "root={tag} rootfstype=virtiofs rw init={files}/init vm_files={files} vm_modules={modules}"
    " vm_systemd={systemd} vm_root={root} console=hvc0 earlycon=uart8250,io,0x3f8 loglevel=7 panic=-1 mitigations=off"
    " tsc=reliable no_timer_check random.trust_cpu=on net.ifnames=0 audit=0"
    # An emulated CPU may wait long for its turn; the kernel is not to blame.
    " watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=60"
)


class GuestError(Exception):
    """The guest came to no result; the text is for the user."""


class DiedEarly(GuestError):
    """The guest died before the command started."""


@dataclass
class Job:
    """What is to be run, and what it may see of the host."""

    command: list
    directory: str
    environment: dict
    timeout: float
    systemd: bool = False
    etc: str = None  # a directory whose content is put into /etc before systemd starts
    shutdown: bool = False  # end with a shutdown by systemd, instead of a power cut
    cmdline: str = ""
    shared: list = field(default_factory=list)
    root: str = "/"  # the directory that is the guest's root
    shown: list = field(default_factory=list)  # directories that it sees also where that root lacks them


def say(text):
    """Print something for the user."""
    print(f"vm: {text}", file=sys.stderr, flush=True)


def _is_below(path, directory):
    return path == directory or path.startswith(directory + "/")


def _shown(job):
    """Return the directories to be shown to the guest, which would not see them or something else in their place."""
    if job.root == "/":
        hidden = any(_is_below(job.directory, path) for path in _HIDDEN)
        wanted = [job.directory] if hidden and job.directory not in _HIDDEN else []
    else:
        there = os.path.isdir(f"{job.root}/{job.directory}")
        wanted = [*job.shown, *([] if there else [job.directory])]
    shown = []
    for path in sorted(set(wanted)):  # the upper ones come first
        if not any(_is_below(path, other) for other in (*job.shared, *shown)):
            shown.append(path)
    return shown


class _Output:
    """The command's output up to the mark that ends it."""

    def __init__(self, fifo, mark):
        self._descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self._mark = mark
        self._held = b""
        self.ended = False

    def pump(self, seconds):
        """Pass on what comes within `seconds`."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        while ready and not self.ended:
            try:
                data = os.read(self._descriptor, 65536)
            except BlockingIOError:
                return
            if not data:
                time.sleep(seconds)  # QEMU has not opened it yet, or has exited
                return
            self._take(data)

    def _take(self, data):
        data = self._held + data
        end = data.find(self._mark)
        if end >= 0:
            self.ended = True
            self._held = b""
            self._write(data[:end])
            return
        keep = next(
            (n for n in range(len(self._mark) - 1, 0, -1) if data.endswith(self._mark[:n])), 0
        )
        self._held = data[len(data) - keep :]
        self._write(data[: len(data) - keep])

    def finish(self):
        """Pass on the rest: there will be no mark."""
        if not self.ended:
            self.pump(0)
            self._write(self._held)
            self._held = b""

    def close(self):
        os.close(self._descriptor)

    @staticmethod
    def _write(data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


class Guest:
    """One start of one guest; use it in a `with` statement."""

    def __init__(self, job, machine, qemu, kernel):
        self._job = job
        self._machine = machine
        self._qemu = qemu
        self._kernel = kernel
        self._files = None
        self._processes = []
        self._output = None
        self._console = -1

    def __enter__(self):
        self._files = tempfile.mkdtemp(prefix="ublkd-vm-", dir="/tmp")
        return self

    def __exit__(self, *_):
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        if self._output:
            self._output.close()
            os.close(self._console)
        shutil.rmtree(self._files, ignore_errors=True)

    def _path(self, name):
        return os.path.join(self._files, name)

    def _read(self, name):
        try:
            with open(self._path(name), encoding="utf-8", errors="replace") as source:
                return source.read()
        except FileNotFoundError:
            return ""

    def _write(self, name, text):
        with open(self._path(name), "w", encoding="utf-8") as target:
            target.write(text)

    def log(self):
        """Return the kernel's log so far."""
        return self._read("kernel.log").replace("\r\n", "\n")

    def _prepare(self):
        job = self._job
        for script in _SCRIPTS:
            shutil.copy(os.path.join(_HERE, "guest", script), self._files)
        if job.etc:
            shutil.copytree(job.etc, os.path.join(self._files, "etc"), symlinks=True)
        if job.shutdown:
            self._write("shutdown", "")
        exports = [f"export {name}={shlex.quote(value)}" for name, value in job.environment.items()]
        change = f"cd -- {shlex.quote(job.directory)} || exit 126"
        lines = ["unset vm_files vm_modules vm_systemd vm_root", *exports, change]
        self._write("command", "\n".join([*lines, f"exec {shlex.join(job.command)}"]) + "\n")
        self._write("share", "".join(f"{path}\n" for path in job.shared))
        self._write("show", "".join(f"{path}\n" for path in _shown(job)))
        mark = f"\0{secrets.token_hex(16)}\n"
        self._write("mark", mark)
        os.mkfifo(self._path("output"))
        os.mkfifo(self._path("console"))
        self._console = os.open(self._path("console"), os.O_RDWR)
        self._output = _Output(self._path("output"), mark.encode())

    def _start_process(self, name, command):
        with open(self._path(f"{name}.stderr"), "wb") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                preexec_fn=lifetime.end_with_parent(signal.SIGKILL),  # no threads here
                start_new_session=True,  # Ctrl-C is for this program alone
            )
        self._processes.append(process)
        return process

    def _start(self):
        if re.search(r"\s", self._kernel.modules):
            raise GuestError(f"the cache's path may have no white space: {self._kernel.modules}")
        if re.search(r"[\s,:\\]", self._job.root):
            raise GuestError(f"the root's path may have no white space, comma, colon or backslash: {self._job.root}")
        socket = self._path("virtiofs.socket")
        server = self._start_process("virtiofsd", emulator.virtiofsd_command(socket))
        while not os.path.exists(socket):
            if server.poll() is not None:
                raise GuestError(f"virtiofsd failed: {self._read('virtiofsd.stderr').strip()}")
            time.sleep(0.01)
        cmdline = _COMMAND_LINE.format(
            tag=emulator.ROOT_TAG,
            files=self._files,
            modules=self._kernel.modules,
            systemd=int(self._job.systemd),
            root=self._job.root,
        )
        command = emulator.qemu_command(
            self._qemu,
            self._machine,
            self._files,
            self._kernel.image,
            f"{cmdline}{self._clock()} {self._job.cmdline}".strip(),
        )
        return self._start_process("qemu", command)

    def _clock(self):
        """Where the guest has this machine's time stamp counter: its rate, for the kernel's command line."""
        machine = self._machine
        shared = machine.accel == "tcg" and not machine.icount and not machine.icount_sleep
        khz = host_clock.tsc_khz() if shared else None
        return f" tsc_early_khz={khz}" if khz else ""

    def _ending(self, process):
        """Say why there is no result."""
        panic = kernel_log.panic(self.log())
        if panic:
            return f"the guest's kernel panicked: {panic}"
        errors = self._read("qemu.stderr").strip() or self._read("virtiofsd.stderr").strip()
        return f"QEMU ended with {process.returncode} {errors}".rstrip()

    def run(self):
        """Run the command in the guest and return its exit code."""
        self._prepare()
        process = self._start()
        started = self._path("started")
        limit = _ETC_START_LIMIT if self._job.etc else _START_LIMIT
        deadline = time.monotonic() + limit
        while not os.path.exists(started):
            self._output.pump(_TICK)
            if process.poll() is not None:
                error = DiedEarly if self.log() else GuestError
                raise error(self._ending(process))
            if time.monotonic() > deadline:
                raise DiedEarly(f"the command did not start within {limit} s")
        deadline = time.monotonic() + self._job.timeout
        while not os.path.exists(self._path("result")):
            self._output.pump(_TICK)
            if process.poll() is not None:
                self._output.finish()
                raise GuestError(self._ending(process))
            if time.monotonic() > deadline:
                self._print_blocked_tasks()
                self._output.finish()
                raise GuestError(f"the command was not done after {self._job.timeout:g} s")
        self._await_end(process)
        if self._job.shutdown:
            self._await_shutdown(process)
        return int(self._read("result"))

    def _await_shutdown(self, process):
        """The guest has begun its shutdown: QEMU ends with it."""
        deadline = time.monotonic() + _SHUTDOWN_LIMIT
        while process.poll() is None:
            time.sleep(_TICK)
            if time.monotonic() > deadline:
                self._print_blocked_tasks()
                raise GuestError(f"the shutdown was not done after {_SHUTDOWN_LIMIT} s")

    def _print_blocked_tasks(self):
        """Have the kernel say in its log which tasks are blocked, and where."""
        os.write(self._console, _SYSRQ + b"w")
        deadline = time.monotonic() + _SYSRQ_LIMIT
        while time.monotonic() < deadline:
            self._output.pump(_TICK)

    def _await_end(self, process):
        """The result is there: wait for the rest of the output and the log."""
        deadline = time.monotonic() + _END_LIMIT
        last = "vm: the command ended with"
        while not (self._output.ended and last in self.log()):
            self._output.pump(_TICK)
            if process.poll() is not None or time.monotonic() > deadline:
                say("the end of the output or of the kernel's log is missing")
                self._output.finish()
                return


def run(job, machine, qemu, kernel):
    """Run a job in a new guest; return (exit code or GuestError, kernel log)."""
    for attempt in range(1, _ATTEMPTS + 1):
        with Guest(job, machine, qemu, kernel) as guest:
            try:
                return guest.run(), guest.log()
            except DiedEarly as error:
                log = guest.log()
                if attempt == _ATTEMPTS:
                    return GuestError(f"{error}; it was started {attempt} times"), log
                say(f"the guest died before the command started ({error}); starting it again")
            except GuestError as error:
                return error, guest.log()
    raise AssertionError("not reached")
