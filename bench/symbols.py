# SPDX-License-Identifier: MIT
"""Addresses of a guest → names of functions."""

import bisect
import collections
import os
import subprocess

_KERNEL = 1 << 63


class _Table:
    """Names by address."""

    def __init__(self, pairs):
        pairs = sorted(pairs)
        self._addresses = [address for address, _ in pairs]
        self._names = [name for _, name in pairs]

    def __bool__(self):
        return bool(self._names)

    def name(self, address):
        at = bisect.bisect_right(self._addresses, address) - 1
        return self._names[at] if at >= 0 else hex(address)


def _kernel_table(path):
    with open(path, encoding="ascii") as source:
        fields = (line.split()[:3] for line in source)
        return _Table((int(address, 16), name) for address, kind, name in fields if kind in "tTwW")


def _program_table(path):
    for options in ([], ["--dynamic"]):
        command = ["nm", "--defined-only", *options, path]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        fields = (line.split() for line in text.splitlines())
        table = _Table((int(line[0], 16), line[2].split("@")[0]) for line in fields if line[1] in "tTwWi")
        if table:
            return table
    return _Table([])


class Symbols:
    """The functions of one process and of the kernel under it."""

    def __init__(self, kallsyms, maps, folders):
        """`folders` hold, under the same names, the programs that the guest ran from its memory."""
        self._folders = folders
        self._kernel = _kernel_table(kallsyms)
        self._programs = {}
        self._maps = []
        with open(maps, encoding="utf-8") as source:
            for line in source:
                fields = line.split()
                if "x" in fields[1] and len(fields) > 5 and fields[5].startswith("/"):
                    start, end = (int(part, 16) for part in fields[0].split("-"))
                    self._maps.append((start, end, int(fields[2], 16), fields[5]))

    def _here(self, path):
        if os.path.exists(path):
            return path
        every = (os.path.join(folder, os.path.basename(path)) for folder in self._folders)
        return next((one for one in every if os.path.exists(one)), path)

    def is_user(self, address):
        return any(start <= address < end for start, end, _, _ in self._maps)

    def name(self, address):
        if address & _KERNEL:
            return f"kernel: {self._kernel.name(address)}"
        for start, end, offset, path in self._maps:
            if start <= address < end:
                if path not in self._programs:
                    self._programs[path] = _program_table(self._here(path))
                # Addresses equal offsets in the file for what our linkers make of code.
                return f"{os.path.basename(path)}: {self._programs[path].name(address - start + offset)}"
        return "?"


def by_function(counts, symbols):
    """Return {function: instructions} of the process's address space, from the
    file that the plugin wrote."""
    spaces = collections.defaultdict(collections.Counter)
    with open(counts, encoding="ascii") as source:
        for line in source:
            space, address, instructions = line.split()
            spaces[space][int(address, 16)] += int(instructions)

    def own(space):
        return sum(number for address, number in spaces[space].items() if symbols.is_user(address))

    functions = collections.Counter()
    for address, number in spaces[max(spaces, key=own)].items():
        functions[symbols.name(address)] += number
    return functions
