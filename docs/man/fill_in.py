#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Make a man page from its template:
    @DATE@      when the template was changed last, from the option --date
    @VERBS@     what the file of --verbs has: "ublkctl manual" printed it
    @FIELDS@    the fields of the schemas in --schemas
    @POLICY_FIELDS@
                the fields of a policy, from the same
    @SETTINGS_SYNOPSIS@, @SETTINGS_OPTIONS@, @SETTINGS_KEYS@
                the settings of the file of --settings
    @ABOUT_TARGET@, @TARGET_FIELDS@
                what the schema of --target says of it, and its fields
    @PROGRAM@   where ublkd is installed, from the option --program
    @WORKER@    where the worker is installed, from the option --worker
"""

import argparse
import pathlib
import sys

import device_fields
import settings_lists


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("template", type=pathlib.Path)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--date", required=True)
    parser.add_argument("--verbs", type=pathlib.Path)
    parser.add_argument("--schemas", type=pathlib.Path)
    parser.add_argument("--settings", type=pathlib.Path)
    parser.add_argument("--target", type=pathlib.Path)
    parser.add_argument("--program")
    parser.add_argument("--worker")
    arguments = parser.parse_args()
    page = arguments.template.read_text(encoding="utf-8").replace("@DATE@", arguments.date)
    if "@VERBS@" in page:
        page = page.replace("@VERBS@", arguments.verbs.read_text(encoding="utf-8").rstrip("\n"))
    if "@FIELDS@" in page:
        page = page.replace("@FIELDS@", device_fields.sections(arguments.schemas))
    if "@POLICY_FIELDS@" in page:
        page = page.replace("@POLICY_FIELDS@", device_fields.of_policy(arguments.schemas))
    if "@SETTINGS_" in page:
        page = settings_lists.replace(page, arguments.settings, arguments.worker)
    if "@TARGET_FIELDS@" in page:
        page = page.replace("@ABOUT_TARGET@", device_fields.about_target(arguments.target))
        page = page.replace("@TARGET_FIELDS@", device_fields.of_target(arguments.target))
    if "@PROGRAM@" in page:
        page = page.replace("@PROGRAM@", arguments.program)
    if "@WORKER@" in page:
        page = page.replace("@WORKER@", arguments.worker)
    arguments.page.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
