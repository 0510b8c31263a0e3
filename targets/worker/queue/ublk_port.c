/* SPDX-License-Identifier: MIT */
/* How a queue talks to the driver: what both ways have in common, and the way of one command for each tag.
 *
 * The life of a tag: FETCH, then (request arrives, performed, COMMIT_AND_FETCH) over and over, until a
 * command comes back as aborted: the driver has taken the tag back. */
#include "targets/worker/queue/ublk_port.h"
#include "targets/worker/queue/ublk_port_ring.h"
#include "ublkd/base/cleanup.h"

int tag_queue_init(struct tag_queue *queue, unsigned size)
{
        *queue = (struct tag_queue){.tags = calloc(size, sizeof(*queue->tags)), .size = size};
        return queue->tags ? 0 : -ENOMEM;
}

/* ---- for both ways ---- */

int ublk_port_init(struct ublk_port *port, struct io_loop *loop, struct io_data *data, unsigned depth)
{
        int r;

        *port = (struct ublk_port){
                .loop = loop,
                .data = data,
                .class = data->route.batch ? &ublk_port_batch : &ublk_port_single,
                .depth = depth,
                .batched = data->route.batch,
                .copies = data->route.path == DATA_PATH_COPY,
                .results = calloc(depth, sizeof(*port->results)),
        };
        if (!port->results)
                return -ENOMEM;
        r = tag_queue_init(&port->unsent, depth);
        return r < 0 ? r : port->class->init ? port->class->init(port) : 0;
}

void ublk_port_destroy(struct ublk_port *port)
{
        if (port->class && port->class->destroy)
                port->class->destroy(port);
        free(port->results);
        free(port->unsent.tags);
        *port = (struct ublk_port){};
}

int ublk_port_fetch(struct ublk_port *port)
{
        return port->class->fetch(port);
}

void ublk_port_commit_later(struct ublk_port *port, uint16_t tag, int result)
{
        port->results[tag] = result;
        tag_queue_put(&port->unsent, tag);
}

void ublk_port_commit_unsent(struct ublk_port *port)
{
        while (port->unsent.count > 0) {
                uint16_t tag = tag_queue_first(&port->unsent);

                if (!port->class->commit(port, tag, port->results[tag]))
                        return;
                tag_queue_drop_first(&port->unsent);
        }
}

void ublk_port_keep_uncommitted(const struct ublk_port *port)
{
        const struct tag_queue *unsent = &port->unsent;

        for (unsigned i = 0; i < unsent->count; i++)
                io_data_keep_uncommitted(port->data, unsent->tags[(unsent->first + i) % unsent->size]);
        port->class->keep_uncommitted(port);
}

/* ---- one command for each tag ---- */

static bool send_command(struct ublk_port *port, uint32_t operation, uint16_t tag, int result)
{
        const struct ublksrv_io_cmd command = {
                .q_id = (uint16_t)port->loop->queue.index,
                .tag = tag,
                .result = result,
                .addr = port->data->route.path == DATA_PATH_COPY ? (uintptr_t)io_data_of(port->data, tag) : 0,
        };
        struct io_uring_sqe *sqe = ublk_port_command(port, operation, &command);

        if (__builtin_expect(!sqe, 0))
                return false;
        if (port->data->route.auto_buffers) /* struct ublk_auto_buf_reg: index, flags */
                sqe->addr = ublk_port_buffer_index(port, tag) | UBLK_AUTO_BUF_REG_FALLBACK << 16;
        sqe->user_data = io_data_arrival(tag);
        return true;
}

static int fetch(struct ublk_port *port)
{
        for (unsigned tag = 0; tag < port->depth; tag++)
                if (!send_command(port, UBLK_U_IO_FETCH_REQ, (uint16_t)tag, 0))
                        return -EBUSY;
        /* A FETCH that is refused is back already. Others are left for the first round. */
        return ublk_port_submit_all(port);
}

static bool commit(struct ublk_port *port, uint16_t tag, int result)
{
        return send_command(port, UBLK_U_IO_COMMIT_AND_FETCH_REQ, tag, result);
}

static unsigned completed(struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags)
{
        if (__builtin_expect(cqe->res == UBLK_IO_RES_OK, 1)) {
                port->arrived = (uint16_t)user_data_of_command(cqe->user_data);
                *ret_tags = &port->arrived;
                return 1;
        }
        if (cqe->res == UBLK_IO_RES_ABORT)
                port->aborted++;
        else
                port->failure = cqe->res < 0 ? cqe->res : -EPROTO;
        return 0;
}

/* Commits that have not been submitted. */
static void keep_uncommitted(const struct ublk_port *port)
{
        const struct io_uring_sq *sq = &port->loop->ring.sq;

        for (unsigned i = io_uring_smp_load_acquire(sq->khead); i != sq->sqe_tail; i++) {
                uint64_t user_data = sq->sqes[i & sq->ring_mask].user_data;

                if (user_data_kind(user_data) == USER_DATA_COMMAND)
                        io_data_keep_uncommitted(port->data, (uint16_t)user_data_of_command(user_data));
        }
}

/* A commit is done while it is submitted. */
static bool settled(const struct ublk_port *port)
{
        return io_uring_sq_ready(&port->loop->ring) == 0 && port->unsent.count == 0;
}

/* A tag whose request is being performed is taken back after its commit. */
static bool finished(const struct ublk_port *port)
{
        return port->aborted == port->depth;
}

const struct ublk_port_class ublk_port_single = {
        .fetch = fetch,
        .commit = commit,
        .completed = completed,
        .keep_uncommitted = keep_uncommitted,
        .settled = settled,
        .finished = finished,
};
