# SPDX-License-Identifier: MIT
"""What /proc shows of the processes of a server."""

import glob
import os

from commands import read


def holders(path):
    """Return the processes that have a file open."""
    found = set()
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) == path:
                found.add(int(link.split("/")[2]))
        except OSError:
            pass  # it has just gone
    return sorted(found)


def programs(prefix):
    """Return {process: name} of all whose name begins so."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            name = read(f"/proc/{entry}/comm") if entry.isdigit() else ""
        except OSError:
            continue  # it has just gone
        if name.startswith(prefix):
            found[int(entry)] = name
    return found


def waiting_spares(pid):
    """Return the processes that an ublkd has started ahead of need."""
    found = []
    for child in read(f"/proc/{pid}/task/{pid}/children").split():
        try:
            if "(spare)" in read(f"/proc/{child}/cmdline"):
                found.append(int(child))
        except OSError:
            continue  # it has just gone
    return found


def _run_times(tasks):
    """Return {number: (name, nanoseconds run)} of tasks, given as folders of /proc."""
    times = {}
    for task in tasks:
        try:
            times[os.path.basename(task)] = (read(f"{task}/comm"), int(read(f"{task}/schedstat").split()[0]))
        except OSError:
            continue  # it has just gone
    return times


def thread_times(pids):
    """Return the times of all threads of some processes."""
    return _run_times(task for pid in pids for task in glob.glob(f"/proc/{pid}/task/*"))


def kernel_worker_times():
    """Return the times of the kernel's workers."""
    times = _run_times(f"/proc/{entry}" for entry in os.listdir("/proc") if entry.isdigit())
    return {number: ("kworker", time) for number, (name, time) in times.items() if name.startswith("kworker/")}


def spent(before, after):
    """Return {name: nanoseconds} between two such answers."""
    total = {}
    for number, (name, time) in after.items():
        used = time - before.get(number, ("", 0))[1]
        if used:
            total[name] = total.get(name, 0) + used
    return total


def accounts():
    """Return {name of a program: nanoseconds run} of all processes; those of the kernel are one, named "kernel". Time that no
    process had is "idle"; all CPUs together are "all"."""
    total = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            name = read(f"/proc/{entry}/comm") if os.readlink(f"/proc/{entry}/exe") else ""
        except OSError:
            name = "kernel"  # it has no program, or has just gone
        ran = sum(time for _, time in _run_times(glob.glob(f"/proc/{entry}/task/*")).values())
        total[name] = total.get(name, 0) + ran
    ticks = [int(word) for word in read("/proc/stat").splitlines()[0].split()[1:9]]
    tick = 10**9 // os.sysconf("SC_CLK_TCK")
    return total | {"idle": (ticks[3] + ticks[4]) * tick, "all": sum(ticks) * tick}


def accounts_between(before, after):
    """Return {name: seconds} between two such answers, and "rest" for what has gone since."""
    names = {name: after[name] - before.get(name, 0) for name in after}
    rest = names.pop("all") - sum(names.values())
    return {name: round(time / 1e9, 3) for name, time in (names | {"rest": rest}).items()}


def private_memory(pid):
    """Return the bytes of memory that only this process has: {kind: bytes}."""
    fields = {}
    for line in read(f"/proc/{pid}/smaps_rollup").splitlines()[1:]:
        name, value = line.split(":")
        fields[name] = int(value.split()[0]) << 10
    return {name: fields[name] for name in ("Private_Clean", "Private_Dirty", "Rss", "Pss")}


def _number_or_none(line):
    name, _, value = line.partition(":")
    words = value.split()
    return (name, int(words[0])) if len(words) == 2 and words[1] == "kB" and words[0].isdigit() else None


def mappings(pid):
    """Return what each mapping of the process has, in bytes: [{"range", "rights", "file", kind: bytes}]."""
    result = []
    for line in read(f"/proc/{pid}/smaps").splitlines():
        words = line.split(maxsplit=5)
        if "-" in words[0] and not words[0].endswith(":"):
            result.append({"range": words[0], "rights": words[1], "file": words[5] if len(words) > 5 else ""})
            continue
        field = _number_or_none(line)
        if field and field[0] in ("Private_Clean", "Private_Dirty", "Rss"):
            result[-1][field[0]] = field[1] << 10
    return result
