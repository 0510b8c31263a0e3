/* SPDX-License-Identifier: MIT */
/* The way of an order from the main thread to the first queue. */
#include "targets/worker/queue/action_port.h"
#include "targets/target_action.h"
#include "ublkd/proto/region_action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

int action_port_new(struct region_control *control, int news, struct action_port **ret)
{
        struct action_port *port = calloc(1, sizeof(*port));
        int r = 0;

        if (!port)
                return -ENOMEM;
        port->control = control;
        port->news = news;
        port->memory =
                mmap(NULL, TARGET_ACTION_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        port->orders = port->memory == MAP_FAILED
                               ? -1
                               : eventfd(0, EFD_CLOEXEC); /* it blocks: the ring waits for it */
        if (port->orders < 0) {
                r = -errno;
                (void)action_port_free(port);
                return r;
        }
        *ret = port;
        return 0;
}

struct action_port *action_port_free(struct action_port *port)
{
        if (!port)
                return NULL;
        close_fd(port->orders);
        if (port->memory != MAP_FAILED)
                (void)munmap(port->memory, TARGET_ACTION_MEMORY);
        free(port);
        return NULL;
}

bool action_port_is_busy(const struct action_port *port)
{
        return atomic_load_explicit(&port->busy, memory_order_acquire);
}

/* The pages come here: the thread of the queue must not wait for them, and a page that cannot be had must not end the worker.
 *
 * The counter of an eventfd is full after 2^64 of these: writing neither fails nor blocks. */
int action_port_give(struct action_port *port, const struct action_order *order)
{
        region_action_begin(port->control, order->id, order->worker);
        if (madvise(port->memory, TARGET_ACTION_MEMORY, MADV_POPULATE_WRITE) < 0)
                return -errno;
        memset(port->memory, 0, TARGET_ACTION_MEMORY);
        port->order = *order;
        atomic_store_explicit(&port->busy, true, memory_order_release);
        action_port_wake(port);
        return 0;
}

const struct action_order *action_port_take(const struct action_port *port)
{
        return action_port_is_busy(port) ? &port->order : NULL;
}

/* Where the pages cannot be given back, they stay, and the next action has them. */
void action_port_done(struct action_port *port)
{
        (void)madvise(port->memory, TARGET_ACTION_MEMORY, MADV_DONTNEED_LOCKED);
        atomic_store_explicit(&port->busy, false, memory_order_release);
        (void)eventfd_write(port->news, 1);
}

void action_port_wake(const struct action_port *port)
{
        (void)eventfd_write(port->orders, 1);
}
