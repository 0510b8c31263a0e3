/* SPDX-License-Identifier: MIT */
/* A world with many live devices, and what the supervisor does with one of them: for the test of how the work
 * grows, and for bench/lookups. */
#pragma once

#include "tests/unit/ublkd/reconcile/reconciler_world.h"

enum many_operation {
        MANY_STORE_EVENT, /* a change of one device in the store is announced */
        MANY_EVENT,       /* an event of one device is kept and announced */
        MANY_UEVENT,      /* udev was at one disk */
        MANY_TURN,        /* a turn of one device: from the queue until its status is as it is */
        MANY_PAGE,        /* the records of a page of GET /devices, 100 at most */
        MANY_ADD,         /* one more device, from its put until it is live */
        MANY_REMOVE,      /* that device, from the request until its record is gone */
        _MANY_MAX
};

const char *many_operation_to_string(enum many_operation operation);

/* Make `count` live devices. */
void many_begin(struct world *world, unsigned count);
/* Do what must be done before the `round`th many_measured() of this operation. */
void many_prepare(struct world *world, enum many_operation operation, unsigned count, unsigned round);
/* The operation itself. */
void many_measured(struct world *world, enum many_operation operation, unsigned count, unsigned round);
/* Let everything happen that it has caused. */
void many_settle(struct world *world);
