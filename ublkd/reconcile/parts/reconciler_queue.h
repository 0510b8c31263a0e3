/* SPDX-License-Identifier: MIT */
/* The de-duplicating queue of devices that are due for a turn. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

struct managed_device;
struct reconciler;

enum turn_state {
        TURN_IDLE,      /* until an event, or until the timer fires */
        TURN_QUEUED,    /* in the reconciler's queue */
        TURN_OBSERVING, /* waits for the kernel's answer */
        TURN_STEPPING,  /* a step is under way */
};

/* When a device has its turn. Private to reconciler_queue.c and device_turn.c, but a step may read
 * `began`. */
struct device_turn {
        enum turn_state state;
        bool again;      /* an event came during a turn: take another turn after it */
        bool unreported; /* the status is reported when the timer fires, unless the step has ended before */
        TAILQ_ENTRY(managed_device) of_queue;
        uint64_t began; /* CLOCK_MONOTONIC; 0: not in a turn */
        sd_event_source *timer;
};

/* Private to reconciler_queue.c; reconciler.c sets it up and reads it, and device_turn.c enables `run`. */
struct turn_queue {
        TAILQ_HEAD(, managed_device) devices;
        size_t waiting;       /* devices in it */
        sd_event_source *run; /* enabled while the queue is not empty */
};

/* Take the device that is due next, or NULL. */
struct managed_device *reconciler_queue_pop(struct reconciler *reconciler);
/* Remove the device from the queue, if it is in it. */
void reconciler_queue_remove(struct managed_device *device);
/* Queue a turn of the device, unless one is queued. */
void device_wake(struct managed_device *device);
