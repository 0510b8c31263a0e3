# SPDX-License-Identifier: MIT
"""Several builds of ublkd beside each other: their turns, their programs and their tables."""
import argparse
import os
import sys

import pytest

_BENCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench")
sys.path[:0] = [_BENCH, os.path.join(_BENCH, "guest")]

# pylint: disable=wrong-import-position
import host
import beside
import builds
import figures
import recovery_table

CASE, ROW = "null/randread-4k", "ublkd/auto"


def options(*arguments):
    parser = argparse.ArgumentParser()
    beside.add_option(parser)
    return parser.parse_args(arguments)


def cell(build, total, share, number=1):
    return {"round": number, "case": CASE, "row": ROW, "build": build, "total_ns": total, "server_ns": share}


def lines(text):
    """Return the cells of each line of a Markdown table, by the first of them."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows}


def test_builds_are_named_once_and_the_first_stays_first():
    chosen = options("--beside", "z=/z", "--beside", "a=/a=b")
    assert chosen.beside == {"z": "/z", "a": "/a=b"}
    assert beside.names(chosen) == ["this", "z", "a"]
    assert beside.names(options()) == []
    assert options().beside == {}


@pytest.mark.parametrize("bad", [("x",), ("=/x",), ("x=",), ("this=/x",), ("a/b=/x",), ("..=/x",), ("x=/a", "x=/b")])
def test_names_that_are_refused(bad):
    with pytest.raises(SystemExit):
        options(*(word for one in bad for word in ("--beside", one)))


def test_each_round_begins_with_the_next_build():
    rounds = [builds.in_turn(["this", "old", "new"], number) for number in (1, 2, 3, 4)]
    assert rounds[:3] == [["this", "old", "new"], ["old", "new", "this"], ["new", "this", "old"]]
    assert rounds[3] == rounds[0]


class Environment:
    """Stands in for the environment of a build; `running`: the builds whose ublkd runs."""

    def __init__(self, name, running):
        self.name, self.running = name, running

    def start(self):
        self.running.append(self.name)

    def stop_daemons(self):
        if self.name in self.running:
            self.running.remove(self.name)


@pytest.fixture(name="two")
def _two(monkeypatch):
    running = []
    monkeypatch.setattr(builds.servers, "OtherBuild", lambda name, _programs, _this: Environment(name, running))
    return builds.Builds(Environment("this", running), {"beside": {"old": {}}}), running


def test_only_the_build_whose_turn_it_is_runs(two):
    both, running = two
    seen = []
    for number in (1, 2):
        for build, environment in both.turns("ublkd", number):
            assert running == []
            environment.start()
            seen.append((build["build"], environment.name))
    assert running == []
    assert seen == [(name, name) for name in ("this", "old", "old", "this")]


def test_peers_have_one_turn_and_no_build(two):
    assert [build for build, _ in two[0].turns("kublk", 2)] == [{}]
    assert [build for build, _ in two[0].turns("ublkd without statistics", 2)] == [{"build": "old"}, {"build": "this"}]


def test_a_build_alone_keeps_its_ublkd():
    running = []
    alone = builds.Builds(Environment("this", running), {})
    for build, environment in alone.turns("ublkd", 1):
        assert build == {}
        environment.start()
    assert running == ["this"] and not alone.take_turns("ublkd")


def test_the_table_has_median_range_and_ratio_to_the_first_beside():
    results = [cell("this", 90, 40, 1), cell("this", 96, 44, 2), cell("this", 95, 45, 3)]
    results += [cell("old", 100, 50, 1), cell("old", 101, 52, 2), cell("old", 99, 48, 3)]
    results += [cell("older", 200, 100)]
    table = lines(figures.builds_markdown(["this", "old", "older"], results))
    assert table["ns an I/O"] == ["this", "old", "older", "this : old", "older : old"]
    assert table[f"{CASE}, {ROW}: whole path"] == ["95 (90 to 96)", "100 (99 to 101)", "200", "0.950", "2.000"]
    assert table[f"{CASE}, {ROW}: server's share"] == ["44 (40 to 45)", "50 (48 to 52)", "100", "0.880", "2.000"]


def test_a_build_that_failed_has_no_ratio_and_its_reason():
    failed = {"round": 1, "case": CASE, "row": ROW, "build": "old", "failed": "it broke"}
    text = figures.builds_markdown(["this", "old"], [cell("this", 90, 40), failed])
    assert lines(text)[f"{CASE}, {ROW}: whole path"] == ["90", "-", "-"]
    assert f"- {CASE}, {ROW} (old), round 1: it broke" in text


def test_builds_are_rows_of_their_own_in_the_other_tables():
    peer = {"case": CASE, "row": "null_blk", "total_ns": 10}
    text = figures.cases_markdown([CASE], figures.with_builds_in_rows([cell("this", 90, 40), cell("old", 100, 50), peer]))
    table = lines(text.split("###")[0])
    assert table[f"{ROW} (this)"] == ["90 / 40"] and table[f"{ROW} (old)"] == ["100 / 50"] and table["null_blk"] == ["10"]


def kill(build, live, **more):
    return {"server": "ublkd", "kill": 1, "build": build, "live": live, "inFlight": 90, **more}


def test_recovery_has_a_row_for_each_build_and_one_of_ratios():
    results = [kill("this", 19), kill("this", 20), kill("this", 18), kill("old", 20, tries=1), kill("old", None)]
    results += [{"server": "ublkd", "build": "old", "failed": "it broke"}] * 2
    results += [{"server": "kublk", "kill": 1, "live": 60}]
    text, notes = recovery_table.markdown(["ublkd", "kublk"], ["this", "old"], results)
    table = lines(text)
    live = table["server"].index("LIVE (kernel)")
    assert table["ublkd (this)"][0] == "3" and table["ublkd (this)"][live] == "19.0 / 20.0"
    assert table["ublkd (old)"][0] == "2" and table["ublkd (old)"][live] == "20.0 / 20.0 (1 not seen)"
    ratios = table["ublkd, this : old"]
    assert ratios[live] == "0.950" and set(ratios) == {"-", "0.950"}
    assert table["kublk"][live] == "60.0 / 60.0"
    assert notes == ["- ublkd (old): it broke\n"]


def test_recovery_of_one_build_is_named_as_the_server():
    text, notes = recovery_table.markdown(["ublkd"], [], [{"server": "ublkd", "kill": 1, "live": 30}])
    assert list(lines(text)) == ["server", "---", "ublkd"] and not notes


def build_of(folder, *names, text="#!/bin/sh\necho ublkd 0\n"):
    folder.mkdir()
    for name in names:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder)


def test_an_old_build_may_lack_what_is_not_needed(tmp_path):
    old = build_of(tmp_path / "old", "ublkd", "ublkd-worker")
    with host.Workspace() as workspace:
        chosen = options("--beside", f"old={old}")
        found, versions = beside.programs(workspace, chosen, beside.needed(["ublkd-worker"]))
        assert set(os.listdir(os.path.dirname(found["old"]["ublkd"]))) == {"ublkd", "ublkd-worker"}
        assert os.path.dirname(found["old"]["ublkd"]) != workspace.path
    assert [version.split(" (")[0] for version in versions] == ["old: ublkd 0"]


@pytest.mark.parametrize("text", ["#!/bin/sh\necho\n", "#!/bin/sh\necho ublkd-helper\n"])
def test_a_build_without_a_program_that_is_needed_is_refused(tmp_path, text):
    old = build_of(tmp_path / "old", "ublkd", "ublkd-worker", text=text)
    workers = ["ublkd-worker", *["ublkd-worker-without-statistics"] * ("helper" not in text)]
    with host.Workspace() as workspace, pytest.raises(SystemExit) as problem:
        beside.programs(workspace, options("--beside", f"old={old}"), beside.needed(workers))
    lacking = "ublkd-helper" if "helper" in text else "ublkd-worker-without-statistics"
    assert f"{old}/{lacking} is not built" in str(problem.value)
