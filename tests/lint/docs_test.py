# SPDX-License-Identifier: MIT
"""What the documents say of the tree is so: links and anchors, paths, tests, C and schemas that they quote, verbs and options of
ublkctl. And no line of prose is longer than 120 columns, or speaks the dialect of rules.py; and no sentence is too long."""

import functools
import json
import os
import pathlib
import re
import subprocess

import pytest
import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["UBLKD_BUILD"])
COLUMNS = 120
WORDS = 48  # in a sentence, or in a part of one that a semicolon ends
# Figures of the past: they name what there was then.
HISTORY = {"bench/RESULTS.md", "CHANGELOG.md"}
FENCE = re.compile(r"^( *)(```+)(\w*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)


def git(*arguments):
    run = subprocess.run(["git", "-c", f"safe.directory={ROOT}", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.splitlines() if run.returncode == 0 else None


@functools.cache
def files():
    """All that belongs to the tree, as paths from the root."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard")
    if names is None:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")]
    return sorted(name for name in set(names) if (ROOT / name).is_file() and not name.startswith("build"))


PAGES = [name for name in files() if name.endswith(".md")]
CURRENT = [name for name in PAGES if name not in HISTORY]


@functools.cache
def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def without_code(text):
    return re.sub(r"(`+)(?!`).*?\1", "", FENCE.sub("", text), flags=re.DOTALL)


def slug(heading):
    """The anchor that code hosts make of a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@functools.cache
def anchors(name):
    text = FENCE.sub("", read(name))
    found = set(re.findall(r'<a (?:name|id)="([^"]+)"', text))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        base, number = slug(heading), 0
        while (anchor := f"{base}-{number}" if number else base) in found:
            number += 1
        found.add(anchor)
    return found


def fault_of_link(page, target):
    """Why a link leads nowhere, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    path, _, anchor = target.partition("#")
    place = (ROOT / page).parent / path if path else ROOT / page
    place = pathlib.Path(os.path.normpath(place))
    if not place.exists() or (place.is_file() and str(place.relative_to(ROOT)) not in files()):
        return "is not there"
    if anchor and place.suffix == ".md" and anchor not in anchors(str(place.relative_to(ROOT))):
        return f"has no heading #{anchor}"
    return None


def code_in(text):
    """What stands in code: fenced, indented, or within a line."""
    for match in FENCE.finditer(text):
        yield match.group(4)
    rest = FENCE.sub("", text)
    yield from re.findall(r"(?<=\n\n)((?: {4}[^\n]+\n)+)", rest)
    yield from re.findall(r"`([^`\n]+)`", rest)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = without_code(read(page))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^]]+\]: +(\S+)", text, re.MULTILINE)
    assert [(target, fault) for target in targets if (fault := fault_of_link(page, target))] == []


@pytest.mark.parametrize("page", CURRENT)
def test_no_line_of_prose_is_too_long(page):
    long = [line for line in FENCE.sub("", read(page)).splitlines()
            if len(line) > COLUMNS and not line.startswith(("|", "    ")) and " " in line[COLUMNS // 2:COLUMNS]]
    assert long == []


def paragraphs(text):
    """Those of prose, and of lists item by item: without code, headings and tables."""
    plain = re.sub(r"<!--.*?-->", "", FENCE.sub("", text), flags=re.DOTALL)
    lines = []
    for line in [*plain.splitlines(), ""]:
        item = re.match(r" *(?:[-*]|[0-9]+\.) +", line)
        if item or not line.strip() or line.startswith(("|", "#", "    ")):
            yield " ".join(lines)
            lines = []
        if line.strip() and not line.startswith(("|", "#", "    ")):
            lines.append(line[item.end():] if item else line.strip())


def sentences(text):
    """A link counts as its text, and what stands in code as one word: a full stop in it ends no sentence."""
    for paragraph in paragraphs(text):
        plain = re.sub(r"`[^`]*`", "CODE", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph))
        yield from re.split(r"(?<=[.!?;])[*)\]_\"]*\s+", plain)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "bench/RESULTS.md"])
def test_no_sentence_is_too_long(page):
    assert [sentence for sentence in sentences(read(page)) if len(re.findall(r"\S*\w\S*", sentence)) > WORDS] == []


def test_a_long_sentence_is_found():
    words = " ".join(["word"] * WORDS)
    text = f"# A heading {words}\n\n{words}.\n{words};\nand `{words}. {words}`.\n\n- {words}\n- {words}\n\n| {words} | {words} |\n"
    assert [len(sentence.split()) <= WORDS for sentence in sentences(text)].count(False) == 0
    assert [sentence for sentence in sentences(f"{words}\nmore. Short.") if len(sentence.split()) > WORDS] != []


@pytest.mark.parametrize("page", CURRENT)
def test_pages_speak_plainly(page):
    prose = without_code(read(page))
    assert [match.group() for match in rules.DIALECT.finditer(prose)] == []


def expand(text):
    """a.{c,h} → a.c, a.h"""
    match = re.search(r"\{([^}]*)\}", text)
    return [text] if not match else [text[:match.start()] + part + text[match.end():] for part in match.group(1).split(",")]


@pytest.mark.parametrize("page", CURRENT)
def test_paths_are_there(page):
    tops = {name.split("/")[0] for name in files() if "/" in name}
    missing = []
    for word in re.findall(r"`([\w.][\w./*{},-]*/[\w./*{},-]*)`", FENCE.sub("", read(page))):
        if word.split("/")[0] in tops and not word.startswith("build/"):
            missing += [path for path in expand(word) if not any(ROOT.glob(path.rstrip("/"))) and "NAME" not in path
                        and not any(ROOT.glob(path + ".[ch]"))]
    assert missing == []


@pytest.mark.parametrize("page", CURRENT)
def test_tests_are_there(page):
    there = "\n".join(read(name) for name in files() if name.startswith("tests/") and name.endswith((".py", ".c")))
    named = re.findall(r"`(test_\w+|\w+_test)(?:\[[^]`]*\])?`", read(page))
    assert [name for name in named if not re.search(rf"\b{name}\b", there) and not list(ROOT.glob(f"tests/**/{name}.*"))] == []


def test_quoted_c_is_in_the_tree():
    """But for functions that are only an example."""
    there = "".join(read(name) for name in files() if name.startswith(("targets/", "tests/kernel/keeping/")))
    quoted = [match.group(4) for match in FENCE.finditer(read("docs/writing-a-target.md")) if match.group(3) == "c"]
    assert quoted and [text for text in quoted if "example_" not in text and text not in there] == []


def agrees(quoted, real):
    """Whether `quoted` is of `real`: it may leave out "$schema" and "$id", and the end of a text for "..."."""
    if isinstance(quoted, dict) and isinstance(real, dict):
        left_out = real.keys() - quoted.keys() - {"$schema", "$id"}
        return not left_out and all(key in real and agrees(value, real[key]) for key, value in quoted.items())
    if isinstance(quoted, str) and isinstance(real, str) and quoted.endswith("..."):
        return real.startswith(quoted.removesuffix("..."))
    return quoted == real


def test_quoted_schemas_are_in_the_tree():
    there = [json.loads(read(name)) for name in files() if name.startswith("schemas/targets/") and name.endswith(".json")]
    quoted = [match.group(4) for match in FENCE.finditer(read("docs/writing-a-target.md")) if match.group(3) == "json"]
    assert quoted and [text for text in quoted if not any(agrees(json.loads(text), real) for real in there)] == []


@functools.cache
def help_of(*words):
    run = subprocess.run([str(BUILD / "ublkctl"), *words, "--help"], capture_output=True, text=True, check=True)
    return run.stdout


def verbs():
    return {line.split()[0] for line in help_of().split("Verbs:\n")[1].split("\n\n")[0].splitlines()}


@pytest.mark.parametrize("page", CURRENT)
def test_ublkctl_knows_what_is_typed(page):
    unknown = []
    for code in code_in(read(page)):
        for verb, rest in re.findall(r"(?:^|[\s(;/])ublkctl ([a-z]+)\b([^\n|;#)`]*)", code):
            if verb not in verbs():
                unknown.append(f"ublkctl {verb}")
                continue
            options = re.findall(r"(?<![\w-])(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])", rest)
            unknown += [f"ublkctl {verb} {option}" for option in options
                        if not re.search(rf"(?<![\w-]){option}(?![\w-])", help_of(verb))]
    assert unknown == []


def folders_of_the_product():
    """Those with C files that a row of QUOTED is for."""
    paths = [name for name in files() if name.endswith(".c") and any(rules.fits(name, [row]) for row, _ in rules.QUOTED)]
    return sorted({os.path.dirname(path) for path in paths})


@pytest.mark.parametrize("folder", folders_of_the_product())
def test_a_room_is_in_the_readme_above_it(folder):
    if "/" not in folder:
        assert f"{folder}/README.md" in files()
        return
    above = next(str(place) for place in pathlib.PurePath(folder).parents if f"{place}/README.md" in files())
    assert f"\n| `{folder.removeprefix(above + '/')}/` |" in read(f"{above}/README.md")


def test_every_page_of_docs_is_in_its_index():
    index = read("docs/README.md")
    pages = [name for name in PAGES if re.fullmatch(r"docs/[^/]+\.md", name) and name != "docs/README.md"]
    assert [name for name in pages if f"({name.removeprefix('docs/')})" not in index] == []


# What an administrator looks for on the first day, and found nowhere: the page, and what it must have.
FIRST_DAY = {
    "why not the kernel's loop": ("README.md", r"^## Why not loop"),
    "build": ("README.md", r"\]\(docs/building\.md\)"),
    "build by hand": ("docs/building.md", r"^ {4}cmake -B build .*\n {4}cmake --build build\n {4}sudo cmake --install build$"),
    "what the build needs": ("docs/building.md", r"`scripts/install-deps build`"),
    "licence": ("README.md", r"\]\(LICENSE\)"),
    "packages": ("README.md", r"^ {4}scripts/package deb "),
    "remove by hand": ("docs/building.md", r"^ {4}.*rm -f -- < build/install_manifest\.txt$"),
    "a line of fstab": ("docs/device-files.md", r"^ +/dev/ublk/by-name/\S+ +\S+ +ext4 +nofail,x-systemd\.requires=ublk-disk@"),
    "rescue mode": ("docs/man/ublkd.service.8.in", r"systemctl isolate rescue\.target"),
    "backup": ("docs/backup.md", r"^cp -p /var/lib/ublkd/ublkd\.db "),
    "a lost database": ("docs/troubleshooting.md", r"ublkctl adopt --all"),
    "the service stops, and the socket": ("docs/man/ublkd.service.8.in", r"systemctl disable --now ublkd\.socket ublkd\.service"),
    "alerts": ("docs/monitoring.md", r"examples/monitoring"),
    "a group that reads": ("README.md", r"group `ublk`"),
    "a group that administers": ("docs/security.md", r"^## A group of administrators"),
}


@pytest.mark.parametrize("question", FIRST_DAY)
def test_what_is_looked_for_on_the_first_day_is_there(question):
    page, pattern = FIRST_DAY[question]
    assert re.search(pattern, read(page), re.MULTILINE), (page, pattern)


def test_the_readme_lists_every_man_page():
    pages = [name.removeprefix("docs/man/").removesuffix(".in") for name in files() if re.fullmatch(r"docs/man/.*\.[0-9]\.in", name)]
    assert [page for page in pages if f"`{page[:-2]}({page[-1]})`" not in read("README.md")] == []
