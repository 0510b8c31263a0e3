/* SPDX-License-Identifier: MIT */
/* Writes the events that wait in the store's log: within a second, in one transaction, so that a recovery
 * never waits for a disk. A repetition raises the count of its event and is written as soon as a new one. */
#pragma once

#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct event_writer;

struct event_writer_config {
        sd_event *event;
        struct device_store *store; /* outlives the writer */
        /* They could not be written (-errno) for the first time since they could, and are tried again; or
         * they could again (0). */
        void (*changed)(void *userdata, int error);
        void *userdata;
};

/* 0 or -errno. */
int event_writer_new(const struct event_writer_config *config, struct event_writer **ret);
/* Tries again at once, instead of at the end of a pause; does nothing while all is well. */
void event_writer_retry(struct event_writer *writer);
/* Writes nothing more: device_store_free() does. NULL is fine. Returns NULL. */
struct event_writer *event_writer_free(struct event_writer *writer);
