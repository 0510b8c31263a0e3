# SPDX-License-Identifier: MIT
"""Bundles are made once, whole, and are kept while they are used."""

import multiprocessing
import os
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import cache  # pylint: disable=wrong-import-position


@pytest.fixture(autouse=True, name="directory")
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UBLKD_CACHE", str(tmp_path))
    return tmp_path / "vm"


def builder(version, text="x", seconds=0.0):
    def build(directory, scratch):
        assert os.path.isdir(scratch)
        with open(os.path.join(directory, "file"), "w", encoding="ascii") as target:
            time.sleep(seconds)
            target.write(text)
        return version

    return build


def fail(*_):
    raise AssertionError("it is there already")


def test_bundle_is_made_once():
    path, _ = cache.bundle("b", 1, builder("1.0"))
    assert cache.bundle("b", 1, fail)[0] == path


def test_bundle_of_another_recipe_is_rebuilt(directory):
    os.close(cache.bundle("b", 1, builder("1.0"))[1])
    path, _ = cache.bundle("b", 2, builder("1.0", "y"))
    assert (directory / "b" / "file").read_text() == "y"
    assert [entry for entry in os.listdir(directory) if "@" in entry] == [os.path.basename(path)]


def test_bundle_that_is_used_survives_a_refresh(directory):
    old, keep = cache.bundle("b", 1, builder("1.0"))
    new, _ = cache.bundle("b", 1, builder("1.1"), refresh=True)
    assert os.path.isdir(old) and old != new
    os.close(keep)
    cache.bundle("b", 1, builder("1.2"), refresh=True)
    assert not os.path.isdir(old)
    assert os.path.realpath(directory / "b").endswith("1.2")


def test_failed_build_leaves_nothing(directory):
    with pytest.raises(AssertionError):
        cache.bundle("b", 1, fail)
    assert os.listdir(directory) == ["b.lock"]


def build_in_process(results):
    path, _ = cache.bundle("b", 1, builder(str(os.getpid()), seconds=0.5))
    results.put(path)


def test_runs_that_start_at_once_make_one_bundle():
    results = multiprocessing.Queue()
    processes = [multiprocessing.Process(target=build_in_process, args=(results,)) for _ in range(4)]
    for process in processes:
        process.start()
    paths = {results.get(timeout=30) for _ in processes}
    for process in processes:
        process.join()
    assert len(paths) == 1
