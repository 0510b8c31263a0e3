/* SPDX-License-Identifier: MIT */
/* A queue of a disk: its ring, the memory that it shares, and its loop in user space. */
#pragma once

#include "bench/inkernel/layout.h"

#include <liburing.h>
#include <stdbool.h>

struct queue {
        struct io_uring ring;
        struct settings settings;
        struct state state; /* before the loop runs; the loop in user space has a copy of its own */
        char *shared;
        bool restricted; /* with the rules of ublkd's rings */
};

/* Open the ring and register what the loop uses. settings: null, batch, depth and start are set. 0 or -errno. */
int queue_open(struct queue *queue, int command_fd, int backing_fd);
/* Enable the ring, and offer all tags to the driver, from the thread that will run the loop. 0 or -errno. */
int queue_fetch(struct queue *queue);
/* Serve in user space until the device has taken its tags back, the loop is asked to leave, or fails. */
int queue_serve(struct queue *queue, struct state *ret_state);
/* Run the loop that is attached to the ring; return what io_uring_enter(2) returns, with -errno. */
int queue_enter(struct queue *queue);
