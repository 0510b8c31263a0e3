# SPDX-License-Identifier: MIT
"""The limits for ublkd beside its peers, and whether the figures of one run meet them.

Pure: it takes the results of guest/instructions.py, and runs nothing.
"""

import fnmatch
import statistics
from dataclasses import dataclass

import figures

_PEER_SERVERS = ("rublk/*", "kublk/*")
_TOTAL, _SHARE = "total_ns", "server_ns"
_AS_FAST = 1.01  # what `auto` may lose to the fastest of our own paths: about the noise of a run


@dataclass(frozen=True)
class Asked:
    """At most `limit` times the figure of the best of `peers` in the same run, on the same case or another one."""

    measure: str
    case: str
    figure: str
    limit: float
    peers: tuple = _PEER_SERVERS
    ours: str = "ublkd/auto"
    peers_case: str = ""  # default: the same


ASKED = (
    Asked("loop on null_blk, 4 KiB random read, depth 64: total", "loop-null_blk/randread-4k", _TOTAL, 0.97),
    Asked("the same: the server's share", "loop-null_blk/randread-4k", _SHARE, 0.92),
    Asked("loop on tmpfs, 4 KiB random read, depth 64: total", "loop-tmpfs/randread-4k", _TOTAL, 0.98),
    Asked("the same: the server's share", "loop-tmpfs/randread-4k", _SHARE, 0.95),
    Asked("loop on null_blk, 512 KiB read: total", "loop-null_blk/read-512k", _TOTAL, 0.98),
    Asked("null, 4 KiB random read, depth 64: the server's share", "null/randread-4k", _SHARE, 0.95),
    Asked("loop on null_blk, 4 KiB random read, depth 1: total", "loop-null_blk/randread-4k-d1", _TOTAL, 0.97),
    Asked("null, 4 KiB random read, depth 1: total", "null/randread-4k-d1", _TOTAL, 0.97),
    Asked(
        "copy path to copy path, loop on null_blk, 4 KiB random read: the server's share",
        "loop-null_blk/randread-4k", _SHARE, 0.90, ("rublk/copy", "kublk/copy"), "ublkd/copy",
    ),
    Asked(
        "beside the kernel's loop driver, on null_blk, 4 KiB random read: total",
        "loop-null_blk/randread-4k", _TOTAL, 1.08, ("kernel loop/*",),
    ),
    Asked(
        "statistics on, beside off, loop on null_blk, 4 KiB random read: the server's share",
        "loop-null_blk/randread-4k", _SHARE, 1.01, ("ublkd without statistics/auto",),
    ),
    Asked(
        "linear, beside the loop that it is a part of, on null_blk, 4 KiB random read, depth 64: total",
        "linear-null_blk/randread-4k", _TOTAL, 1.02, ("ublkd/auto",), peers_case="loop-null_blk/randread-4k",
    ),
)

RECOVERY = "SIGKILL of a worker under load until the device is Live again, median of 20 kills, 2 queues"
RECOVERY_LIMIT_MS = 40


@dataclass
class Verdict:
    """`met` is None where there is no figure; `note` then says why."""

    measure: str
    ours: str
    peer: str
    ratio: float | None
    asked: str
    met: bool | None
    note: str = ""


def _known(results, case, patterns, figure):
    """Return [(figure, row)] of the rows with that name, the smallest first."""
    rows = dict.fromkeys(result["row"] for result in results if result["case"] == case)
    rows = [row for row in rows if any(fnmatch.fnmatch(row, pattern) for pattern in patterns)]
    found = [(figures.figure(figures.of_cell(results, case, row), figure), row) for row in rows]
    return sorted((value, row) for value, row in found if value is not None)


def _data_path(results, case, row):
    """Return the path that a row reports, or None."""
    for result in figures.of_cell(results, case, row):
        if result.get("facts", {}).get("dataPath"):
            return result["facts"]["dataPath"]
    return None


