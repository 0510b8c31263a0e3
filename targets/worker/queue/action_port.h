/* SPDX-License-Identifier: MIT */
/* The way of an order from the main thread to the first queue: begin an action. One at a time. */
#pragma once

#include "targets/target.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/device_region.h"

#include <stdatomic.h>

struct action_order {
        uint64_t id;
        uint64_t worker;                                                  /* region_action.worker */
        unsigned node;                                                    /* of the tree */
        unsigned verb;                                                    /* of desc->verbs of that target */
        _Alignas(uint64_t) unsigned char arguments[TARGET_ARGUMENTS_MAX]; /* as parsed */
};

struct action_port {
        struct region_control *control;
        void *memory; /* target_action.memory; between actions it has no pages */
        int orders;   /* an eventfd that wakes the first queue */
        int news;     /* an eventfd of the main thread; not the port's */
        atomic_bool
                busy; /* the queue has an order: `order`, and the action part of `control`, belong to its thread */
        struct action_order order;
};

/* Make a port, before the memory of the worker is locked. Return 0 or -errno. */
int action_port_new(struct region_control *control, int news, struct action_port **ret);
/* Free it, after the threads. NULL is fine. Return NULL. */
struct action_port *action_port_free(struct action_port *port);

/* On the main thread: return whether the queue carries out an action. */
bool action_port_is_busy(const struct action_port *port);
/* On the main thread, of a port that is not busy: note in the region that the action begins, give it its memory, and hand
 * over the order, which is copied. May wait for memory. Return 0; or -errno: there is none, the queue has no order, and the
 * caller ends the action in the region. */
int action_port_give(struct action_port *port, const struct action_order *order);

/* On the thread of the first queue: return the order, or NULL: there is none. */
const struct action_order *action_port_take(const struct action_port *port);
/* On the thread of the first queue, after the end of the action was noted in the region: wait for the next order. */
void action_port_done(struct action_port *port);
/* On the thread of the first queue: wake its own coroutine. */
void action_port_wake(const struct action_port *port);
