# SPDX-License-Identifier: MIT
"""Stores whose kernel names change places between two boots. Each holds a block of its own letter."""

import world
from harness.disk import block
from harness.mapper import Mapped

STORES = ("a", "b", "c", "d")
SWAPPED = ("b", "a", "d", "c")  # so /dev/dm-2, which is c, becomes d


def write(top):
    """The files, in the first boot."""
    for letter in STORES:
        with open(top / f"{letter}.img", "wb") as file:
            file.truncate(8 << 20)
            file.write(block(letter))


def appear(top, order):
    """All stores, as disks, in this order; by their letter."""
    return {letter: Mapped(f"names-{letter}", top / f"{letter}.img") for letter in order}


def mount():
    """The directory that both boots have."""
    return world.mount("names")
