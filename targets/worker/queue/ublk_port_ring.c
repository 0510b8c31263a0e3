/* SPDX-License-Identifier: MIT */
/* What both ways of a port do with the ring of its queue. */
#include "targets/worker/queue/ublk_port_ring.h"

#include <errno.h>

int ublk_port_submit_all(struct ublk_port *port)
{
        struct io_uring_cqe *cqe;
        unsigned head;

        while (io_uring_sq_ready(&port->loop->ring) > 0) {
                int r = io_ring_submit(&port->loop->ring);

                if (r < 0 && r != -EINTR && r != -EAGAIN)
                        return r;
        }
        io_uring_for_each_cqe(&port->loop->ring, head, cqe)
        {
                if (cqe->res < 0)
                        return cqe->res;
        }
        return 0;
}
