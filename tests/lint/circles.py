# SPDX-License-Identifier: MIT
"""Which file depends on which: inside a room, and from folder to folder. No file depends on one that depends on it."""

import re
from pathlib import Path

from rules import folder_of, includes, is_product, line_of, tracked_c_files, without_comments

# Rooms where X.c defines what X.h declares, and a caller includes X.h. A room joins when it has been put in order.
LAYERED_ROOMS = [
    "ublkd/cgroups",
    "ublkd/config",
    "ublkd/disks",
    "ublkd/nodes",
    "ublkd/offload",
    "ublkd/partitions",
    "ublkd/paths",
    "ublkd/plan",
    "ublkd/policy",
    "ublkd/reconcile",
    "ublkd/records",
    "api/held",
    "ublkctl/spec",
    "targets/worker/os",
]


def declared_objects(text):
    """Names of the objects that a header declares."""
    declarations = re.findall(r"^extern ([^;{(]*);", without_comments(text), re.MULTILINE)
    return [re.search(r"(\w+)\W*$", re.sub(r"\[[^]]*\]", "", name)).group(1) for all_of in declarations for name in all_of.split(",")]


def declared_functions(text):
    """Names of the functions that a header declares, without those that it defines itself."""
    code = without_comments(text)
    before = None
    while code != before:
        before, code = code, re.sub(r"\{[^{}]*\}", "", code)
    declaration = re.compile(r"^(?!typedef|static|extern)[a-z][\w \n*]*?[ *](\w+)\(", re.MULTILINE)
    return declaration.findall(code)


def defines(text, name):
    return re.search(rf"^[a-z][\w \n*]*?[ *]{name}\([^;{{}}]*\{{", without_comments(text), re.MULTILINE) is not None


def defined_functions(text):
    """Names of the functions that a source defines at its margin, without static ones."""
    definition = re.compile(r"^(?!typedef|static)[a-z][\w \n*]*?[ *](\w+)\([^;{}]*\{", re.MULTILINE)
    return set(definition.findall(without_comments(text)))


def defined_objects(text):
    """Names of the objects that a source defines at its margin, without static ones."""
    definition = re.compile(r"^(?!typedef\b|static\b|extern\b|enum \{|struct \w+ \{)[a-z][\w \n*]*?[ *](\w+)(?:\[[^]]*\])* *[=;]", re.MULTILINE)
    return set(definition.findall(without_comments(text)))


def cycle_of(calls):
    """The first cycle in {unit: units that it calls}, or None."""
    done = set()

    def visit(unit, path):
        if unit in path:
            return path[path.index(unit) :] + [unit]
        if unit in done:
            return None
        for callee in sorted(calls.get(unit, ())):
            found = visit(callee, path + [unit])
            if found:
                return found
        done.add(unit)
        return None

    return next((found for unit in sorted(calls) if (found := visit(unit, []))), None)


def room_is_layered(files):
    """Of a room, as {path: text}: a function that X.h declares is defined in X.c; who calls it includes X.h; and no file
    is called by one that it calls."""
    home = {}
    for path, text in files.items():
        if path.endswith(".h"):
            home.update({name: path.removesuffix(".h") for name in declared_functions(text)})
    calls = {}
    for path, text in files.items():
        if not path.endswith(".c"):
            continue
        unit = path.removesuffix(".c")
        included = {name for _, name, quoted in includes(text) if quoted}
        called = {}
        for match in re.finditer(r"\w+", without_comments(text)):
            if home.get(match.group(), unit) != unit:
                called.setdefault(home[match.group()], (match.group(), line_of(text, match.start())))
        for callee, (name, line) in called.items():
            if f"{callee}.h" not in included:
                yield f'{path}:{line}: uses {name}() and does not include "{callee}.h"'
        calls[unit] = set(called)
    for name, unit in home.items():
        if not defines(files.get(f"{unit}.c", ""), name):
            yield f"{unit}.h:1: declares {name}(), which {unit}.c does not define"
    cycle = cycle_of(calls)
    if cycle:
        yield f"{cycle[0]}.c:1: is called by a file that it calls: {' → '.join(cycle)}"


# Rooms where a file may call one that calls it, and why.
CIRCLES = {"ublkctl": "the table of verbs has a verb that prints the table"}


def words_of(text):
    """The words of a source, without the tags of structs, which may be those of functions, too."""
    return re.findall(r"\w+", re.sub(r"\b(?:enum|struct|union)\s+\w+", "", without_comments(text)))


def room_has_no_circle(files):
    """Of any room, as {path: text}: no file is called by one that it calls, or has an object that this one names. The home of
    a function or an object that a header of the room declares is the file that defines it."""
    headers = [text for path, text in files.items() if path.endswith(".h")]
    declared = {name for text in headers for name in [*declared_functions(text), *declared_objects(text)]}
    sources = {path.removesuffix(".c"): text for path, text in files.items() if path.endswith(".c")}
    home = {name: unit for unit, text in sources.items() for name in (defined_functions(text) | defined_objects(text)) & declared}
    calls = {unit: {home[word] for word in words_of(text) if word in home} - {unit} for unit, text in sources.items()}
    cycle = cycle_of(calls)
    if cycle:
        yield f"{cycle[0]}.c:1: is called by a file that it calls: {' → '.join(cycle)}"


def folders_have_no_circle(files):
    """Of all files, as {path: text}: no folder includes a header of one that includes its own."""
    edges, cause = {}, {}
    for path, text in files.items():
        folder = folder_of(path)
        for line, name, quoted in includes(text):
            if quoted and "/" in name and folder_of(name) != folder:
                edges.setdefault(folder, set()).add(folder_of(name))
                cause.setdefault((folder, folder_of(name)), f'{path}:{line}: includes "{name}"')
    cycle = cycle_of(edges)
    if cycle:
        yield f"{cause[cycle[-2], cycle[-1]]}: a circle of folders: {' → '.join(cycle)}"


def headers_have_no_circle(files):
    """Of all files, as {path: text}: no header includes one that includes it; #pragma once would hide that."""
    edges = {
        path: {name for _, name, quoted in includes(text) if quoted} for path, text in files.items() if path.endswith(".h")
    }
    cycle = cycle_of(edges)
    if cycle:
        yield f"{cycle[0]}:1: a circle of headers: {' → '.join(cycle)}"


def check_rooms(root):
    texts = {path: (Path(root) / path).read_text(encoding="utf-8") for path in tracked_c_files(root) if is_product(path)}
    faults = []
    for room in LAYERED_ROOMS:
        faults += room_is_layered({path: text for path, text in texts.items() if path.startswith(f"{room}/")})
    for room in {folder_of(path) for path in texts} - set(CIRCLES):
        faults += room_has_no_circle({path: text for path, text in texts.items() if folder_of(path) == room})
    return sorted(faults) + list(folders_have_no_circle(texts)) + list(headers_have_no_circle(texts))
