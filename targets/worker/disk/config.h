/* SPDX-License-Identifier: MIT */
/* What the worker reads out of a CONFIG message: the few fields of a spec that are its business. */
#pragma once

#include "targets/target.h"
#include "targets/target_tree.h"
#include "targets/worker/disk/disk_geometry.h"
#include "targets/worker/disk/stack.h"
#include "ublkd/proto/region_kept.h"
#include "ublkd/proto/worker_msg.h"

#include <sched.h>

struct worker_config {
        char *name, *uid;
        uint16_t epoch;
        uint32_t restart;
        uint64_t started_at;
        enum worker_lock lock;
        struct disk_wish wish;
        struct target_tree *tree;
        struct stack_config *stack;  /* of a tree of several targets; NULL: there is one */
        const struct target *target; /* that one, or that of the stack */
        void *options;               /* of the target, parsed; the tree's, or the stack */
        cpu_set_t cpus;
        bool cpus_given;
        bool exists; /* the kernel has the disk already */
        /* The store that the disk is on, for struct target_store. */
        struct backing_identity expected; /* empty: none yet */
        bool expected_in_this_boot, shared;
        bool expected_served; /* the disk was served from it */
        uint32_t store_user;  /* as in struct target_store */
        /* Of a CONFIG that lists them: each store of the tree, in its order, with the descriptor that was given; after open() what was
         * found. The stack has them. NULL: the disk has one store at most, that above. */
        struct target_store *stores;
        unsigned store_count;
        struct target_live live;     /* as in struct target_device */
        struct region_kept_map kept; /* from worker_config_map_region(); zeroes: none */
};

/* Parse a message of type CONFIG. *ret is overwritten; clear it also on failure. Return 0; -EINVAL
 * with problems; -ENOMEM. */
int worker_config_parse(
        const struct worker_msg *msg, struct worker_config *ret, struct problem_list *problems);
/* Take over the descriptors of listed stores, which are set to -1. Nothing without a list. Return 0; -EINVAL with problems:
 * there are more or fewer than the list says; -ENOMEM. */
int worker_config_take_stores(
        struct worker_config *config, int fds[static STORE_LIST_MAX], struct problem_list *problems);
/* Map the region that is open as fd, and in it the kept memory that the targets declare. *ret: as in device_region_map().
 * The memory is this worker's then: region_kept_take(). Return 0; or -errno with problems, or -ENOMEM. */
int worker_config_map_region(struct worker_config *config, int fd, void **ret, struct problem_list *problems);
void worker_config_clear(struct worker_config *config);
