# SPDX-License-Identifier: MIT
"""Words of a dialect that strangers stumble over: not in C files, the texts of PLAIN_TEXTS (rules.py), and subjects of
commits (scripts/check-subject, which runs this file).

usage: dialect.py TEXT     print the first such word of TEXT, if there is one, and exit with 1 then
"""

import re
import sys

DIALECT = re.compile(
    r"\b(?:anew|hears?|heard|hearing|believe[sd]?|whoever|nobody|mourn\w*|lets? go of|(?<!fuse )(?<!fuse batch )forg[eo]t\w*|mend(?:s|ed)?|without memory|trials?|told|said|(?:some|any|every)body|someone"
    # not the method of the test server, and not an option of sfdisk
    r"|(?<![.-])tells?\b(?!\()"
    r"|(?<!there )(?:is|are) no (?!longer|more\b))",
    re.IGNORECASE,
)


if __name__ == "__main__":
    FOUND = DIALECT.search(sys.argv[1].replace("_", " "))
    if FOUND:
        print(FOUND.group().strip())
        sys.exit(1)
