# SPDX-License-Identifier: MIT
"""Tests of what a client sees assert reasons and values. Only the tests below assert words of a sentence: the words are
their subject. A message may always be searched for a value: a path, a pid, the name of a device, a command in quotes. In C
the rule is about messages and details of a status, an event or a problem; a function whose result is a text has tests of
that text. What ublkctl and the volume plug-in print are words of their own, which their tests may assert, and sentences of
ublkd, which they pass on and their tests do not assert."""

import ast
import functools
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("tests/api", "tests/ctl", "tests/kernel", "tests/packages")

# Tests of programs that pass sentences of ublkd on.
PASSING_FOLDERS = ("tests/cdi", "tests/ctl", "tests/package_boots", "tests/volumes")
PASSED_WORDS = 4

# Test: why its words matter.
ABOUT_WORDS = {
    "tests/api/daemon_polkit_test.py": "a reader must be refused for the change, and not as a stranger: both are forbidden",
    "tests/api/schema_differential_test.py": "each fault of a spec must end with what to do about it",
    "tests/kernel/test_identity.py": "a sentence about a lost store must not advise to create one: that loses the data",
    "tests/kernel/test_live_change.py": "a worker that was killed must not be reported to have exited by itself",
    "tests/kernel/test_one_writer.py": "the warning names the cause for which sharing is unknown, and has no field for it",
    "tests/kernel/test_walls.py": "the message names the wall that is missing, and has no field for it",
    "tests/target/worker_process_test.c": "advice to restore a store that was cut off must name a copy of its bytes",
    "tests/unit/ublkd/reconcile/reconciler_words_test.c": "a sentence must not be shown for a request that it was not made for",
    "tests/unit/ublkd/reconcile/worker/reconciler_worker_test.c": "requests of a dead worker show in the sentence of Recovering alone",
    "tests/unit/ublkd/reconcile/view/fault_condition_test.c": "what saves the bytes must come before what gives them up",
}
TEXTS = ("message", "detail")
# What is a value in a sentence: a command, a name in quotes, a process or a program in brackets.
VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|ublkctl [a-z -]+|(?:\bprocess )?[0-9]+ \([^)]*\)?|\([^)]*\)")
C_FOLDERS = ("tests/unit", "tests/target", "tests/simulation")
# A search in a message: the text that is searched, and the literal.
C_SEARCH = re.compile(
    r'\bstrstr\(\s*([^;]*?\b(?:message|detail|cause)),\s*"((?:\\.|[^"\\])*)"|\bworld_wait_value\(([^;"]*"[^"]*"),\s*"((?:\\.|[^"\\])*)"'
)


def is_message(node):
    """`message`, `x["message"]`, the same in small letters or cut, and `detail` likewise."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("lower", "split", "splitlines"):
        return is_message(node.func.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in TEXTS or is_message(node.value)
    return isinstance(node, ast.Name) and node.id in TEXTS


def text_of(node):
    """A literal, or None; "0" stands for each value of an f-string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join("0" if isinstance(part, ast.FormattedValue) else part.value for part in node.values)
    return None


def has_words(node):
    """Whether a literal has a word in lower case beside its values: paths, options, commands, names, processes."""
    text = text_of(node)
    return text is not None and re.search(r"(?<![\w/.-])[a-z]{3,}(?!\w|[/.-]\w)", VALUES.sub("", text)) is not None


def assertions_of_words(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(is_message, sides)):
                yield from ((node.lineno, text_of(side)) for side in sides if has_words(side))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_message(node.func.value):
            if node.func.attr in ("startswith", "endswith", "count", "find", "index"):
                yield from ((node.lineno, text_of(word)) for word in node.args if has_words(word))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and any(map(is_message, node.args)):
            if getattr(node.func.value, "id", None) == "re":
                yield from ((node.lineno, text_of(pattern)) for pattern in node.args if has_words(pattern))


def c_assertions_of_words(text):
    for match in C_SEARCH.finditer(text):
        literal = match.group(2) if match.group(2) is not None else match.group(4)
        plain = re.sub(r"ublkctl [a-z -]+|'[^']*'|\\\"[^\"]*\\\"|\([^)]*\)", "", literal)  # without commands, names, programs
        if len(re.findall(r"(?<![\w/-])[a-z]{2,}(?![\w/-])", plain)) > 1:
            yield text.count("\n", 0, match.start()) + 1, literal


C_LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')
CONVERSION = re.compile(r"%[-+ 0-9.*]*[hlzjt]*[a-zA-Z]")


@functools.cache
def texts_of(*folders):
    """What the sources below these folders can print, in pieces without values, one on each line."""
    pieces = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.[ch]")):
        code = re.sub(r"/\*.*?\*/|^[ \t]*#include[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for match in C_LITERALS.finditer(code):
            text = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group())).replace('\\"', '"')
            pieces.update(CONVERSION.split(text))
    return "\n".join(pieces)


