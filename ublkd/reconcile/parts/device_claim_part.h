/* SPDX-License-Identifier: MIT */
/* The claim of a disk on its backing store, and the claims of all devices. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/plan/claims.h"

#include <sys/queue.h>

struct managed_device;

/* Private to device_claim.c. Zeros: no claim. */
struct device_claim {
        struct backing_claims claims; /* of the disk, with or without a worker */
        struct held_claims *held;     /* the same in the reconciler's index */
        bool is_written;              /* they are in the file, also that there are none */
        LIST_ENTRY(managed_device) of_unclaimed;
        bool is_unclaimed;                    /* in that list */
        struct problem_list sharing_reported; /* other users of the store, in events */
};

/* Of all devices. Private to device_claim.c. */
struct claim_table {
        struct claim_index index;
        /* Every device whose worker writes while its claims are not written down yet; also other devices. */
        LIST_HEAD(, managed_device) unclaimed;
};
