# SPDX-License-Identifier: MIT
"""Clients that read and write single blocks of a disk, and the history of what they saw, for tests/linearizability."""

import contextlib
import json
import mmap
import os
import random
import struct
import subprocess
import threading
import time

from . import programs

BLOCK = 4096
_WORDS = struct.Struct(f"={BLOCK // 8}Q")
_TORN = (1 << 64) - 1  # no client writes it


class Clients:
    """Threads that read and write `blocks` blocks of the disk at `path`, in random order, until `stop()`, or the end of
    `with`."""

    def __init__(self, path, clients, blocks, seed):
        self._path = path
        self._blocks = blocks
        self._end = threading.Event()
        self._faults = []  # of threads that ended early; an I/O error is none
        self._histories = [[] for _ in range(clients)]
        self._threads = [
            threading.Thread(target=self._run, args=(client, random.Random(f"{seed} {client}")), daemon=True)
            for client in range(clients)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end.set()

    def _run(self, client, chance):
        try:
            self._use(client, chance)
        except BaseException as fault:  # pylint: disable=broad-except
            self._faults.append(repr(fault))

    def _use(self, client, chance):
        buffer = mmap.mmap(-1, BLOCK)  # page aligned, as O_DIRECT wants it
        descriptor = os.open(self._path, os.O_RDWR | os.O_DIRECT)
        try:
            while not self._end.is_set():
                block = chance.randrange(self._blocks)
                if chance.random() < 0.5:
                    self._write(client, descriptor, buffer, block)
                else:
                    self._read(client, descriptor, buffer, block)
        finally:
            os.close(descriptor)

    def _note(self, client, **operation):
        self._histories[client].append({"client": client, **operation})

    def _write(self, client, descriptor, buffer, block):
        value = (client + 1) << 32 | len(self._histories[client])  # of this write alone
        buffer[:] = _WORDS.pack(*[value] * (BLOCK // 8))
        call, end = time.monotonic_ns(), 0
        with contextlib.suppress(OSError):
            assert os.pwritev(descriptor, [buffer], block * BLOCK) == BLOCK
            end = time.monotonic_ns()
        self._note(client, block=block, write=True, value=value, call=call, **{"return": end})

    def _read(self, client, descriptor, buffer, block):
        call, end = time.monotonic_ns(), 0
        with contextlib.suppress(OSError):
            assert os.preadv(descriptor, [buffer], block * BLOCK) == BLOCK
            end = time.monotonic_ns()
        words = set(_WORDS.unpack(buffer))
        value = words.pop() if len(words) == 1 else _TORN
        self._note(client, block=block, value=value, call=call, **{"return": end})

    def count(self):
        """How many operations have ended."""
        return sum(map(len, self._histories))

    def failed(self):
        """How many have failed."""
        return sum(one["return"] == 0 for history in self._histories for one in history)

    def stop(self):
        """Wait until all have ended what they do; return all operations."""
        self._end.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a request does not end"
        assert not self._faults, self._faults
        return [operation for history in self._histories for operation in history]


def judge(history):
    """Return the exit status of the judge, and what it says: 0 for a linearizable history, 1 for one that is not."""
    program = subprocess.run(
        [str(programs.source("scripts/test-go-program")), "tests/linearizability"], stdout=subprocess.PIPE, text=True, check=True,
    ).stdout.strip()
    lines = "".join(f"{json.dumps(operation)}\n" for operation in history)
    verdict = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=False)
    print(verdict.stdout, end="", flush=True)
    return verdict.returncode
