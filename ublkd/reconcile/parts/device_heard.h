/* SPDX-License-Identifier: MIT */
/* What a device has heard of the user and the kernel since it is known. */
#pragma once

#include "ublkd/reconcile/view/user_words.h"

#include <stdbool.h>

/* What is still to come. For device_turn.c and reconciler.c. */
struct first_pass {
        bool unheard;       /* new, and the kernel was never asked anything about it */
        bool unseen;        /* was there at the start, and the kernel has not yet told of its disk */
        bool boot_pass_due; /* was there at the start, and has not had its first pass */
};

/* What the user has said, as far as it was heard. For device_turn.c and reconciler.c. */
struct heard {
        struct user_words words; /* that the attempts are about */
        bool recover;            /* so is the pending request to recover */
};
