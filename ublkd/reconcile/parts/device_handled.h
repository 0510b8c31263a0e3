/* SPDX-License-Identifier: MIT */
/* Which requests and answers about a device the supervisor has handled. */
#pragma once

#include "ublkd/reconcile/view/user_request.h"

#include <stdbool.h>

/* What the device still waits for. For device_turn.c and reconciler.c. */
struct first_pass {
        bool unasked; /* a new device: ublkd has not asked the kernel about it yet */
        bool unseen;  /* in the store at the start, and the kernel has not answered yet about its disk */
        bool boot_pass_due; /* in the store at the start, and without its first pass */
};

/* The requests of the user that were handled. For device_turn.c and reconciler.c. */
struct handled_requests {
        struct user_request request; /* of the current attempts */
        bool recover;                /* the pending request to recover is handled, too */
};
