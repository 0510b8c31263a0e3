/* SPDX-License-Identifier: MIT */
/* The backing stores of a device, as device_backing.c keeps them. */
#pragma once

#include "ublkd/proto/worker_msg.h"
#include "ublkd/reconcile/parts/kept_store_part.h"

/* Written by device_backing.c, kept_store.c and store_refusal.c alone. backing_wish.c reads it, and so does device_path.c, which
 * judges the same store; device_claim.c reads `is_list`, and device_publish.c `changed`. Zeroed it is empty. */
struct device_backing {
        /* One for each store of the disk, in the order of the tree, or, while there is no disk, of the spec: with a list as many as
         * there are in it, else one, also of a target without a store. */
        struct kept_store *stores; /* &single, or an array of its own */
        unsigned count;
        bool is_list;
        struct kept_store single;
        uint16_t epoch; /* of the disk on the stores; valid if one is held */
        bool changed;   /* another store, or one that can do less, was refused; the device waits until the
                         right one is back, or the administrator consents */
        bool frozen_known;
        struct disk_params frozen; /* of the disk, without claims */
};
