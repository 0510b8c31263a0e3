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
        TARGET_IS_PART =
                1 << 6, /* over a "child" the disk lies in that as it is: target.is_part() of the worker */
        TARGET_SEES_ALL = 1 << 7,  /* each request goes through its callbacks, also where the disk lies in
                                     its child as it is */
        TARGET_FOR_TESTS = 1 << 8, /* refused unless a setting of ublkd allows it; never for tenants */
        TARGET_SCANS = 1 << 9,     /* its bytes can be read for an action: target.scan() of the worker */
};

/* What a worker of the target keeps of that which every other worker gives up (targets/worker/walls.h).
 *
 * The network costs a part of the fence (docs/worker.md): a ring with places for descriptors
 * (target_waits.files) takes other files while it serves. A worker that was taken over can so put another
 * file in the place of /dev/ublkcN or of the store: no restriction of a ring limits which places it sets. */
enum target_need {
        TARGET_NEEDS_NETWORK =
                1 << 0,             /* to connect by TCP, from the network of ublkd, also while it serves */
        TARGET_NEEDS_POLL = 1 << 1, /* await_fd() */
};

/* What each queue reserves when it opens, for a target that waits for more than its files
 * (targets/target_wait.h). All zero, which is nothing, for most. */
struct target_waits {
        /* Coroutines of await_all() for each request, beside the request's own; no more than TARGET_QUEUE_CHILDREN_MAX for all
         * requests of a queue together. */
        unsigned children;
        bool watched;               /* it calls await_watched(), which has a stack in each queue */
        unsigned background;        /* coroutines of the background, for each queue */
        unsigned device_background; /* the same for the device: on the thread of its first queue */
        unsigned files;             /* places for descriptors of the queue: target_queue_set_file() */
        unsigned work_threads;      /* of await_work(): in each worker, for all its queues */
};

/* What is shared with a target while it serves (ublkd/proto/region_target.h): bytes of packed options, and numbers. */
enum { TARGET_LIVE_MAX = 1024, TARGET_COUNTS_MAX = 64 };

/* Kept memory that all targets of a disk can have together, in bytes (ublkd/proto/region_kept.h). */
enum { TARGET_KEPT_DISK_MAX = 16 * 1024 * 1024, TARGET_KEPT_QUEUE_MAX = 1024 * 1024 };

/* What a target may declare. */
enum {
        TARGET_CHILDREN_MAX = 14,
        TARGET_QUEUE_CHILDREN_MAX = 64, /* all that are reserved in a queue, whatever its depth */
        TARGET_BACKGROUND_MAX = 8,      /* of each kind */
        TARGET_QUEUE_FILES_MAX = 8,
        TARGET_WORK_THREADS_MAX = 8,
};

/* What an action has found, for a result that clients read. All of it is as a worker has written it: numbers. */
enum { TARGET_RANGES_MAX = 16 };
struct target_findings {
        uint64_t done;         /* bytes */
        uint64_t found, bytes; /* ranges, and their bytes */
        uint32_t number;       /* of the target, as target_action_number() has it; 0: none */
        struct {
                uint64_t offset, length; /* bytes, on the disk */
        } ranges[TARGET_RANGES_MAX];
        unsigned range_count; /* the first of those that were found */
};

/* Something that takes its time, which a client starts by its name (targets/target_action.h). Its name and its arguments
 * are in the schema of the target ("actions"). */
struct target_verb {
        const char *name;    /* as in the path of the API */
        const char *summary; /* one line, for GET /targets */
        /* The struct goes to the queue as a copy: only numbers, TARGET_ARGUMENTS_MAX bytes at most. */
        const struct option_table *arguments;
        unsigned needs; /* enum target_flag: each target of the disk must have them */
        bool anywhere;  /* clients can start it also where the target stands below others */
        bool for_tests; /* only with AllowFaultTarget=yes */
        bool loses; /* the ranges that it reports were lost, as the client wanted; else they were found, which alarms */
        /* Of one that failed, or ended with its worker: what has become of it, as the end of a sentence; NULL: clients may start it
         * again. */
        const char *half_done;
        /* Optional: return why a disk with these options of the target does not have it, as the end of a sentence; NULL: it has
         * it. Pure. */
        const char *(*refuse)(const void *options);
        /* Add the result to an object. Return false on ENOMEM. */
        bool (*show_result)(const struct target_findings *findings, cJSON *ret);
};

enum { TARGET_ARGUMENTS_MAX = 64 };

/* Add the ranges of findings to an object, below `name`. Return false on ENOMEM. */
bool target_findings_show(const struct target_findings *findings, const char *name, cJSON *ret);

struct target_tree; /* targets/target_tree.h */
struct target_node;

struct target_desc {
        const char *name;    /* the "type" in a spec */
        const char *summary; /* one line, for GET /targets */
        unsigned flags;      /* enum target_flag */
        unsigned needs;      /* enum target_need */
        struct target_waits waits;
        bool size_required; /* the target has no size of its own */
        const struct option_table *options;
        /* Kept memory (struct target_kept of targets/target.h): bytes for the disk and for each queue, within the bounds above; both
         * 0: none. Each target of a tree has its own (targets/target_tree_kept.h). The version is another whenever the target stores
         * something else there, or the same in another form; with each change of it, or of a size, the memory begins as zeroes. */
        uint64_t kept_disk_bytes, kept_queue_bytes;
        uint32_t kept_version;
        /* What clients can start: of a tree, those of the outermost target, and those of others that are `anywhere`. */
        const struct target_verb *verbs;
        unsigned verb_count;
        /* Names of options that a disk can follow, because only ublkd reads them, or because they are packed for the
         * worker that serves; NULL-terminated, or NULL: none. */
        const char *const *live_options;
        /* Write those of the options that a worker follows while it serves, in a form of the target, and return how many bytes
         * they have (target_live_read() of targets/target.h). Of a tree, the first target that has this function. NULL: a
         * worker follows none. */
        size_t (*pack_live)(const void *options, unsigned char ret[static TARGET_LIVE_MAX]);
        /* Of one with pack_live(): add what it has counted to the statistics of the device. Whatever a worker has written there is
         * a number. Return false on ENOMEM. */
        bool (*show_counts)(
                const void *options, const uint64_t counts[static TARGET_COUNTS_MAX], cJSON *statistics);
        /* Check options that are each valid, and size (0: not given), against each other. Return 0, also if
         * problems were added, or -ENOMEM. NULL: there is nothing to check. */
        int (*check)(const void *options, uint64_t size, struct problem_list *problems);
        /* Of a target that stands on others: the same for the node and what is below it; pointers begin with "/target", too.
         * NULL: there is nothing to check. */
        int (*check_below)(const struct target_tree *tree, const struct target_node *node,
                struct problem_list *problems);
        /* Return whether the disk has a size of its own, by the same of each child. NULL: unless size_required. */
        bool (*has_size)(const void *options, const bool *children, unsigned count);
};

/* Return the number of the verb with that name, or -1. */
int target_desc_verb(const struct target_desc *desc, const char *name);
