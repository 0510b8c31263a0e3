# SPDX-License-Identifier: MIT
"""bench/compare's verdicts: what is met, what is not, and that what was not measured is never called met."""
import os
import sys

import pytest

_BENCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../bench")
sys.path[:0] = [_BENCH, os.path.join(_BENCH, "guest")]

# pylint: disable=wrong-import-position
import cases
import figures
import verdicts

CASE = "loop-null_blk/randread-4k"


def cell(row, total, share=None, case=CASE, **more):
    return {"case": case, "row": row, "total_ns": total, "server_ns": share, **more}


def verdict(results, word, recovery=None):
    (found,) = [one for one in verdicts.verdicts(results, recovery) if word in one.measure]
    return found


def total(results):
    return verdict(results, "loop on null_blk, 4 KiB random read, depth 64: total")


def test_asked_names_cases_that_exist():
    assert all(asked.case in cases.CASES for asked in verdicts.ASKED)
    assert all((asked.peers_case or asked.case) in cases.CASES for asked in verdicts.ASKED)


def test_each_loop_of_a_stripe_has_its_own_backend():
    assert len(set(cases.CASES["stripe-null_blk/randread-64k"].backends)) == 2


@pytest.mark.parametrize(("ours", "met"), [(970, True), (971, False)])
def test_limit_is_inclusive_and_beside_the_best_peer(ours, met):
    found = total([cell("ublkd/auto", ours), cell("kublk/copy", 1200), cell("rublk/zero-copy", 1000)])
    assert found.met is met
    assert "rublk/zero-copy" in found.peer
    assert found.ratio == pytest.approx(ours / 1000)


def test_each_figure_has_its_own_best_peer():
    results = [cell("ublkd/auto", 900, 450), cell("kublk/copy", 1000, 600), cell("rublk/copy", 1100, 500)]
    found = [one for one in verdicts.verdicts(results) if one.measure == "the same: the server's share"]
    assert "rublk/copy" in found[0].peer


def test_kernel_loop_and_null_blk_are_not_peer_servers():
    found = total([cell("ublkd/auto", 970), cell("kublk/copy", 1000), cell("kernel loop/direct", 10), cell("null_blk", 1)])
    assert found.met is True


def test_median_of_rounds_counts():
    results = [cell("ublkd/auto", value) for value in (900, 901, 5000)] + [cell("kublk/copy", 1000)]
    assert total(results).ratio == pytest.approx(0.901)


def test_a_failed_figure_reports_why():
    found = total([{"case": CASE, "row": "ublkd/auto", "failed": "it broke"}, cell("kublk/copy", 1000)])
    assert found.met is None
    assert "it broke" in found.note


def test_no_peer_is_not_met():
    assert total([cell("ublkd/auto", 900)]).met is None


def test_auto_is_judged_by_the_fastest_of_our_paths():
    results = [cell("ublkd/auto", 1000, facts={"dataPath": "copy"}), cell("ublkd/copy", 1000), cell("ublkd/zero-copy", 800)]
    found = verdict(results, f"`auto` takes the fastest of ublkd's paths: {CASE}")
    assert found.met is False
    assert "which is copy" in found.ours and "ublkd/zero-copy" in found.peer


def test_noise_between_two_figures_of_one_path_is_not_a_wrong_choice():
    results = [cell("ublkd/auto", 1014, facts={"dataPath": "copy"}), cell("ublkd/copy", 1000), cell("ublkd/user-copy", 1200)]
    assert verdict(results, f"`auto` takes the fastest of ublkd's paths: {CASE}").met is True


LINEAR = "linear-null_blk/randread-4k"


@pytest.mark.parametrize(("ours", "met"), [(1020, True), (1021, False)])
def test_linear_is_beside_the_loop_of_the_same_run(ours, met):
    results = [cell("ublkd/auto", ours, case=LINEAR), cell("device mapper", 10, case=LINEAR), cell("ublkd/auto", 1000)]
    assert verdict(results, "linear, beside the loop").met is met


def test_linear_without_the_loop_says_which_is_missing():
    loop = {"case": CASE, "row": "ublkd/auto", "failed": "no loop"}
    found = verdict([cell("ublkd/auto", 1, case=LINEAR), loop], "linear, beside the loop")
    assert found.met is None and "no loop" in found.note


def test_recovery_is_a_median_in_milliseconds():
    lines = [{"server": "ublkd", "live": value} for value in (30, 39, 400)] + [{"server": "kublk", "live": 60}]
    found = verdict([], "SIGKILL", lines)
    assert found.met is True and "39.0 ms" in found.ours
    assert verdict([], "SIGKILL").met is None


def test_figures_of_nothing():
    assert figures.figure([], "total_ns") is None
    assert figures.figure([{"failed": "x"}], "total_ns") is None


def test_rows_of_the_table_name_what_is_not_met():
    (row,) = [row for row in verdicts.markdown_rows([total([cell("ublkd/auto", 2000), cell("kublk/copy", 1000)])])]
    assert row[-1] == "**not met**" and row[3] == "2.000"
