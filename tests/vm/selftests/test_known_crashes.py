# SPDX-License-Identifier: MIT
"""Which panics of a guest are not the fault of what is tested."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "kernel"))
from harness.kernel_watch import known_crash  # pylint: disable=wrong-import-position,import-error

_BREAKPOINT = """\
[   78.638742] Oops: int3: 0000 [#1] SMP NOPTI
[   78.642866] CPU: 1 UID: 0 PID: 333 Comm: ublkd Not tainted 7.2.12+deb13-cloud-amd64 #1 PREEMPT(lazy)
[   78.650896] RIP: 0010:kmem_cache_alloc_noprof+0x155/0x420
[   78.651164] Code: e8 ba 01 00 00 00 c1 e8 08 0f 85 49 01 00 00 {before} <90> f7 c5 00 00 40 00 0f 85
[   78.660036] Kernel panic - not syncing: Fatal exception in interrupt
"""
_FREED = """\
[    9.1] Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1]
[    9.1] RIP: 0010:io_fallback_tw+0x10/0x20
[    9.2] Kernel panic - not syncing: Fatal exception
"""
_CANCELLED = """\
[   40.6] BUG: kernel NULL pointer dereference, address: 000000000000001c
[   40.6] CPU: 0 UID: 0 PID: 275 Comm: kworker/0:2 Not tainted 6.12.95+deb12-cloud-amd64 #1  Debian 6.12.95-1~bpo12+1
[   40.6] Hardware name: QEMU Standard PC (Q35 + ICH9, 2009), BIOS 1.16.3-debian-1.16.3-2~bpo12+1 04/01/2014
[   40.6] Workqueue: events ublk_quiesce_work_fn [ublk_drv]
[   40.6] RIP: 0010:io_uring_cmd_done+0x23/0x210
[   40.6] Kernel panic - not syncing: Fatal exception
"""


@pytest.mark.parametrize("series", ["6.12", "7.2"])
def test_a_panic_by_a_breakpoint_that_was_removed_is_known(series):
    assert known_crash(series, _BREAKPOINT.format(before="66"))


def test_a_panic_by_a_breakpoint_that_is_there_is_a_fault():
    assert known_crash("7.2", _BREAKPOINT.format(before="cc")) is None


def test_a_panic_of_one_kernel_is_not_forgiven_in_another():
    assert known_crash("6.12", _FREED)
    assert known_crash("7.2", _FREED) is None


def test_a_panic_of_the_work_that_quiesces_is_known():
    assert known_crash("6.12", _CANCELLED)
    assert known_crash("6.12", _CANCELLED.replace("ublk_quiesce_work_fn", "another_work")) is None
