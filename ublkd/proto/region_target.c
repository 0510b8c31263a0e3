/* SPDX-License-Identifier: MIT */
/* What the supervisor reads and writes of struct region_target. */
#include "ublkd/proto/region_target.h"

#include <errno.h>
#include <string.h>

#define AT(field) (offsetof(struct region_control, target) + offsetof(struct region_target, field))

static int write_options(int fd, const struct region_target *target)
{
        int r = device_region_write_control(fd, AT(size), &target->size, sizeof(target->size));

        return r < 0 ? r : device_region_write_control(fd, AT(options), target->options, target->size);
}

int region_target_set_options(int fd, const void *options, size_t size)
{
        struct region_target target;
        int r = device_region_read_control(
                fd, offsetof(struct region_control, target), &target, sizeof(target));

        if (r < 0)
                return r;
        if (size > sizeof(target.options))
                return -E2BIG;
        if (target.sequence > 0 && target.sequence % 2 == 0 && target.size == size
                && memcmp(target.options, options, size) == 0)
                return 0;
        target.sequence |= 1; /* odd already where a supervisor died at it */
        r = device_region_write_control(fd, AT(sequence), &target.sequence, sizeof(target.sequence));
        target.size = (uint32_t)size;
        memcpy(target.options, options, size);
        if (r >= 0)
                r = write_options(fd, &target);
        target.sequence++;
        if (target.sequence == 0) /* 0 is "none" */
                target.sequence = 2;
        if (r >= 0)
                r = device_region_write_control(fd, AT(sequence), &target.sequence, sizeof(target.sequence));
        return r < 0 ? r : 1;
}

int region_target_read_counts(int fd, uint64_t ret[static REGION_TARGET_COUNTS])
{
        return device_region_read_control(fd, AT(counts), ret, REGION_TARGET_COUNTS * sizeof(*ret));
}
