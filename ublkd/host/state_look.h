/* SPDX-License-Identifier: MIT */
/* How much room the file system of the state directory has, and whether and how large the database is there. It may be on a server
 * that does not answer, so a short-lived process looks. */
#pragma once

#include "ublkd/host/host.h"
#include "ublkd/store/device_store.h"

#include <systemd/sd-event.h>

struct state_look;

enum database_seen {
        DATABASE_NOT_SEEN, /* the look failed */
        DATABASE_THERE,
        DATABASE_GONE, /* it was deleted or moved away */
};

struct state_seen {
        struct state_room room;
        enum database_seen database;
        struct file_size sizes[_DATABASE_FILE_MAX];
};

struct state_look_config {
        sd_event *event;
        const char *directory;            /* outlives the look */
        const struct device_store *store; /* the same; its database is looked at */
        uint64_t patience_usec;           /* for the process; 0: a second */
        /* From the loop, once for each look. It may begin another one. */
        void (*done)(void *userdata, const struct state_seen *seen);
        void *userdata;
};

/* Create a look, which does not begin yet. Return 0 or -errno. */
int state_look_new(const struct state_look_config *config, struct state_look **ret);
/* Kill a look under way, and free it. NULL is fine. Return NULL. */
struct state_look *state_look_free(struct state_look *look);

/* Start a look, unless one is under way. Return 1: `done` comes; 0: what was seen last still holds; -errno:
 * no process can be started, and nothing is known. */
int state_look_begin(struct state_look *look);
