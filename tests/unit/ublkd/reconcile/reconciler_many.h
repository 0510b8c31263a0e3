/* SPDX-License-Identifier: MIT */
/* A world with many live devices, and operations of the supervisor on one of them: for
 * reconciler_scale_test.c and bench/lookups. */
#pragma once

#include "tests/unit/ublkd/reconcile/reconciler_world.h"

enum many_operation {
        MANY_STORE_EVENT, /* the store announces a change of one device */
        MANY_EVENT,       /* the store keeps an event of one device and announces it */
        MANY_UEVENT,      /* udev has handled one disk */
        MANY_TURN,        /* a turn of one device: from the queue until its status is as it is */
        MANY_PAGE,        /* the records of a page of GET /devices, 100 at most */
        MANY_ADD,         /* one more device, from its put until it is live */
        MANY_REMOVE,      /* that device, from the request until its record is gone */
        MANY_LOST,        /* the worker of one device dies: until another one serves the disk */
        MANY_LOCKED, /* the disk of one more device is in use by another process: until that is reported */
        MANY_KEPT,   /* the same by ublkd itself */
        _MANY_MAX
};

const char *many_operation_to_string(enum many_operation operation);

/* Create `count` live devices. */
void many_begin(struct world *world, unsigned count);
/* Prepare the `round`th many_measured() of this operation. */
void many_prepare(struct world *world, enum many_operation operation, unsigned count, unsigned round);
/* Run the operation. What it leaves is removed by many_settle(). */
void many_measured(struct world *world, enum many_operation operation, unsigned count, unsigned round);
/* Run the loop until all its effects are done, and remove the devices that failed. */
void many_settle(struct world *world);
