/* SPDX-License-Identifier: MIT */
/* One backing store of a device, as kept_store.c keeps it. */
#pragma once

#include "ublkd/reconcile/parts/device_keys.h"

/* Zeroed it is empty. It does not move in memory once it is known. */
struct kept_store {
        struct store_key key; /* of `at` */
        bool held;            /* `fd` is valid */
        bool known;           /* `at` is the disk's store, also without a descriptor */
        bool shares; /* another device of this ublkd has the claim of the block device, or another target of this one */
        int fd;                 /* of the store; by the file system, its own open file description */
        struct worker_store at; /* its fd is not used */
        int claim; /* with !at.claimed: the exclusive open that another device has passed on; else -1 */
        bool has_claim;
        struct backing_identity
                refused; /* identity of the store that the last worker found instead; empty: none */
};
