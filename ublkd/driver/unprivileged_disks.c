/* SPDX-License-Identifier: MIT */
/* The disks in the driver's unprivileged mode, in a list: the driver allows 64 of them by default. */
#include "ublkd/driver/unprivileged_disks.h"

#include "ublkd/base/cleanup.h"

#include <stdlib.h>

struct unprivileged_disks {
        struct kernel_device *seen; /* in any order */
        size_t count;
};

struct unprivileged_disks *unprivileged_disks_new(void)
{
        return calloc(1, sizeof(struct unprivileged_disks));
}

struct unprivileged_disks *unprivileged_disks_free(struct unprivileged_disks *disks)
{
        if (disks)
                free(disks->seen);
        free(disks);
        return NULL;
}

static struct kernel_device *find(const struct unprivileged_disks *disks, int number)
{
        for (size_t i = 0; i < disks->count; i++)
                if (disks->seen[i].number == number)
                        return &disks->seen[i];
        return NULL;
}

int unprivileged_disks_note(struct unprivileged_disks *disks, const struct kernel_device *device)
{
        struct kernel_device *known = find(disks, device->number), *more;
        bool is_one = device->flags & ublk_ctl_unprivileged_flag();

        if (known && is_one) {
                *known = *device;
        } else if (known) {
                *known = disks->seen[--disks->count];
        } else if (is_one) {
                more = realloc(disks->seen, (disks->count + 1) * sizeof(*more));
                if (!more)
                        return -ENOMEM;
                disks->seen = more;
                disks->seen[disks->count++] = *device;
        }
        return 0;
}

bool unprivileged_disks_have(const struct unprivileged_disks *disks, int number)
{
        return find(disks, number) != NULL;
}

struct kernel_device unprivileged_disks_deleted(const struct unprivileged_disks *disks, int number)
{
        const struct kernel_device *known = find(disks, number);
        struct kernel_device dead =
                known ? *known : (struct kernel_device){.flags = ublk_ctl_unprivileged_flag()};

        dead.number = number;
        dead.state = KERNEL_STATE_DEAD;
        dead.server_pid = -1;
        return dead;
}
