/* SPDX-License-Identifier: MIT */
/* What the loss of the runtime directory means for the workers that ran then, in words: an event of each device, and a
 * problem of the host until the last of them was replaced. */
#pragma once

#include "ublkd/store/device_store.h"

/* Zero-initialise. */
struct runtime_loss {
        char *path;  /* of the directory; owned; NULL: it was not lost, or nothing is left to be told */
        uint64_t at; /* CLOCK_REALTIME, microseconds: workers that were started before have lost theirs */
        int error;   /* -errno: it cannot be made again; 0: it was */
};

/* It was lost, or one that is lost was tried to be made again: tells each device that is served, once, and keeps it for
 * runtime_loss_tell(). error: -errno, as above. */
void runtime_loss_note(struct runtime_loss *loss, struct device_store *store, const char *path, int error);
/* Adds a problem, if there is one. 0 or -ENOMEM. */
int runtime_loss_tell(
        struct runtime_loss *loss, const struct device_store *store, struct problem_list *problems);
void runtime_loss_clear(struct runtime_loss *loss);
