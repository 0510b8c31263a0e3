/* SPDX-License-Identifier: MIT */
/* The claims of disks that a lost database had. */
#pragma once

#include <stddef.h>

/* Private to device_claim_lost.c. Zeroed it is empty. */
struct lost_claims {
        char **uids; /* owned */
        size_t count;
};
