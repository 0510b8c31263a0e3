# SPDX-License-Identifier: MIT
"""Other builds of ublkd that are measured beside that of --build, in the same guest: the option, and their programs."""

import argparse
import re
import sys

from builds import THIS  # of bench/guest


def _named_build(text):
    name, _, build = text.partition("=")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) or not build:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=BUILD with a NAME of letters, digits, '.', '_' and '-'")
    if name == THIS:
        raise argparse.ArgumentTypeError(f"{THIS!r} is the name of the build of --build")
    return name, build


class _Add(argparse.Action):
    def __call__(self, parser, namespace, value, option_string=None):
        builds = dict(getattr(namespace, self.dest))
        if value[0] in builds:
            parser.error(f"{option_string}: there are two builds with the name {value[0]}")
        setattr(namespace, self.dest, builds | dict([value]))


def add_option(parser):
    """Add --beside, which becomes {name: build}."""
    parser.add_argument("--beside", action=_Add, type=_named_build, default={}, metavar="NAME=BUILD",
        help=f"measure another build of ublkd in the same guest, in turn with that of --build, which is named {THIS}; "
        "may be repeated; ratios are to the first one")


def names(options):
    """Return the names of all builds, that of --build first; none if there is only that one."""
    return [THIS, *options.beside] if options.beside else []


def needed(workers):
    """Return the programs that each build must have to measure these workers."""
    return ("ublkd", *workers)


def programs(workspace, options, required):
    """Return ({name: {"ublkd": program}}, versions) of the other builds; one that was not built ends the benchmark."""
    found, versions = {}, []
    for name, build in options.beside.items():
        own, missing, version = workspace.own_programs(build, required, workspace.folder(f"beside-{name}"))
        if missing:
            sys.exit(f"--beside {name}={build}: {missing['ublkd']}")
        found[name] = own
        versions += [f"{name}: {text}" for text in version]
    return found, versions
