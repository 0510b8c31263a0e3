# SPDX-License-Identifier: MIT
"""What a schema says, and what it must not say: its file, its values as numbers, and its keywords, taken one by one."""

import json
import re

ANNOTATIONS = {"title", "description", "examples", "$comment"}
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
DURATION_UNITS = {"us": 1, "ms": 1000, "s": 1000000, "m": 60000000, "min": 60000000, "h": 3600000000}
EXACT_INTEGER_MAX = 1 << 53  # JSON numbers are doubles in the daemon


class SchemaError(Exception):
    """The schema asks for something that the tables cannot do."""


def unique_keys(pairs):
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise SchemaError(f'"{key}" is there twice')
    return dict(pairs)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)


def snake_case(name):
    return re.sub(r"[-.]", "_", re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name)).lower()


def c_string(text):
    """A C literal; non-ASCII as octal, which unlike \\x cannot swallow what follows."""
    if text is None:
        return "NULL"
    escapes = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("?"): "\\?"}
    out = []
    for byte in text.encode():
        out.append(escapes.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"))
    return '"' + "".join(out) + '"'


def c_integer(value):
    return f"INT64_C({value})"


def or_list(words):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def human_bytes(value):
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if value and value % UNITS[unit] == 0:
            return f"{value // UNITS[unit]}{unit}"
    return str(value)


def bytes_value(value):
    if isinstance(value, str):
        match = re.fullmatch(r"(0|[1-9][0-9]*)([KMGT](iB)?)?", value)
        return int(match[1]) * UNITS[f"{match[2][0]}iB" if match[2] else ""]
    return value


def duration_value(value):
    if value == "0":
        return 0
    match = re.fullmatch(r"([0-9]+)(us|ms|s|m|min|h)", value)
    return int(match[1]) * DURATION_UNITS[match[2]]


def check_pattern(pattern, where):
    """Only what ECMA-262 and POSIX extended expressions read alike, also byte by byte in the C locale."""
    outside = re.sub(r"\[[^]]*\]", "[]", pattern)
    if not pattern.startswith("^"):
        raise SchemaError(f"{where}: the pattern is not anchored: begin it with ^")
    if not pattern.isascii() or "\\" in pattern or "[^" in pattern or "[:" in pattern or "[]" in pattern:
        raise SchemaError(f"{where}: in the pattern, \\, [^, [: or non-ASCII would not mean the same everywhere")
    if "." in outside or re.search(r"\(\?|[*+?}][?+]", outside):
        raise SchemaError(f"{where}: in the pattern, a dot or an extension would not mean the same everywhere")
    if "$" in outside[:-1]:
        raise SchemaError(f"{where}: $ may only end the pattern")
    re.compile(pattern)


class Keywords:
    """The keywords of one schema; each is taken once, and what is left at the end is not implemented."""

    def __init__(self, schema, where):
        self.left = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        self.where = where

    def take(self, keyword, fallback=None):
        return self.left.pop(keyword, fallback)

    def need(self, keyword, why):
        if keyword not in self.left:
            raise SchemaError(f'{self.where}: "{keyword}" is missing: {why}')
        return self.left.pop(keyword)

    def done(self):
        if self.left:
            raise SchemaError(f"{self.where}: not implemented here: {', '.join(sorted(self.left))}")
