/* SPDX-License-Identifier: MIT */
/* A removal that waits for processes which still have the disk open: says which. They are looked for while
 * the device goes on with its turns, at once and then ever less often: a disk may be held for days. */
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

/* Private to device_holders.c. Zeroed, nothing is known. */
struct device_holders {
        enum device_hold hold;
        int number;
        uint64_t since;                 /* CLOCK_MONOTONIC: of the wait that it is about; 0: none */
        struct disk_question *question; /* NULL: none is under way */
        bool answered;                  /* one was, in this wait */
        char *text;                     /* who they are, as found last; NULL: not known. Owned */
        uint64_t ask_at;                /* CLOCK_MONOTONIC: not again before */
        uint64_t pause;                 /* microseconds: how long that was */
        void (*found)(void *userdata);
        void *userdata;
};

/* The removal of /dev/ublkbN waits, since `since`. Look for those who have it, if that is due; `found` is
 * called from the loop when they are found. NULL search: they cannot be looked for. True: it is time to
 * explain; false: it would be said without their names, which are about to be known, or too early. */
bool device_holders_wait(struct device_holders *holders, struct disk_search *search, int number,
        enum device_hold hold, uint64_t since, void (*found)(void *userdata), void *userdata);
/* Whether what was found is about the wait since then. */
bool device_holders_are_of(const struct device_holders *holders, uint64_t since);
/* The reason of such a wait, and its sentence, which the caller frees. 0 or -ENOMEM. */
enum condition_reason device_holders_reason(const struct device_holders *holders);
int device_holders_explain(const struct device_holders *holders, char **ret);
/* Frees what there is of it. */
void device_holders_forget(struct device_holders *holders);
