/* SPDX-License-Identifier: MIT */
/* One turn of a device. */
#pragma once

#include "ublkd/reconcile/user_words.h"

struct managed_device;

/* What a device has been through since it is known. For device_turn.c and reconciler.c. */
struct first_pass {
        bool unheard;   /* new, and the kernel was never asked anything about it */
        bool unseen;    /* was there at the start, and the kernel has not yet told of its disk */
        bool unsettled; /* was there at the start, and has not had its first pass */
};

/* What the user has said, as far as it was heard. For device_turn.c and reconciler.c. */
struct heard {
        struct user_words words; /* that the attempts are about */
        bool recover;            /* so is the pending request to recover */
};

/* Begin a turn of a device whose record the store has. It may be gone when this returns. */
void device_turn_begin(struct managed_device *device);
/* It had its first pass, or goes without. */
void device_seen(struct managed_device *device);
