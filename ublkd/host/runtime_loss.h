/* SPDX-License-Identifier: MIT */
/* Reports what the loss of the runtime directory means for the workers that ran then: an event of each
 * device, and a problem of the host until the last of these workers is replaced. */
#pragma once

#include "ublkd/store/device_store.h"

/* Zero-initialise. */
struct runtime_loss {
        char *path;  /* of the directory; owned; NULL: it was not lost, or there is nothing left to report */
        uint64_t at; /* CLOCK_REALTIME, microseconds: workers started before have lost socket and region */
        int error;   /* -errno: the directory cannot be recreated; 0: it was */
};

/* Note that the directory was lost, or that ublkd has tried again to recreate it. Make an event of each
 * served device, once, and keep the loss for runtime_loss_report(). error: -errno, as above. */
void runtime_loss_note(struct runtime_loss *loss, struct device_store *store, const char *path, int error);
/* Add the problem of the host, if there is one. Return 0 or -ENOMEM. */
int runtime_loss_report(
        struct runtime_loss *loss, const struct device_store *store, struct problem_list *problems);
void runtime_loss_clear(struct runtime_loss *loss);
