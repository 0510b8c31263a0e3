/* SPDX-License-Identifier: MIT */
/* Unmounts nodes of disks that are gone, wherever a container has them mounted. A process of its own does it
 * (recall_process.c), of which the loop waits for nothing, and which is killed at a deadline: a node that was taken back
 * opens nothing any more, so this only tidies up. */
#pragma once

#include "ublkd/nodes/private_node.h"

#include <systemd/sd-event.h>

struct node_recall;

struct node_recall_options {
        const char *program;    /* of the process; outlives the recall. NULL: this very program */
        uint64_t patience_usec; /* 0: 20 s */
        uint64_t pause_usec;    /* from the end of a look to the next one; 0: 1 s */
        uint64_t retry_usec;    /* from the end of a look that has failed to the next one; 0: 60 s */
        void (*ended)(
                void *userdata); /* a look has ended, or could not begin, and no other was asked for; NULL: not wanted */
        /* A look has failed, and the one before has not, or by another error: a node may still be mounted. -ETIMEDOUT: a container has
         * hindered it. NULL: not wanted. */
        void (*failed)(void *userdata, int error);
        void *userdata;
};

/* Prepare it. `nodes` lives longer. options: NULL: the defaults. Return 0 or -errno. */
int node_recall_new(sd_event *event, struct private_nodes *nodes, const struct node_recall_options *options,
        struct node_recall **ret);
struct node_recall *node_recall_free(struct node_recall *recall);

/* A node was taken back, or may have been mounted since: look through all containers, after the look that is under way, and a
 * pause. A look that fails is tried again. */
void node_recall_ask(struct node_recall *recall);
