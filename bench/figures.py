# SPDX-License-Identifier: MIT
"""Evaluates the results of guest/instructions.py, and makes their tables."""

import statistics

import cases
import host

_NS_PER_INSTRUCTION = 4  # icount shift=2


def of_cell(results, case, row):
    """Return the results of one row on one case, of every round."""
    return [result for result in results if result["case"] == case and result["row"] == row]


def figure(results, name):
    """Return the median of "total_ns" or "server_ns" over the rounds, or None if there is none."""
    known = [result[name] for result in results if result.get(name) is not None]
    return statistics.median(known) if known else None


def reason(results):
    """Return why a cell has no figure."""
    if not results:
        return "it was not in this run, or the run ended before it"
    return results[-1].get("failed") or results[-1].get("not_applicable") or "there is no such figure"


def spread(results):
    """Return the largest relative distance of a round's total from their mean."""
    values = [result["total_ns"] for result in results if "total_ns" in result]
    return max(abs(value / statistics.fmean(values) - 1) for value in values)


def _number(value, divisor=1):
    return "-" if value is None else f"{value / divisor:,.0f}"


def _line(name, results, instructions):
    total, share = figure(results, "total_ns"), figure(results, "server_ns")
    line = [name, _number(total)]
    if instructions:
        line.append(_number(total, _NS_PER_INSTRUCTION))
    line.append(_number(share))
    if instructions:
        line.append(_number(share, _NS_PER_INSTRUCTION))
    rounds = [result for result in results if "total_ns" in result]
    return [*line, f"{100 * spread(results):.1f} %" if len(rounds) > 1 else "-"]


def case_markdown(case, results, instructions=True):
    """Return the table of one case, and the cells without a figure."""
    header = ["server/data path", "ns an I/O", "server's ns", "spread"]
    if instructions:
        header = ["server/data path", "ns an I/O", "instructions", "server's ns", "server's instructions", "spread"]
    lines, left_out = [], []
    for name in dict.fromkeys(result["row"] for result in results):
        own = [result for result in results if result["row"] == name]
        if figure(own, "total_ns") is None:
            left_out.append(f"- {name}: {reason(own)}\n")
        else:
            lines.append(_line(name, own, instructions))
    text = f"### {case.title}\n\n{host.table(header, lines)}"
    return text + (f"\nNot measured:\n\n{''.join(left_out)}" if left_out else "")


def with_builds_in_rows(results):
    """Return the results with the name of the build as a part of the row's, where there are several builds."""
    return [
        result | {"row": f"{result['row']} ({result['build']})"} if "build" in result else result for result in results
    ]


def median_and_range(values, digits=0):
    """Return the text "median (smallest to largest)"; of one value alone that value, of none "-"."""
    if not values:
        return "-"
    text = f"{statistics.median(values):,.{digits}f}"
    return f"{text} ({min(values):,.{digits}f} to {max(values):,.{digits}f})" if len(values) > 1 else text


def ratio_of_medians(values, reference):
    """Return the text of the ratio, or "-" if there is none."""
    divisor = statistics.median(reference) if reference else 0
    return f"{statistics.median(values) / divisor:.3f}" if values and divisor else "-"


def _builds_line(title, builds, values):
    """Return the line of one figure, of {build: values}; the reference is the second build."""
    reference = values[builds[1]]
    cells = [median_and_range(values[build]) for build in builds]
    ratios = [ratio_of_medians(values[build], reference) for build in builds if build != builds[1]]
    return [title, *cells, *ratios]


def builds_markdown(builds, results):
    """Return the table of several builds of ublkd: median (smallest to largest) of each, and ratios to the second
    build, which is the first of --beside."""
    measured = [result for result in results if "build" in result]
    lines, left_out = [], []
    for case, row in dict.fromkeys((result["case"], result["row"]) for result in measured):
        own = {build: [one for one in of_cell(measured, case, row) if one["build"] == build] for build in builds}
        for name, title in (("total_ns", "whole path"), ("server_ns", "server's share")):
            values = {build: [one[name] for one in own[build] if one.get(name) is not None] for build in builds}
            lines.append(_builds_line(f"{case}, {row}: {title}", builds, values))
        failed = [(build, one) for build in builds for one in own[build] if "total_ns" not in one]
        left_out += [f"- {case}, {row} ({build}), round {one['round']}: {reason([one])}\n" for build, one in failed]
    ratios = [f"{build} : {builds[1]}" for build in builds if build != builds[1]]
    text = f"### Builds\n\n{host.table(['ns an I/O', *builds, *ratios], lines)}"
    return text + (f"\nNot measured:\n\n{''.join(left_out)}" if left_out else "")


def _cell(results):
    total, share = figure(results, "total_ns"), figure(results, "server_ns")
    return _number(total) if share is None else f"{_number(total)} / {_number(share)}"


def overview(case_names, results):
    """Return the table of servers by cases: ns an I/O / the server's share of it."""
    rows = []
    for name in dict.fromkeys(result["row"] for result in results):
        cells = [_cell(of_cell(results, case, name)) for case in case_names]
        if any(cell != "-" for cell in cells):
            rows.append([name, *cells])
    return host.table(["ns an I/O / server's share", *case_names], rows)


def cases_markdown(case_names, results, instructions=True):
    """Return the overview and then a table for each case."""
    parts = [overview(case_names, results)]
    for name in case_names:
        of_case = [result for result in results if result["case"] == name]
        if of_case:
            parts.append(case_markdown(cases.CASES[name], of_case, instructions))
    return "\n".join(parts)
