/* SPDX-License-Identifier: MIT */
/* Which flags of the driver a disk is asked for with, and which it can have. */
#include "ublkd/driver/ublk_ctl.h"

#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/kernel/ublk_uapi.h"

uint64_t ublk_ctl_flags(enum kernel_recovery recovery)
{
        static const uint64_t flags[_KERNEL_RECOVERY_MAX] = {
                [KERNEL_RECOVERY_NONE] = 0,
                [KERNEL_RECOVERY_QUEUE] = UBLK_F_USER_RECOVERY,
                [KERNEL_RECOVERY_REISSUE] = UBLK_F_USER_RECOVERY | UBLK_F_USER_RECOVERY_REISSUE,
                [KERNEL_RECOVERY_FAIL] = UBLK_F_USER_RECOVERY | UBLK_F_USER_RECOVERY_FAIL_IO,
        };

        return flags[recovery] | UBLK_F_CMD_IOCTL_ENCODE;
}

/* ublk_ctrl_add_dev() refuses QUIESCE without USER_RECOVERY. In batches it is not asked for: QUIESCE_DEV of a
 * busy disk then returns 0 again and again and no FETCH comes back as aborted, and after the worker was killed
 * for it, requests that were not reported to any server wait for ever (seen on 7.2.12). Nor is it asked for where it
 * may not be sent (kernel_quiesces()). */
uint64_t ublk_ctl_extra_flags(enum kernel_recovery recovery, bool batch, uint64_t features)
{
        bool quiesce =
                recovery != KERNEL_RECOVERY_NONE && !batch && kernel_quiesces(UBLK_F_QUIESCE, features);
        uint64_t extra = UBLK_F_UPDATE_SIZE | (quiesce ? UBLK_F_QUIESCE : 0);

        return extra & features;
}

uint64_t ublk_ctl_unprivileged_flag(void)
{
        return UBLK_F_UNPRIVILEGED_DEV;
}

/* ublk_ctrl_add_dev() refuses these (EINVAL), or drops them. */
uint64_t ublk_ctl_unprivileged_features(uint64_t features)
{
        return features
               & ~(UBLK_F_USER_COPY | UBLK_F_SUPPORT_ZERO_COPY | UBLK_F_AUTO_BUF_REG | UBLK_F_USER_RECOVERY
                       | UBLK_F_USER_RECOVERY_REISSUE | UBLK_F_USER_RECOVERY_FAIL_IO | UBLK_F_QUIESCE);
}

const char *ublk_ctl_missing(uint64_t wanted, uint64_t got)
{
        uint64_t missing = wanted & ~got;
        const char *name = missing ? kernel_feature_name((unsigned)__builtin_ctzll(missing)) : NULL;

        return missing && !name ? "unknown" : name;
}
