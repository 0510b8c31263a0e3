/* SPDX-License-Identifier: MIT */
/* Writes the events that wait in the store's log, within a second and in one transaction, so that a recovery
 * does not wait for the database. A repetition is written as soon as a new event. */
#pragma once

#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct event_writer;

struct event_writer_config {
        sd_event *event;
        struct device_store *store; /* outlives the writer */
        /* Called when writing begins to fail (-errno; the writer tries again), and when it works again (0). */
        void (*changed)(void *userdata, int error);
        void *userdata;
};

/* Create a writer. Return 0 or -errno. */
int event_writer_new(const struct event_writer_config *config, struct event_writer **ret);
/* Try again at once, without waiting for the end of the pause. Does nothing if the last write worked. */
void event_writer_retry(struct event_writer *writer);
/* Free the writer without writing: device_store_free() writes the last events. NULL is fine. Return NULL. */
struct event_writer *event_writer_free(struct event_writer *writer);
