#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write settings_table.c: the settings of settings.json as a table (setting.h), and the text of `ublkd --help`.

docs/man makes the lists of ublkd.conf(5) and ublkd(8) of the same file."""

import argparse
import json
import pathlib
import sys
import textwrap

COLUMN, WIDTH = 23, 100
FIELDS = {"$comment", "key", "option", "argument", "parse", "list", "preset", "default", "help", "wanted", "text", "reloads", "refuses"}
REQUIRED = {"key", "option", "argument", "parse", "help", "wanted", "text"}


def default_of(row, worker):
    """What counts when nothing is given, in words; None: nothing does."""
    text = row.get("preset", row.get("default"))
    return text and text.replace("@WORKER@", worker)


def literal(text):
    """A C string on one line; NULL for None."""
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def item(row, worker):
    """An option and its help, as lines."""
    default = default_of(row, worker)
    text = row["help"] + (f" (default: {default})" if default else "")
    head = f"  --{row['option']} {row['argument']}".rstrip()
    lines = textwrap.wrap(text, WIDTH - COLUMN, break_on_hyphens=False, break_long_words=False)
    lines = [" " * COLUMN + line for line in lines]
    if len(head) + 2 > COLUMN:
        return [head, *lines]
    return [head + lines[0][len(head):], *lines[1:]]


def usage(document, worker):
    lines = ["Usage: ublkd [OPTION]...", "Manage user-space block devices (ublk) over a REST API.", "",
             "Options have priority over the files of ublkd.conf(5).", ""]
    for row in document["settings"] + document["options"]:
        lines += item(row, worker)
    return "\n".join([*lines, "  -h, --help, --version", ""])


def check(rows):
    for row in rows:
        if not REQUIRED <= set(row) <= FIELDS or ("preset" in row and "default" in row):
            sys.exit(f"settings.json: {row.get('key')} lacks a field, or has one that is unknown")
    for field in ("key", "option"):
        if len({row[field] for row in rows}) != len(rows):
            sys.exit(f"settings.json: two settings have the same {field}")


def table(document, worker):
    rows = []
    for row in document["settings"]:
        rows += [
            "        {",
            f"         .key = {literal(row['key'])},",
            f"         .option = {literal(row['option'])},",
            f"         .preset = {literal(row.get('preset'))},",
            f"         .otherwise = {literal(None if 'preset' in row else default_of(row, worker))},",
            f"         .wanted = {literal(row['wanted'])},",
            f"         .list_max = {row.get('list', 0)},",
            f"         .reloads = {'true' if row.get('reloads') else 'false'},",
            f"         .refuses = {'true' if row.get('refuses') else 'false'},",
            f"         .parse = setting_parse_{row['parse']},",
            "         },",
        ]
    return "\n".join(["/* Generated from settings.json by generate.py. */", '#include "ublkd/config/setting.h"', "",
                      "const struct setting settings[] = {", *rows, "};",
                      f"const size_t settings_count = {len(document['settings'])};",
                      "const char settings_usage[] =",
                      *(f"        {literal(line)}" for line in usage(document, worker).splitlines(keepends=True)), "        ;", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--worker", required=True, help="where the worker is installed")
    arguments = parser.parse_args()
    document = json.loads(arguments.settings.read_text(encoding="utf-8"))
    check(document["settings"])
    arguments.output.write_text(table(document, arguments.worker), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
