/* SPDX-License-Identifier: MIT */
/* Whether the disk of a device has its I/O timeout. */
#pragma once

#include <stdbool.h>

/* While it is set the kernel lets no request begin before all others have ended: so the limits, which hold requests back, are
 * not in force in TIMEOUT_AWAITED and TIMEOUT_ASKED. */
enum timeout_state {
        TIMEOUT_LEFT, /* not looked at: the driver does without, it failed, or an earlier ublkd has seen to it */
        TIMEOUT_AWAITED, /* it will be set when the disk is live */
        TIMEOUT_ASKED,   /* it is being set */
        TIMEOUT_SET      /* this disk has it */
};

/* All may read it; device_timeout.c changes it. */
struct device_timeout {
        enum timeout_state state;
};

/* Return whether it is about to be set, or being set. */
static inline bool timeout_is_coming(const struct device_timeout *timeout)
{
        return timeout->state == TIMEOUT_AWAITED || timeout->state == TIMEOUT_ASKED;
}
