/* SPDX-License-Identifier: MIT */
/* The openers that keep a disk from being removed. ublkd searches them while the device continues its turns: at once,
 * and then less and less often, because a disk may be held for days. */
#pragma once

#include "ublkd/disk_users/disk_search.h"
#include "ublkd/model/reason.h"

#include <stdbool.h>
#include <stdint.h>

/* What a removal waits for. */
enum device_hold {
        HOLD_BEFORE_STOP,  /* the kernel refuses to stop a disk that is in use */
        HOLD_UNKNOWN,      /* the kernel could not be asked whether it is in use */
        HOLD_AFTER_DELETE, /* it deletes the disk once the last opener has closed it */
        _HOLD_MAX
};

/* Private to device_openers.c. Zeros: unknown. */
struct device_openers {
        enum device_hold hold;
        int number;
        uint64_t since;                 /* CLOCK_MONOTONIC: begin of the wait; 0: none */
        struct disk_question *question; /* NULL: none is under way */
        bool answered;                  /* a question was answered in this wait */
        char *text;                     /* the openers found last; NULL: unknown. Owned */
        unsigned kinds;                 /* of these openers: enum disk_user_kind */
        uint64_t ask_at;                /* CLOCK_MONOTONIC of the next search */
        uint64_t pause;                 /* microseconds before that search */
        void (*found)(void *userdata);
        void *userdata;
};

/* Search the openers of /dev/ublkbN, whose removal waits since `since`, if a search is due. `found` is called from the
 * loop when they are found. search: NULL: openers cannot be searched. Return true: report the wait now; false: too
 * early, or the names are about to be known. */
bool device_openers_wait(struct device_openers *openers, struct disk_search *search, int number,
        enum device_hold hold, uint64_t since, void (*found)(void *userdata), void *userdata);
/* Return whether the openers were found for the wait that began at `since`. */
bool device_openers_are_of(const struct device_openers *openers, uint64_t since);
/* Return the reason of the wait; write its sentence, which the caller frees: 0 or -ENOMEM. */
enum condition_reason device_openers_reason(const struct device_openers *openers);
int device_openers_explain(const struct device_openers *openers, char **ret);
/* Free what it owns. */
void device_openers_drop(struct device_openers *openers);
