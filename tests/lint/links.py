# SPDX-License-Identifier: MIT
"""Which library links which, by the text of the CMakeLists.txt files, held against the rooms."""

import re

import rules

_COMMENT = re.compile(r"#[^\n]*")
_CALL = re.compile(r"\b(add_library|target_sources|target_link_libraries)\s*\(\s*([\w-]+)([^()]*)\)")
# What follows INTERFACE is for programs that link the library: it provides what a header of the contract declares.
_FOR_OTHERS = re.compile(r"\bINTERFACE\b.*?(?=\bPUBLIC\b|\bPRIVATE\b|$)", re.DOTALL)
# A header above the room declares what it does.
_DECLARED_ABOVE = {"ublkctl_verbs_change": "ublkctl/verbs.h", "ublkctl_verbs_show": "ublkctl/verbs.h"}


def texts_of(root):
    """The text of each CMakeLists.txt of the product, by its path."""
    paths = rules.tracked_files(root, ["*CMakeLists.txt"])
    return {path: (root / path).read_text(encoding="utf-8") for path in paths if rules.is_product(path)}


def _folder(path):
    return path.rpartition("/")[0]


def _calls(texts):
    """(folder, function, library, arguments) of each call."""
    for path, text in texts.items():
        for function, name, arguments in _CALL.findall(_COMMENT.sub("", text)):
            yield _folder(path), function, name, _FOR_OTHERS.sub("", arguments).split()


def libraries(texts):
    """The C files of each library."""
    found = {}
    for folder, function, name, arguments in _calls(texts):
        if function != "target_link_libraries":
            found.setdefault(name, set()).update(f"{folder}/{word}" for word in arguments if re.fullmatch(r"[\w./]+\.c", word))
    return {name: sources for name, sources in found.items() if sources}


def _seen_by(sources):
    """The patterns of what the files may include."""
    rows = [next((row for pattern, row in rules.QUOTED if rules.fits(path, [pattern])), []) for path in sources]
    return [pattern for row in rows for pattern in row if pattern != "!"] + [f"{_folder(path)}/*" for path in sources]


def links_beyond_the_rows(texts, c_files):
    """A library may link what some file of its room may include."""
    sources = libraries(texts)
    for _, function, name, arguments in _calls(texts):
        if function != "target_link_libraries" or name not in sources:
            continue
        own, seen = {_folder(path) for path in sources[name]}, _seen_by(sources[name])
        for other in arguments:
            folders = {_folder(path) for path in sources.get(other, ())}
            declared = [path for path in c_files if path.endswith(".h") and _folder(path) in folders]
            declared += [_DECLARED_ABOVE[other]] if other in _DECLARED_ABOVE else []
            if declared and not folders & own and not any(rules.fits(header, seen) for header in declared):
                yield f"{name} links {other}, of which no row of tests/lint/rooms.py lets it include a header"