@functools.cache
def texts_of_ublkd():
    titles = re.findall(r'"title": "([^"]*)"', (ROOT / "schemas/openapi/problems.json").read_text(encoding="utf-8"))
    return texts_of("api", "targets", "ublkd") + "\n" + "\n".join(titles)


def constants_of(node):
    """The literals in a side of a comparison, and those between the values of an f-string."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [text for item in node.elts for text in constants_of(item)]
    if isinstance(node, ast.JoinedStr):
        return [text for part in node.values for text in constants_of(part)]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def is_sentence_of_ublkd(text):
    words = re.findall(r"(?<![\w/.-])[A-Za-z]{2,}(?![\w/]|[.-]\w)", text)
    return len(words) >= PASSED_WORDS and text in texts_of_ublkd() and text not in texts_of("ublkctl", "volumes")


def passed_sentences(text):
    for node in ast.walk(ast.parse(text)):
        sides = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith", "count", "find", "index", "search", "match", "fullmatch"):
                sides = node.args
        for literal in (literal.strip() for side in sides for literal in constants_of(side)):
            # "NAME: SENTENCE", as ublkctl prints it
            if is_sentence_of_ublkd(literal) or is_sentence_of_ublkd(re.sub(r"^(?:[\w.-]*: )+", "", literal)):
                yield node.lineno, literal


def sources():
    python = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*test*.py")]
    c = [path for folder in C_FOLDERS for path in (ROOT / folder).rglob("*.c")]
    return sorted(str(path.relative_to(ROOT)) for path in python + c)


@pytest.mark.parametrize("name", sources())
def test_reasons_are_asserted_and_not_sentences(name):
    search = c_assertions_of_words if name.endswith(".c") else assertions_of_words
    found = list(search((ROOT / name).read_text(encoding="utf-8")))
    if name in ABOUT_WORDS:
        assert found != [], "asserts no words any more: leave it out of ABOUT_WORDS"
    else:
        assert found == []


@pytest.mark.parametrize("text, found", [
    ('assert "stays until" in condition["message"]', True),
    ('assert event["message"] == "The worker died."', True),
    ('assert "create" not in message', True),
    ('assert "not gone yet" in check_problem(answer, 504, "timeout")["detail"]', True),
    ('assert "in use" not in problem["detail"].lower()', True),
    ('assert f"mounted at {mount}" in detail', True),
    ('assert problem["detail"].startswith("The statistics")', True),
    ('assert re.search("; leave it out", error["detail"])', True),
    ('assert problem["errors"][0]["detail"] == "It has gone."', True),
    ('assert path in condition["message"]', False),
    ('assert f"process {pid} (" in message', False),
    ('assert "4211 (fio)" in problem["detail"]', False),
    ('assert "ublkctl adopt data" in detail and "--name" in detail and "one.json" in detail', False),
    ('assert detail.startswith(f"{path}:3: ")', False),
    (r'assert re.search(rf"\b4096\b.*\b{place}\b", event["message"])', False),
    ("assert '\"high\"' in message", False),
    ('assert "SIGKILL" in condition["message"]', False),
    ('assert condition["reason"] == "StoreFull"', False),
])
def test_words_are_found(text, found):
    assert bool(list(assertions_of_words(text))) == found


@pytest.mark.parametrize("name", sorted(
    str(path.relative_to(ROOT)) for folder in PASSING_FOLDERS for path in (ROOT / folder).rglob("*test*.py")))
def test_sentences_that_are_passed_on_are_not_asserted(name):
    assert list(passed_sentences((ROOT / name).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("text, found", [
    ('assert "only this disk has its data" in run.err', True),
    ('assert "nope: No device has this name" in run.err', True),
    ('assert run.err == f"ublkctl: {name}: No device has this name."', True),
    ('assert text.count("may not change devices") == 2', True),
    ('assert run.out == "data is Live"', False),
    ('assert "--drop-last-copy" in run.err', False),
    ('server.tell("status data Pending HostNotReady No device has this name")', False),
])
def test_passed_sentences_are_found(text, found):
    assert bool(list(passed_sentences(text))) == found


@pytest.mark.parametrize("text, found", [
    ('CHECK(strstr(status.message, "is in use"));', True),
    ('CHECK(!strstr(\n        world_record(&world, "data")->status.message, "was cut off"));', True),
    ('world_wait_value(&world, "data", "still in flight");', True),
    ('CHECK(strstr(problems.items[0].detail, path));', False),
    ('CHECK(strstr(status.message, "/dev/ublkb3"));', False),
    ("CHECK(strstr(status.message, \"'ublkctl recover data'\"));", False),
    ('world_wait_value(&world, "other", "\\"data\\"");', False),
    ('world_wait_value(&world, "data", "process 4211 (fio)");', False),
    ('CHECK_INT(status.reason, REASON_IN_USE);', False),
])
def test_words_are_found_in_c(text, found):
    assert bool(list(c_assertions_of_words(text))) == found
