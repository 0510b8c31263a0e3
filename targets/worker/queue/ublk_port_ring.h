/* SPDX-License-Identifier: MIT */
/* What both ways of a port do with the ring of its queue; for the classes. */
#pragma once

#include "targets/worker/io/ublk_command.h"
#include "targets/worker/queue/ublk_port.h"

/* Return an entry with a command; NULL if none is free in this round. */
static inline struct io_uring_sqe *ublk_port_command(
        struct ublk_port *port, uint32_t operation, const void *command)
{
        struct io_uring_sqe *sqe = io_loop_sqe(port->loop);

        if (__builtin_expect(!sqe, 0))
                return NULL;
        ublk_command_prepare(port->loop, sqe, operation, command);
        return sqe;
}

/* Submit all entries, and look for completions that are there already; for class->fetch. Return the first
 * negative result among them (they are left there), or 0. */
int ublk_port_submit_all(struct ublk_port *port);
