/* SPDX-License-Identifier: MIT */
/* What the supervisor has got for a device from the user and from the kernel. */
#pragma once

#include "ublkd/reconcile/view/user_words.h"

#include <stdbool.h>

/* What the device still waits for. For device_turn.c and reconciler.c. */
struct first_pass {
        bool unasked; /* new: the kernel was not asked about it yet */
        bool unseen;  /* in the store at the start, and the kernel has not answered yet about its disk */
        bool boot_pass_due; /* in the store at the start, and without its first pass */
};

/* The requests of the user that were handled. For device_turn.c and reconciler.c. */
struct handled_requests {
        struct user_words words; /* that the attempts are about */
        bool recover;            /* so is the pending request to recover */
};