def _named(value, row, path=None):
    return f"{value:,.0f} ns ({row}{f', which is {path}' if path else ''})"


def _beside_peers(asked, results):
    ours = _known(results, asked.case, (asked.ours,), asked.figure)
    peers_case = asked.peers_case or asked.case
    peers = _known(results, peers_case, asked.peers, asked.figure)
    limit = f"at most {asked.limit:.2f}"
    if not ours or not peers:
        lacks = asked.ours if not ours else " and ".join(asked.peers)
        reason = figures.reason(figures.of_cell(results, peers_case if ours else asked.case, lacks))
        return Verdict(asked.measure, "-", "-", None, limit, None, f"{lacks} was not measured: {reason}")
    (value, row), (best, peer) = ours[0], peers[0]
    path = None if row.endswith("/copy") else _data_path(results, asked.case, row)
    ratio = value / best
    return Verdict(asked.measure, _named(value, row, path), _named(best, peer), ratio, limit, ratio <= asked.limit)


def _choice(case, results):
    """Return whether `auto` chose the fastest of our paths, or one that is as fast."""
    measure = f"`auto` takes the fastest of ublkd's paths: {case}"
    auto = _known(results, case, ("ublkd/auto",), _TOTAL)
    paths = _known(results, case, ("ublkd/copy", "ublkd/user-copy", "ublkd/zero-copy"), _TOTAL)
    limit = f"at most {_AS_FAST:.2f}"
    if not auto or len(paths) < 2:
        return Verdict(measure, "-", "-", None, limit, None, "fewer than two paths of ublkd were measured")
    ratio = auto[0][0] / paths[0][0]
    chosen = _data_path(results, case, "ublkd/auto")
    fastest = paths[0][1] == f"ublkd/{chosen}"  # then two figures of one path differ by noise only
    ours = _named(*auto[0], chosen)
    return Verdict(measure, ours, _named(*paths[0]), ratio, limit, fastest or ratio <= _AS_FAST)


def _recovery(lines):
    """Return the verdict on the results of bench/recovery, or why there are none."""
    asked = f"at most {RECOVERY_LIMIT_MS} ms"
    times = {}
    for line in lines or ():
        if line.get("live") is not None:
            times.setdefault(line["server"], []).append(line["live"])
    medians = {name: statistics.median(values) for name, values in times.items()}
    ours = sorted((value, name) for name, value in medians.items() if name.startswith("ublkd"))
    peers = sorted((value, name) for name, value in medians.items() if not name.startswith("ublkd"))
    if not ours:
        note = "bench/recovery was not run" if lines is None else "bench/recovery measured no ublkd"
        return Verdict(RECOVERY, "-", "-", None, asked, None, note)
    peer = f"{peers[0][0]:.1f} ms ({peers[0][1]})" if peers else "-"
    ratio = ours[0][0] / peers[0][0] if peers else None
    mine = f"{ours[0][0]:.1f} ms ({ours[0][1]})"
    return Verdict(RECOVERY, mine, peer, ratio, asked, ours[0][0] <= RECOVERY_LIMIT_MS)


def verdicts(results, recovery=None):
    """Return every verdict. `results` are those of guest/instructions.py, `recovery` those of
    bench/recovery, or None if that was not run."""
    every = [_beside_peers(asked, results) for asked in ASKED]
    every.append(_recovery(recovery))
    measured = dict.fromkeys(result["case"] for result in results if result["row"].startswith("ublkd/"))
    return every + [_choice(case, results) for case in measured]


def markdown_rows(every):
    """Return the rows of a table: measure, ours, best peer, ratio, asked, met."""
    words = {True: "met", False: "**not met**", None: "not measured"}
    rows = []
    for one in every:
        ratio = "-" if one.ratio is None else f"{one.ratio:.3f}"
        met = words[one.met] + (f": {one.note}" if one.note else "")
        rows.append([one.measure, one.ours, one.peer, ratio, one.asked, met])
    return rows
