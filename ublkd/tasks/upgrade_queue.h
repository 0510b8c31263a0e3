/* SPDX-License-Identifier: MIT */
/* The devices whose workers have another version than ublkd starts now, in the order in which these are replaced. Each
 * change of a device costs O(log n); the caller reports it. Does nothing else than to remember. */
#pragma once

#include "ublkd/base/tree.h"
#include "ublkd/store/device_store.h"

/* What of a device concerns the queue. */
struct upgrade_facts {
        bool outdated;   /* its worker has another version */
        bool ready;      /* it may be replaced now */
        bool refused;    /* its last restart was refused: it comes last */
        bool restarting; /* it is restarted now */
};

/* For upgrade_queue.c, except for reading the counts. */
struct upgrade_queue {
        struct tree devices; /* those with a fact, or that were passed over, by name */
        struct tree ready;   /* those that may be replaced now, in their order */
        size_t outdated;
        size_t restarting; /* those that were not passed over */
};

/* Initialise zeroed memory. */
void upgrade_queue_init(struct upgrade_queue *queue);
/* Remove all devices, also those that were passed over. */
void upgrade_queue_clear(struct upgrade_queue *queue);
/* Set the facts of a device. Return 0 or -ENOMEM: the queue does not know it then. */
int upgrade_queue_set(struct upgrade_queue *queue, const char *name, const struct upgrade_facts *facts);
/* Pass over a device until upgrade_queue_clear() or upgrade_queue_remove(): it is not next, whatever it is. Return 0 or
 * -ENOMEM. */
int upgrade_queue_pass_over(struct upgrade_queue *queue, const char *name);
/* Remove a device, which may be unknown. */
void upgrade_queue_remove(struct upgrade_queue *queue, const char *name);
/* Return the name of the device to replace next; NULL: none. */
const char *upgrade_queue_next(const struct upgrade_queue *queue);
