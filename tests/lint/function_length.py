# SPDX-License-Identifier: MIT
"""How long a function of the product may be. The format puts the braces of a function, and of nothing else, alone at the
margin."""

import re
from functools import cache

from rules import is_product, line_of, without_comments

BODY_MAX = 40  # lines between the braces

# Functions that may be longer, and why.
LONGER = {
    ("ublkd/policy/policy.c", "policy_add_no_rule"): "a sentence for each cause, in the order in which the causes are ruled out",
    ("targets/worker/queue/queue_threads.c", "serve"): "a list of settings, and then the phases of a thread in their order",
}

BODY = re.compile(r"^\{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)


@cache
def functions(text):
    """(line, name, lines of the body) of each function that a file defines."""
    code, end, found = without_comments(text), 0, []
    for match in BODY.finditer(code):
        head = code[end : match.start()]
        names = re.findall(r"\b(\w+)\s*\(", head[head.rfind("\n\n") + 1 :])
        found.append((line_of(code, match.start()), names[0] if names else "", match.group(1).count("\n")))
        end = match.end()
    return found


def functions_are_short(path, text):
    if not is_product(path):
        return
    for line, name, lines in functions(text):
        if lines > BODY_MAX and (path, name) not in LONGER:
            yield line, f"{name}() has {lines} lines; past {BODY_MAX}, divide it into functions with one purpose each"


def needless_exceptions(texts):
    """Of all files, as {path: text}: the exceptions that no function needs."""
    long = {(path, name) for path, text in texts.items() for _, name, lines in functions(text) if lines > BODY_MAX}
    return sorted(set(LONGER) - long)
