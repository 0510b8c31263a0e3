# SPDX-License-Identifier: MIT
"""Draw the time of an I/O by server: one panel for each case, one bar for each row."""

import fnmatch
import math
import os

import cases
import figures

# Debian's matplotlib must not leave settings behind, and must not need a screen.
os.environ.setdefault("MPLCONFIGDIR", "/tmp/ublkd-bench-matplotlib")

_COLUMNS = 2
_COLOURS = {  # row pattern: (the server's share, the rest)
    "ublkd/*": ("#0b5fa5", "#8ec1ea"),
    "ublkd *": ("#4d7fa8", "#c4dcef"),
    "kernel loop/*": ("#6b6b6b", "#cfcfcf"),
    "null_blk": ("#6b6b6b", "#cfcfcf"),
    "*": ("#b5651d", "#efcfae"),
}


def _colours(row):
    return next(colours for pattern, colours in _COLOURS.items() if fnmatch.fnmatch(row, pattern))


def _best_of_servers(bars):
    """Keep every row of ublkd, and of the others each server's fastest."""
    best = {}
    for bar in bars:
        row, total, _ = bar
        server = row if row.startswith("ublkd/") else row.split("/")[0]
        if server not in best or total < best[server][1]:
            best[server] = bar
    return sorted(best.values(), key=lambda bar: bar[1], reverse=True)


def bars_of(results, case):
    """Return [(row, total ns, the server's ns or 0)] of a case, the slowest first."""
    bars = []
    for row in dict.fromkeys(result["row"] for result in results if result["case"] == case):
        cell = figures.of_cell(results, case, row)
        total = figures.figure(cell, "total_ns")
        if total is not None:
            bars.append((row, total, figures.figure(cell, "server_ns") or 0))
    return _best_of_servers(bars)


def _panel(axes, title, bars):
    for place, (row, total, share) in enumerate(bars):
        dark, light = _colours(row)
        shown = min(share, total)  # several CPUs can work longer than an I/O takes
        axes.barh(place, shown, color=dark)
        axes.barh(place, total - shown, left=shown, color=light)
        text = f" {total / 1000:.1f}" + (f" / {share / 1000:.1f}" if share else "")
        axes.text(total, place, text, va="center", fontsize=8, weight="bold" if row.startswith("ublkd/") else "normal")
    axes.set_yticks(range(len(bars)), [bar[0] for bar in bars], fontsize=8)
    for label in axes.get_yticklabels():
        if label.get_text().startswith("ublkd/"):
            label.set_weight("bold")
            label.set_color(_COLOURS["ublkd/*"][0])
    axes.set_xlim(0, 1.25 * max(bar[1] for bar in bars))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}")
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(title, fontsize=9, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(path, results, case_names, clock):
    """Write a PNG; `clock` says of what the times are. Raises ImportError without python3-matplotlib."""
    import matplotlib  # pylint: disable=import-outside-toplevel

    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel

    panels = [(cases.CASES[name].title, bars_of(results, name)) for name in case_names]
    panels = [(title, bars) for title, bars in panels if bars]
    if not panels:
        return False
    lines = math.ceil(len(panels) / _COLUMNS)
    highest = max(len(bars) for _, bars in panels)
    size = (13, 1.0 + lines * (0.9 + 0.24 * highest))
    figure, grid = pyplot.subplots(lines, _COLUMNS, figsize=size, squeeze=False, layout="constrained")
    for axes in grid.flat[len(panels):]:
        axes.set_axis_off()
    for axes, (title, bars) in zip(grid.flat, panels):
        _panel(axes, title, bars)
    figure.suptitle(
        f"µs for one I/O, whole path / of it the server's share (dark): shorter is better. {clock}\n"
        "Bold and blue: ublkd on each data path. Of the other servers the fastest data path.",
        fontsize=10,
    )
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return True
