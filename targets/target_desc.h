/* SPDX-License-Identifier: MIT */
/* What both programs know of a target: plain data, and the rules that its schema cannot say. */
#pragma once

#include "ublkd/values/dispatch.h"

enum target_flag {
        TARGET_NEVER_WAITS = 1 << 0,  /* callbacks never suspend: called straight from the queue's loop */
        TARGET_ONE_QUEUE = 1 << 1,    /* cannot serve several hardware queues */
        TARGET_NATIVE_FUA = 1 << 2,   /* write() honours IO_FUA itself; else the core writes and flushes */
        TARGET_REISSUE_SAFE = 1 << 3, /* a repeated write is harmless */
        TARGET_REGISTERED_BUFFERS = 1 << 4, /* never looks at the bytes: they may stay in the kernel */
        TARGET_STORE_OF_USER = 1 << 5,      /* open() heeds target_store.user: a tenant may give a path */
};

/* What a worker of the target keeps of that which every other worker gives up (targets/worker/walls.h). */
enum target_need {
        TARGET_NEEDS_NETWORK =
                1 << 0, /* to connect by TCP, from the network of ublkd, also while it serves */
};

struct target_desc {
        const char *name;    /* the "type" in a spec */
        const char *summary; /* one line, for GET /targets */
        unsigned flags;      /* enum target_flag */
        unsigned needs;      /* enum target_need */
        bool size_required;  /* the target has no size of its own */
        const struct option_table *options;
        /* Kept memory (struct target_kept of targets/target.h): bytes for the disk and for each queue, within the bounds of
         * ublkd/proto/region_kept.h; both 0: none. The version is another whenever the target stores something else
         * there, or the same in another form; with each change of it, or of a size, the memory begins as zeroes. */
        uint64_t kept_disk_bytes, kept_queue_bytes;
        uint32_t kept_version;
        /* Names of options that a disk can follow, because only ublkd reads them; NULL-terminated, or NULL: none. */
        const char *const *live_options;
        /* Check options that are each valid, and size (0: not given), against each other. Return 0, also if problems were
         * added, or -ENOMEM. NULL: there is nothing to check. */
        int (*check)(const void *options, uint64_t size, struct problem_list *problems);
};

/* Return the descriptor with that name, or NULL. */
const struct target_desc *target_desc_find(const char *name);

/* Return all targets of this build, `*ret_count` of them, in alphabetical order. */
const struct target_desc *const *target_desc_all(size_t *ret_count);
