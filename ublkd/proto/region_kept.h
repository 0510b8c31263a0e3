/* SPDX-License-Identifier: MIT */
/* Kept memory: the part of a region that belongs to the target, for the disk and for each queue.
 *
 * It lies behind the sections that a program without kept memory knows: that program finds the same header as ever, and
 * leaves what lies behind alone. Where it lies follows from its sizes and from the number of queues, and no number in
 * the file says it. The supervisor makes it, zeroed, and compares what the header says of it; it never reads the bytes.
 *
 * Each area begins with a head, and is the target's from there on. A worker that finds one of the heads unsettled zeroes all
 * areas again: the worker before it died before all of its queues had started (targets/worker/disk/disk_start.c). */
#pragma once

#include "ublkd/proto/device_region.h"

enum {
        REGION_KEPT_DISK_MAX = 16 * 1024 * 1024, /* bytes, whatever a target declares */
        REGION_KEPT_QUEUE_MAX = 1024 * 1024,
        REGION_KEPT_HEAD = 64, /* bytes: a line of the cache */
};

/* The head of an area. Written by the worker alone. */
struct region_kept_head {
        uint64_t settled; /* 1: set when all queues had started; 0: they had not; no worker writes more */
};

/* Whether the disk has lost what a worker before had kept, when the region was made. Written by the supervisor. */
enum region_kept_loss {
        REGION_KEPT_WHOLE,         /* nothing was lost: the disk was new, or its target kept nothing before */
        REGION_KEPT_LOST,          /* something was, or may have been; the database has no event of it yet */
        REGION_KEPT_LOSS_REPORTED, /* the same, and the database has one */
};

/* What the targets of the next worker want to find. */
struct region_kept_wish {
        const char *target;               /* its name, or one of the layout of a tree (target_tree_kept.h) */
        uint64_t disk_bytes, queue_bytes; /* for the disk, and for each queue; both 0: no kept memory */
        uint32_t version;                 /* of what the targets store there */
        bool new_disk; /* the kernel has no disk yet: what was kept belonged to the disk before this one */
};

/* Return whether the supervisor makes that much kept memory. */
bool region_kept_is_allowed(const struct region_kept_wish *wish);
/* Return the bytes of the file that kept memory takes, heads and alignment included. */
uint64_t region_kept_size(const struct region_kept_wish *wish, unsigned queues);

/* Make a file without a header, to be the region for `key` with kept memory as `wish` says, all of it allocated.
 * from: the region in whose place it comes, of which everything but kept memory is taken over if it fits `key`; -1:
 * none. Where a disk that exists loses what was kept, the file says so, and has the fault of a failed flush. No worker of
 * the device may live. Return 0; -EINVAL as device_region_format(); -E2BIG: not allowed; -errno. */
int region_kept_format(
        int fd, const struct device_region_key *key, const struct region_kept_wish *wish, int from);
/* Return whether the next worker can use the kept memory of the region that is open as fd, which fits `key` otherwise.
 * False also where the file has some and none is wanted, and where a supervisor that does not know of kept memory has
 * started a worker since: a target that does not know of it changes the disk under it. */
bool region_kept_fits(int fd, const struct device_region_key *key, const struct region_kept_wish *wish);

/* Each worker proves that it knows of kept memory, and each supervisor that it has looked whether it fits, by a ticket in
 * the header. The supervisor gives the memory before it starts a worker, the worker takes it, and the supervisor lets
 * the worker serve only after that. Of two programs of which one does not know of kept memory, neither serves. */

/* Give kept memory that fits to the worker to be started, for the supervisor. Return 0 or -errno. */
int region_kept_give(int fd);
/* Take it, for the worker, once. Return 0; -EPROTO: it was not given to this worker: the supervisor does not know of
 * kept memory; other -errno. */
int region_kept_take(int fd);
/* Return whether the worker that it was given to last has taken it; -errno. For the supervisor, before GO. */
int region_kept_is_taken(int fd);
/* Write the history, in which the start of a worker was counted, for a region with kept memory that fits. Return 0 or
 * -errno. */
int region_kept_count_restart(int fd, const struct region_history *history);
/* Return 1 if the disk has lost what was kept, and that is not noted as reported; 0; -errno. *ret_loss: another number for each
 * loss. For the supervisor. */
int region_kept_has_new_loss(int fd, uint64_t *ret_loss);
/* Note that the database has an event of the loss. Return 0 or -errno. */
int region_kept_note_reported(int fd);
/* Read how many bytes the region that is open as fd has for its target, heads not counted, within the bounds above
 * whatever a worker has written. Return 0, also if it has none; -errno as device_region_read_header(). */
int region_kept_read_bytes(int fd, uint64_t *ret);

/* Kept memory as a worker has it mapped. */
struct region_kept_map {
        char *base; /* of the first area; NULL: none is wanted */
        uint64_t disk_bytes, queue_bytes;
        uint64_t seed; /* another number for each kept memory that was made */
        bool lost;     /* it came in the place of another, under a disk that exists */
};

/* Map kept memory, for the worker, to the end of the process. Return 0, also if `wish` is for none; -EPROTO: the region
 * has none, or another: a supervisor that knows another version of the target has made it; -E2BIG: not allowed; other
 * -errno as device_region_read_header(). */
int region_kept_map(
        int fd, unsigned queues, const struct region_kept_wish *wish, struct region_kept_map *ret);
/* Return the head of the area of the disk, or of a queue; NULL: it has none. The area's bytes follow REGION_KEPT_HEAD
 * bytes behind. */
struct region_kept_head *region_kept_disk(const struct region_kept_map *map);
struct region_kept_head *region_kept_queue(const struct region_kept_map *map, unsigned queue);
