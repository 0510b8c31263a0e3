/* SPDX-License-Identifier: MIT */
/* Names of the driver's feature bits. The numbers are the kernel's ABI; a test of ublk_ctl, which sees the
 * UAPI, holds the two together. */
#include "ublkd/kernel/kernel_feature.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {
        [0] = "SUPPORT_ZERO_COPY",
        [1] = "URING_CMD_COMP_IN_TASK",
        [2] = "NEED_GET_DATA",
        [3] = "USER_RECOVERY",
        [4] = "USER_RECOVERY_REISSUE",
        [5] = "UNPRIVILEGED_DEV",
        [6] = "CMD_IOCTL_ENCODE",
        [7] = "USER_COPY",
        [8] = "ZONED",
        [9] = "USER_RECOVERY_FAIL_IO",
        [10] = "UPDATE_SIZE",
        [11] = "AUTO_BUF_REG",
        [12] = "QUIESCE",
        [13] = "PER_IO_DAEMON",
        [14] = "BUF_REG_OFF_DAEMON",
        [15] = "BATCH_IO",
        [16] = "INTEGRITY",
        [17] = "SAFE_STOP_DEV",
        [18] = "NO_AUTO_PART_SCAN",
        [19] = "SHMEM_ZC",
        [20] = "IO_DESC_SIZE",
};

static bool has_bit(uint64_t flags, const char *name)
{
        for (size_t bit = 0; bit < ARRAY_SIZE(names); bit++)
                if (strcmp(names[bit], name) == 0)
                        return flags >> bit & 1;
        return false;
}

bool kernel_has_feature(uint64_t flags, enum kernel_feature feature)
{
        static const char *const needed[_KERNEL_FEATURE_MAX] = {
                [KERNEL_FEATURE_GROW] = "UPDATE_SIZE",
                [KERNEL_FEATURE_TRY_STOP] = "SAFE_STOP_DEV",
        };

        return has_bit(flags, needed[feature]);
}

/* The driver of 7.3, which is the first with IO_DESC_SIZE, marks a command as cancelable before others can see it. */
bool kernel_quiesces(uint64_t flags, uint64_t features)
{
        return has_bit(flags, "QUIESCE") && has_bit(features, "IO_DESC_SIZE");
}

bool kernel_cancels_late(uint64_t features)
{
        return !has_bit(features, "QUIESCE");
}

bool kernel_learns_by_timeout(uint64_t features)
{
        return !has_bit(features, "QUIESCE");
}

const char *kernel_feature_name(unsigned bit)
{
        return bit < ARRAY_SIZE(names) ? names[bit] : NULL;
}

/* A newer driver may have bits without a name here: those are shown by number. */
static cJSON *feature_to_json(unsigned bit)
{
        const char *name = kernel_feature_name(bit);
        char number[16];

        if (name)
                return cJSON_CreateStringReference(name);
        snprintf(number, sizeof(number), "BIT_%u", bit);
        return cJSON_CreateString(number);
}

cJSON *kernel_features_to_json(uint64_t flags)
{
        cJSON *array = cJSON_CreateArray();

        for (unsigned bit = 0; array && bit < 64; bit++) {
                cJSON *item;

                if (!(flags >> bit & 1))
                        continue;
                item = feature_to_json(bit);
                if (!item || !cJSON_AddItemToArray(array, item)) {
                        cJSON_Delete(item);
                        cJSON_Delete(array);
                        return NULL;
                }
        }
        return array;
}
