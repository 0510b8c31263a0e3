/* SPDX-License-Identifier: MIT */
/* Makes the file system of a device, once: looks at its disk, notes in the record what begins, has a process make it, and
 * notes that it is made. A death anywhere leaves a note from which the next request goes on (filesystem_rule.h). Mounts
 * it, and ends the mount: whether it is mounted is not noted, because the kernel has it (filesystem_mounts.h). */
#pragma once

#include "ublkd/filesystems/filesystem_rule.h"
#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct filesystem_maker;
struct filesystem_making;
struct filesystem_limits;

struct filesystem_answer {
        enum filesystem_verdict verdict;
        int error;                    /* -errno; 0: none */
        struct filesystem filesystem; /* as the record notes it now */
        const char *text;             /* what the program printed, not to be trusted; or "" */
};

struct filesystem_maker_config {
        sd_event *event;
        struct device_store *store;             /* outlives the maker */
        const char *mounts;                     /* the directory of all mounts; outlives it, too */
        const struct filesystem_limits *limits; /* NULL: the defaults */
};

/* Create a maker. Return 0 or -errno. */
int filesystem_maker_new(const struct filesystem_maker_config *config, struct filesystem_maker **ret);
/* Kill what is under way, without an answer, and free the maker. NULL is fine. Return NULL. */
struct filesystem_maker *filesystem_maker_free(struct filesystem_maker *maker);

/* Begin what a client wants of the disk of `record`, or to find out that it is so. `then` is called once, from the loop,
 * unless it is abandoned; then *ret is not valid any more. Return 0; -ENODEV: there is no disk, or, but for an unmount, it
 * is not in service; -EBUSY: an earlier request for this disk is under way; -EAGAIN: too many are; other -errno. */
int filesystem_request(struct filesystem_maker *maker, const struct device_record *record,
        const struct filesystem_wish *wish,
        void (*then)(void *userdata, const struct filesystem_answer *answer), void *userdata,
        struct filesystem_making **ret);
/* `then` is not called; what was begun goes on. */
void filesystem_abandon(struct filesystem_making *making);
