# SPDX-License-Identifier: MIT
"""Which lines of a kernel's log are complaints."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import kernel_log  # pylint: disable=wrong-import-position

COMPLAINTS = [
    "[    1.0] WARNING: CPU: 1 PID: 9 at drivers/block/ublk_drv.c:12 ublk_x+0x1/0x2 [ublk_drv]",
    "[    1.0] WARNING: drivers/block/ublk_drv.c:12 at ublk_x+0x1/0x2, CPU#1: fio/9",
    "[    1.0] WARNING: possible circular locking dependency detected",
    "[    1.0] BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "[    1.0] BUG: KASAN: slab-use-after-free in x",
    "[    1.0] BUG: KFENCE: use-after-free read in x",
    "[    1.0] BUG: unable to handle page fault for address: ffff",
    "[    1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 70s! [fio:9]",
    "[    1.0] kernel BUG at mm/slub.c:1!",
    "[    1.0] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI",
    "[    1.0] Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#1]",
    "[    1.0] INFO: task fio:12 blocked for more than 120 seconds.",
    "[    1.0] INFO: task fio:12 blocked in I/O wait for more than 120 seconds.",
    "[    1.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "[    1.0] rcu: INFO: rcu_sched self-detected stall on CPU",
    "[    1.0] refcount_t: underflow; use-after-free.",
    "[    1.0] list_del corruption. prev->next should be x",
    "[    1.0] UBSAN: array-index-out-of-bounds in x.c:1:2",
    "[    1.0] Kernel panic - not syncing: sysrq triggered crash",
]
HARMLESS = [
    '[    1.0] PCI: Using host bridge windows from ACPI; if necessary, use "pci=nocrs" and report a bug',
    "[    1.0] \tRCU CPU stall warnings timeout set to 60 (rcu_cpu_stall_timeout).",
    "[    1.0] ublk: block device is not ready",
    "[    1.0] I/O error, dev ublkb0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    "[    1.0] debug: BUGS: none",
]


@pytest.mark.parametrize("line", COMPLAINTS)
def test_complaint_is_found(line):
    assert kernel_log.complaints(f"[    0.5] before\n{line}\n[    1.5] after\n") == [line]


@pytest.mark.parametrize("line", HARMLESS)
def test_harmless_line_is_left_alone(line):
    assert not kernel_log.complaints(line)


def test_allowed_line_is_not_a_complaint_and_others_still_are():
    text = "\n".join(COMPLAINTS[:4])
    assert kernel_log.complaints(text, [r"ublk_drv\.c:12"]) == COMPLAINTS[2:4]


def test_a_panic_is_shown_with_its_trace():
    early = ["[    0.5] WARNING: CPU: 0 PID: 1 at other.c:1"] + [f"[    1.{number:03}] calm" for number in range(100)]
    trace = [
        "[    2.0] Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1]",
        "[    2.0] RIP: 0010:some_function+0x10/0x20", "[    2.0] Call Trace:",
        "[    2.1] Kernel panic - not syncing: Fatal exception",
    ]
    assert kernel_log.panic_trace("\n".join([*early, *trace, "[    2.2] after"])) == trace
    assert kernel_log.panic_trace("\n".join(early)) == []
    assert len(kernel_log.panic_trace("\n".join([*trace[:1], *early[1:], *trace]), most=4)) == 4
