# SPDX-License-Identifier: MIT
"""The tree keeps to the rules of rules.py and circles.py."""

from pathlib import Path

import circles
import links
import pytest
import rules

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_rule(rule):
    assert rules.check_tree(ROOT, [rule]) == []


def test_rooms_are_layered():
    assert circles.check_rooms(ROOT) == []


def test_libraries_link_what_their_rooms_may_see():
    texts, paths = links.texts_of(ROOT), rules.tracked_c_files(ROOT)
    assert list(links.links_beyond_the_rows(texts, paths)) == []
    assert {"ublkd_plan", "ublkd_api_http", "worker_disk", "worker_queue", "ublkd_reconcile"} < set(links.libraries(texts))
    beyond = "target_link_libraries(worker_disk PUBLIC worker_queue)  # target_link_libraries(worker_disk PUBLIC worker_io)"
    faults = list(links.links_beyond_the_rows({**texts, "targets/worker/more/CMakeLists.txt": beyond}, paths))
    assert [fault.split(",")[0] for fault in faults] == ["worker_disk links worker_queue"]


def test_unit_tests_mirror_the_rooms():
    paths = rules.tracked_c_files(ROOT)
    assert rules.unit_tests_elsewhere(paths) == []
    assert sum(path.startswith(rules.UNIT_TESTS) for path in paths) > 100


def test_words():
    assert rules.check_words(ROOT) == []


def test_there_is_something_to_check():
    paths = rules.tracked_c_files(ROOT)
    assert "ublkd/plan/plan.c" in paths and len(paths) > 50
    texts = rules.tracked_files(ROOT, rules.PLAIN_TEXTS)
    assert {"docs/glossary.md", "docs/man/ublkd.8.in", "scripts/first-light", "tests/lint/docs_test.py"} < set(texts)


def test_every_list_of_rules_names_files_that_exist():
    paths = rules.tracked_c_files(ROOT)
    for pattern in rules.PURE + rules.UAPI_USERS + rules.LOGGERS + [pattern for pattern, _ in rules.QUOTED]:
        assert any(rules.fits(path, [pattern]) for path in paths), f"{pattern} fits no file"
    for room in circles.LAYERED_ROOMS:
        assert any(path.startswith(f"{room}/") for path in paths), f"{room} has no file"
