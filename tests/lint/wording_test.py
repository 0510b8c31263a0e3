# SPDX-License-Identifier: MIT
"""Tests of what a client sees assert reasons and values. Only the tests below assert words of a sentence: the words are
their subject. A message may always be searched for a value: a path, a pid, the name of a device."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("tests/api", "tests/ctl", "tests/kernel", "tests/packages")

# Test: why its words matter.
ABOUT_WORDS = {
    "tests/kernel/test_identity.py": "a sentence about a lost store must not advise to create one: that loses the data",
    "tests/kernel/test_live_change.py": "a worker that was killed must not be said to have exited by itself",
    "tests/kernel/test_one_writer.py": "the warning names the cause for which sharing is unknown, and has no field for it",
    "tests/kernel/test_walls.py": "the message names the wall that is missing, and has no field for it",
}


def is_message(node):
    """`message` and `x["message"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "message"
    return isinstance(node, ast.Name) and node.id == "message"


def has_words(node):
    """Whether a literal has a word in lower case beside paths and quoted names."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return re.search(r"(?<![\w/])[a-z]{3,}(?![\w/])", re.sub(r'"[^"]*"', "", node.value)) is not None


def assertions_of_words(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and any(map(is_message, node.comparators)) and has_words(node.left):
            yield node.lineno, node.left.value
        elif isinstance(node, ast.Compare) and is_message(node.left):
            yield from ((node.lineno, side.value) for side in node.comparators if has_words(side))


def tests():
    return sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*test*.py"))


@pytest.mark.parametrize("name", tests())
def test_reasons_are_asserted_and_not_sentences(name):
    found = list(assertions_of_words((ROOT / name).read_text(encoding="utf-8")))
    if name in ABOUT_WORDS:
        assert found != [], "asserts no words any more: leave it out of ABOUT_WORDS"
    else:
        assert found == []


@pytest.mark.parametrize("text, found", [
    ('assert "stays until" in condition["message"]', True),
    ('assert event["message"] == "The worker died."', True),
    ('assert "create" not in message', True),
    ('assert path in condition["message"]', False),
    ('assert f"process {pid} (" in message', False),
    ("assert '\"high\"' in message", False),
    ('assert "SIGKILL" in condition["message"]', False),
    ('assert condition["reason"] == "StoreFull"', False),
])
def test_words_are_found(text, found):
    assert bool(list(assertions_of_words(text))) == found
