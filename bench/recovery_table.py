# SPDX-License-Identifier: MIT
"""Makes the table of the results of guest/recovery.py."""

import statistics

import builds
import figures
import host

_COLUMNS = {
    "inFlight": "in flight",
    "dead": "server gone",
    "live": "LIVE (kernel)",
    "firstIo": "first I/O",
    "ownRead": "own read",
    "restLive": "Live (REST)",
    "lastMs": "recoveries.lastMs",
    "tries": "tries",
}
_NOT_TIMES = ("inFlight", "tries")


def _cell(values):
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    lost = len(values) - len(known)
    return f"{statistics.median(known):.1f} / {max(known):.1f}" + (f" ({lost} not seen)" if lost else "")


def _ratio(column, kills, reference):
    if column in _NOT_TIMES:
        return "-"
    values, divisors = ([kill[column] for kill in some if kill.get(column) is not None] for some in (kills, reference))
    return figures.ratio_of_medians(values, divisors)


def _row(title, kills):
    return [title, str(len(kills)), *(_cell([kill.get(column) for kill in kills]) for column in _COLUMNS)]


def _rows_of_builds(server, names, kills):
    """Return the rows of one server, of {build: kills}: one for each build, then ratios to the second build."""
    reference = names[1]
    rows = [_row(f"{server} ({name})", kills[name]) for name in names]
    for name in names:
        if name != reference:
            ratios = [_ratio(column, kills[name], kills[reference]) for column in _COLUMNS]
            rows.append([f"{server}, {name} : {reference}", "-", *ratios])
    return rows


def _note(line):
    build = f" ({line['build']})" if "build" in line else ""
    return f"- {line['server']}{build}: {line.get('failed') or line['not_applicable']}\n"


def markdown(servers, names, lines):
    """Return the table, and the lines of what was not measured; `names`: of the builds that took turns, or none."""
    rows, notes = [], []
    for server in servers:
        own = [line for line in lines if line.get("server") == server]
        kills = [line for line in own if "kill" in line]
        notes += [_note(line) for line in own if "kill" not in line]
        if names and builds.of_ublkd(server):
            by_build = {name: [kill for kill in kills if kill["build"] == name] for name in names}
            rows += _rows_of_builds(server, names, by_build)
        elif kills:
            rows.append(_row(server, kills))
    return host.table(["server", "kills", *_COLUMNS.values()], rows), list(dict.fromkeys(notes))
