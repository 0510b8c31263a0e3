/* SPDX-License-Identifier: MIT */
/* unprivileged_disks: which numbers are such disks, and what they were when the driver shows nothing of them. */
#include "ublkd/driver/unprivileged_disks.h"

#include "tests/unit/check.h"

static void note(struct unprivileged_disks *disks, int number, bool unprivileged, uint64_t cookie)
{
        CHECK_INT(unprivileged_disks_note(
                          disks, &(const struct kernel_device){.number = number,
                                         .state = KERNEL_STATE_LIVE,
                                         .cookie = cookie,
                                         .server_pid = 7,
                                         .flags = unprivileged ? ublk_ctl_unprivileged_flag() : 0}),
                0);
}

int main(void)
{
        struct unprivileged_disks *disks = unprivileged_disks_new();
        struct kernel_device dead;

        for (int number = 0; number < 100; number++)
                note(disks, number, number % 2 == 0, 1000 + (uint64_t)number);
        for (int number = 0; number < 101; number++)
                CHECK_INT(unprivileged_disks_have(disks, number), number % 2 == 0 && number < 100);
        dead = unprivileged_disks_deleted(disks, 42);
        CHECK(dead.number == 42 && dead.cookie == 1042 && dead.state == KERNEL_STATE_DEAD
                && dead.server_pid == -1);
        dead = unprivileged_disks_deleted(disks, 43);
        CHECK(dead.number == 43 && dead.cookie == 0 && dead.flags == ublk_ctl_unprivileged_flag());
        note(disks, 42, false, 1); /* another disk has the number now */
        CHECK(!unprivileged_disks_have(disks, 42) && unprivileged_disks_have(disks, 98));
        note(disks, 44, true, 2);
        CHECK_INT(unprivileged_disks_deleted(disks, 44).cookie, 2);
        unprivileged_disks_free(disks);
        return check_report();
}
