# SPDX-License-Identifier: MIT
"""Functions of the product are short; and a long one would be found."""

from pathlib import Path

import function_length
import pytest
import rules
from function_length import BODY_MAX, functions, functions_are_short, needless_exceptions

ROOT = Path(__file__).resolve().parents[2]
PATH = "ublkd/plan/plan.c"
SHORT = "static int first(void)\n{\n        return 0;\n}\n\n"


def function(head, lines):
    return f"{head}\n{{\n" + "        x++;\n" * lines + "}\n"


def test_functions_are_short():
    assert rules.check_tree(ROOT, [functions_are_short]) == []


def test_all_functions_are_seen():
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in rules.tracked_c_files(ROOT) if rules.is_product(path)}
    seen = [(path, name) for path, text in texts.items() for _, name, _ in functions(text)]
    assert len(seen) > 5000 and all(name for _, name in seen)
    assert {("ublkd/manager.c", "manager_new"), ("ublkd/plan/plan.c", "plan"), ("targets/worker/main.c", "main")} < set(seen)
    assert needless_exceptions(texts) == []


@pytest.mark.parametrize(
    "head",
    [
        "int planted(void)",
        "static struct s *planted(\n        const struct s *one, int two)",
        "/* Like other(). */\nint planted(int (*each)(void), int x)",
    ],
)
def test_a_long_function_is_found(head):
    faults = rules.check_text(PATH, SHORT + function(head, BODY_MAX + 1), [functions_are_short])
    line = (SHORT + head).count("\n") + 2
    assert len(faults) == 1 and faults[0].startswith(f"{PATH}:{line}: planted() has {BODY_MAX + 1} lines")


def test_a_long_function_before_short_ones_is_found():
    text = function("int planted(void)", BODY_MAX + 1) + "\n" + SHORT
    assert len(rules.check_text(PATH, text, [functions_are_short])) == 1


def test_what_is_not_too_long(monkeypatch):
    table = "static const int table[] = {\n" + "        1,\n" * 100 + "};\n\n"
    text = table + function("int planted(void)", BODY_MAX)
    assert not rules.check_text(PATH, text, [functions_are_short])
    long = table + function("int planted(void)", BODY_MAX + 1)
    assert not rules.check_text("tests/unit/plan_test.c", long, [functions_are_short])
    monkeypatch.setitem(function_length.LONGER, (PATH, "planted"), "for this test")
    assert not rules.check_text(PATH, long, [functions_are_short])
    assert rules.check_text("ublkd/plan/claims.c", long, [functions_are_short])
    assert (PATH, "planted") in needless_exceptions({PATH: text}) and (PATH, "planted") not in needless_exceptions({PATH: long})
