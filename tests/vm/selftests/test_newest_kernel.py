# SPDX-License-Identifier: MIT
"""Which series of the kernel "7" stands for."""

import argparse
import os

import cache
import kernels
import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UBLKD_CACHE", str(tmp_path))


def _chosen_before(series):
    """As an earlier run has found it in the archive."""

    def build(directory, _scratch):
        with open(os.path.join(directory, "series"), "w", encoding="ascii") as output:
            output.write(series)
        return series

    _, keep = cache.bundle("newest-7", kernels._RECIPE, build)
    os.close(keep)


def test_what_was_chosen_is_kept():
    """Also when the archive has a newer one, or has that one no more: 7.1 is in no archive."""
    _chosen_before("7.1")
    assert kernels.settle("7") == "7.1"


def test_a_refresh_takes_the_newest_of_the_archive():
    _chosen_before("7.1")
    newest = kernels.settle("7", refresh=True)
    assert kernels.settle("7") == newest
    major, minor = newest.split(".")
    assert major == "7" and int(minor) >= 2


def test_other_series_stand_for_themselves():
    assert [kernels.settle(series) for series in ("6.12", "7.2")] == ["6.12", "7.2"]


def test_which_series_exist():
    assert [kernels.known_series(series) for series in ("6.12", "7", "7.2")] == ["6.12", "7", "7.2"]
    for series in ("6.1", "8", "7.", "newest"):
        with pytest.raises(argparse.ArgumentTypeError):
            kernels.known_series(series)
