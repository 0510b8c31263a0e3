# SPDX-License-Identifier: MIT
"""The settings of ublkd, from ublkd/config/settings.json, in mdoc: as keys of ublkd.conf(5), and as options of ublkd(8)."""

import json

from device_fields import text


def escaped(words):
    return words.replace("-", "\\-")


def default_of(row, worker):
    default = row.get("preset", row.get("default"))
    return default and default.replace("@WORKER@", worker)


def sentence(row, worker):
    default = default_of(row, worker)
    return [text(f"The default is {default}.")] if default else []


def facts(row):
    """What is true of a key beside its meaning."""
    words = []
    if row.get("list"):
        words.append(f"May be repeated, for {row['list']} values at most.")
    if row.get("reloads"):
        words.append("A new value takes effect when ublkd reloads.")
    if row.get("refuses"):
        words.append("ublkd does not start with an invalid value.")
    return [text(" ".join(words))] if words else []


def keys(document, worker):
    lines = [".Bl -tag -width Ds"]
    for row in document["settings"]:
        lines += [f".It Cm {row['key']} Ns = Ns Ar {escaped(row['argument'])}", text(row["text"]), *facts(row),
                  *sentence(row, worker), f"Option: {text('`--' + row['option'] + '`')}."]
    return "\n".join([*lines, ".El"])


def options(document, worker):
    lines = [".Bl -tag -width Ds"]
    for row in document["settings"] + document["options"]:
        argument = f" Ar {escaped(row['argument'])}" if row["argument"] else ""
        help_text = row["help"][0].upper() + row["help"][1:]
        lines += [f".It Fl \\-{escaped(row['option'])}{argument}", text(f"{help_text}."), *sentence(row, worker)]
        if "key" in row:
            lines.append(f"In files: {text('`' + row['key'] + '=`')}.")
    return "\n".join([*lines, ".It Fl h , \\-help , \\-version", "Show the options or the version, and exit.", ".El"])


def synopsis(document):
    lines = []
    for row in document["settings"] + document["options"]:
        argument = f" Ar {escaped(row['argument'])}" if row["argument"] else ""
        lines.append(f".Op Fl \\-{escaped(row['option'])}{argument}")
    return "\n".join(lines)


def replace(page, path, worker):
    """Put the lists where the page wants them."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return (page.replace("@SETTINGS_SYNOPSIS@", synopsis(document)).replace("@SETTINGS_OPTIONS@", options(document, worker))
            .replace("@SETTINGS_KEYS@", keys(document, worker)))
