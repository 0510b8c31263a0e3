# SPDX-License-Identifier: MIT
"""The end of one boot of several: a power cut under load. The next one begins with test_after_cut.py.

The cut ends the guest, and the page cache of the host stays: a flush that ublkd lost would not be seen here. What a lost
flush does to a disk is in test_fault.py, with volatile caches."""

import ledger
import machine
from harness.wait import wait_until

_WRITES = 20  # of each writer in each boot


def test_the_power_goes_under_load():
    """The writers go on when this test has ended, until the host ends the machine."""
    before = {point: ledger.start_writer(point) for point in machine.MOUNTED}
    for point, number in before.items():
        wait_until(lambda point=point, number=number: ledger.acknowledged(point) >= number + _WRITES, "numbers in the ledger")
