"""What the kernel tells about the processes of a server."""

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


def _run_times(tasks):
    times = {}
    for task in tasks:
        try:
            spent = int(read(f"{task}/schedstat").split()[0])
            name = read(f"{task}/comm")
        except OSError:
            continue  # it has just gone
        times[f"{name}/{os.path.basename(task)}"] = spent
    return times


def thread_times(pids):
    """Return {name/tid: nanoseconds run} of all threads of some processes."""
    return _run_times(task for pid in pids for task in glob.glob(f"/proc/{pid}/task/*"))


def kernel_worker_times():
    """Return the same for the kernel's own workers, which serve loop disks."""
    tasks = (f"/proc/{entry}" for entry in os.listdir("/proc") if entry.isdigit())
    times = _run_times(task for task in tasks if not os.path.exists(f"{task}/exe"))
    return {name: spent for name, spent in times.items() if name.startswith("kworker")}


def spent(before, after):
    """Return the nanoseconds between two such answers, by thread name."""
    total = {}
    for task, time in after.items():
        name = task.rsplit("/", 1)[0]
        total[name] = total.get(name, 0) + time - before.get(task, 0)
    return {name: time for name, time in total.items() if time}


def private_memory(pid):
    """Return the bytes of memory that only this process has: {kind: bytes}."""
    fields = {}
    for line in read(f"/proc/{pid}/smaps_rollup").splitlines()[1:]:
        name, value = line.split(":")
        fields[name] = int(value.split()[0]) << 10
    return {name: fields[name] for name in ("Private_Clean", "Private_Dirty", "Rss", "Pss")}
