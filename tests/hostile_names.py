# SPDX-License-Identifier: MIT
"""Names that a shell, systemd, udev, a log or a terminal would take for something else than a name. No device has one."""

HOSTILE_NAMES = (
    "$(id)", "${IFS}", "`id`", "a;id", "a|id", "a&id", "a>b", "a'b", 'a"b', "a\\b",  # a shell
    "*", "a?", "[a]", "~", "!a", "#a", "-x", "--help", "a=b", "a,b",
    "%i", "a%n", "%", "a\\x2fb", "a@b", "a@b.service", "a:b", "$name", "$env{A}",  # a unit, a rule of udev
    "a\nb", "data\n", "\na", "a\rb", "a\tb", "a\x1b[2J", "a\x7fb", "a\u0085b", "a\u202eb", "\u0430",  # a log, a terminal
)
