/* SPDX-License-Identifier: MIT */
/* Reports what the loss of the runtime directory means for the workers that ran then: an event of each
 * device, and a problem of the host until the last of these workers is replaced. */
#pragma once

#include "ublkd/store/device_store.h"

/* A worker of whose loss there is an event. */
struct noted_worker {
        char uid[UID_TEXT_SIZE]; /* of its device */
        uint64_t started_at;
};

/* Zeroed but for `has_files`. */
struct runtime_loss {
        /* Return whether the worker of the device could be adopted: its socket and region have names. */
        bool (*has_files)(void *userdata, const char *uid);
        void *userdata;
        char *path; /* of the directory; owned; NULL: it was not lost, or there is nothing left to report */
        struct noted_worker *noted; /* owned; the last of each device */
        size_t noted_count;
        bool is_part; /* files of it were removed, and the directory was not */
        int error;    /* -errno: the directory cannot be recreated; 0: it was */
};

/* Return whether a worker has lost its files, and no loss was noted for it. */
bool runtime_loss_is_new(const struct runtime_loss *loss, const struct device_store *store);
/* Note that the directory was lost, or with is_part files of it, or that ublkd has tried again to recreate
 * it. Make an event of each worker that is cut off, once, and keep the loss for runtime_loss_report(). error:
 * -errno, as above. */
void runtime_loss_note(
        struct runtime_loss *loss, struct device_store *store, const char *path, bool is_part, int error);
/* Add the problem of the host, if there is one. Return 0 or -ENOMEM. */
int runtime_loss_report(
        struct runtime_loss *loss, const struct device_store *store, struct problem_list *problems);
void runtime_loss_clear(struct runtime_loss *loss);
