/* SPDX-License-Identifier: MIT */
/* How a queue talks to the driver in batches (BATCH_IO, Linux 7.0).
 *
 * PREP offers all tags at once. One FETCH stays with the driver; each time that requests have arrived it
 * posts a completion, with the tags written into a buffer that it has taken from our ring of buffers. Answers
 * gather in a circle of elements, and go in one COMMIT with the next submission.
 *
 * The driver reads the elements of a COMMIT while it is submitted, but only its completion
 * reports that it has read them, and how many it took. What it did not take is committed again. Elements therefore
 * stay in the circle until then. It has twice as many places as there are tags: a tag cannot be committed
 * again before it has arrived again, and so its last element has been read.
 *
 * A queue is over when FETCH comes back as aborted, all that has arrived is committed, and no COMMIT is under
 * way: after that the driver has nothing of ours. */
#include "targets/worker/queue/ublk_port_ring.h"
#include "ublkd/base/cleanup.h"

enum command { COMMAND_PREP, COMMAND_FETCH, COMMAND_COMMIT, _COMMAND_MAX };

enum {
        COMMAND_BITS = 2,
        COUNT_BITS = 16,
        BUFFER_GROUP = 0,
        BUFFERS_MAX = 64, /* more arrivals than that, unseen by us: FETCH ends, and is sent again */
};
_Static_assert(_COMMAND_MAX <= 1 << COMMAND_BITS, "a command fits into its bits");
_Static_assert(UBLK_QUEUE_DEPTH_LIMIT < 1 << COUNT_BITS, "a count of tags fits into its bits");

static uint64_t mark(enum command command, unsigned count)
{
        return user_data_command((uint64_t)count << COMMAND_BITS | command);
}

/* False: no submission entry is free in this round. */
static bool send_elements(struct ublk_port *port, uint32_t operation, enum command command,
        const char *elements, unsigned count)
{
        const struct data_route *route = &port->data->route;
        const struct ublk_batch_command batch_command = {
                .queue = (uint16_t)port->loop->queue.index,
                .flags = route->path == DATA_PATH_COPY ? UBLK_BATCH_F_HAS_BUF_ADDR
                         : route->auto_buffers         ? UBLK_BATCH_F_AUTO_BUF_REG_FALLBACK
                                                       : 0,
                .elements = (uint16_t)count,
                .element_size = (uint8_t)port->batch.element_size,
        };
        struct io_uring_sqe *sqe = ublk_port_command(port, operation, &batch_command);

        if (!sqe)
                return false;
        sqe->addr = (uintptr_t)elements;
        sqe->len = count * port->batch.element_size;
        sqe->user_data = mark(command, count);
        port->loop->inline_cqes++;
        return true;
}

static bool send_fetch(struct ublk_port *port)
{
        const struct ublk_batch_command command = {
                .queue = (uint16_t)port->loop->queue.index, .element_size = sizeof(uint16_t)};
        struct io_uring_sqe *sqe = ublk_port_command(port, UBLK_U_IO_FETCH_IO_CMDS, &command);

        if (!sqe)
                return false;
        sqe->rw_flags = IORING_URING_CMD_MULTISHOT;
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = BUFFER_GROUP;
        sqe->user_data = mark(COMMAND_FETCH, 0);
        return true;
}

/* ---- lists of tags ---- */

static void offer_buffer(struct ublk_batch *batch, uint16_t id)
{
        io_uring_buf_ring_add(batch->buffers, batch->lists + (size_t)id * batch->list_length,
                batch->list_length * (unsigned)sizeof(uint16_t), id,
                io_uring_buf_ring_mask(batch->buffer_count), 0);
        io_uring_buf_ring_advance(batch->buffers, 1);
}

/* The list that was read last is not needed any more. */
static void take_back_list(struct ublk_batch *batch)
{
        if (batch->lent >= 0)
                offer_buffer(batch, (uint16_t)batch->lent);
        batch->lent = -1;
}

static size_t buffer_ring_size(const struct ublk_batch *batch)
{
        return batch->buffer_count * sizeof(struct io_uring_buf);
}

static int make_buffers(struct ublk_port *port)
{
        struct ublk_batch *batch = &port->batch;
        struct io_uring_buf_reg registration = {.bgid = BUFFER_GROUP};
        int r;

        batch->list_length = port->depth < UBLK_PORT_LIST_MAX ? port->depth : UBLK_PORT_LIST_MAX;
        batch->buffer_count = 1;
        while (batch->buffer_count < port->depth && batch->buffer_count < BUFFERS_MAX)
                batch->buffer_count *= 2;
        batch->lists = calloc((size_t)batch->buffer_count * batch->list_length, sizeof(*batch->lists));
        batch->buffers = aligned_alloc(4096, (buffer_ring_size(batch) + 4095) & ~(size_t)4095);
        if (!batch->lists || !batch->buffers)
                return -ENOMEM;
        io_uring_buf_ring_init(batch->buffers);
        registration.ring_addr = (uintptr_t)batch->buffers;
        registration.ring_entries = batch->buffer_count;
        r = io_uring_register_buf_ring(&port->loop->ring, &registration, 0);
        for (unsigned i = 0; r >= 0 && i < batch->buffer_count; i++)
                offer_buffer(batch, (uint16_t)i);
        return r;
}

static int init(struct ublk_port *port)
{
        struct ublk_batch *batch = &port->batch;

        batch->element_size = port->data->route.path == DATA_PATH_COPY
                                      ? sizeof(struct ublk_batch_element_with_address)
                                      : sizeof(struct ublk_batch_element);
        batch->lent = -1;
        for (batch->full = 1; batch->full < 2 * port->depth;)
                batch->full *= 2;
        batch->mask = batch->full - 1;
        batch->elements = calloc(batch->full, batch->element_size);
        return batch->elements ? make_buffers(port) : -ENOMEM;
}

static void destroy(struct ublk_port *port)
{
        free(port->batch.elements);
        free(port->batch.lists);
        free(port->batch.buffers); /* the ring holds on to its pages as long as it needs them */
}

/* ---- offering, committing ---- */

static bool commit(struct ublk_port *port, uint16_t tag, int result)
{
        const struct ublk_batch_element answer = ublk_batch_element(port, tag, result);

        return ublk_batch_commit(
                &port->batch, &answer, port->copies, port->copies ? io_data_of(port->data, tag) : NULL);
}

/* PREP first, and alone: until all tags are offered, FETCH would be refused (ublk_batch_attach()). */
static int fetch(struct ublk_port *port)
{
        struct io_uring_cqe *cqe;
        int r;

        for (unsigned tag = 0; tag < port->depth; tag++)
                (void)commit(port, (uint16_t)tag, 0);
        port->batch.end = 0; /* they do not answer anything */
        if (!send_elements(port, UBLK_U_IO_PREP_IO_CMDS, COMMAND_PREP, port->batch.elements, port->depth))
                return -EBUSY;
        r = ublk_port_submit_all(port);
        if (r >= 0)
                r = io_uring_wait_cqe(&port->loop->ring, &cqe);
        if (r < 0)
                return r;
        r = cqe->res;
        io_uring_cqe_seen(&port->loop->ring, cqe);
        port->loop->inline_cqes = 0;
        if (r < 0)
                return r;
        if (!send_fetch(port))
                return -EBUSY;
        return ublk_port_submit_all(port);
}

/* One COMMIT, or two where the circle closes. */
static void send_all(struct ublk_port *port)
{
        struct ublk_batch *batch = &port->batch;

        take_back_list(batch);
        if (__builtin_expect(batch->refetch, 0))
                batch->refetch = !send_fetch(port);
        while (batch->sent != batch->end) {
                unsigned to_edge = batch->mask + 1 - (batch->sent & batch->mask);
                unsigned count = batch->end - batch->sent;

                if (count > to_edge)
                        count = to_edge;
                if (count > port->depth) /* E2BIG */
                        count = port->depth;
                if (!send_elements(port, UBLK_U_IO_COMMIT_IO_CMDS, COMMAND_COMMIT,
                            ublk_batch_place(batch, batch->sent), count))
                        return;
                batch->sent += count;
        }
}

/* ---- completions ---- */

/* COMMITs complete in the order in which they were sent: each is done while it is submitted. What the driver
 * did not take goes to the end of the circle; whatever was wrong with the first of it, alone it returns that. */
static void committed(struct ublk_port *port, unsigned count, int result)
{
        struct ublk_batch *batch = &port->batch;
        unsigned taken = result > 0 ? (unsigned)result / batch->element_size : 0;

        if (__builtin_expect(result < 0 && result != -EAGAIN && result != -EINTR && result != -ENOMEM, 0)) {
                port->failure = result;
                return;
        }
        for (; __builtin_expect(taken < count, 0); taken++) {
                struct ublk_batch_element again =
                        *(const struct ublk_batch_element *)ublk_batch_place(batch, batch->first + taken);
                bool put;

                put = commit(port, again.tag, again.result);
                assert(put); /* there are two places for each tag, and this one has not arrived again */
                batch->due++;
        }
        batch->first += count;
        batch->full += count;
}

static void fetch_ended(struct ublk_port *port, int result)
{
        if (result == UBLK_IO_RES_ABORT)
                port->aborted = port->depth;
        else if (result == -ENOBUFS || result >= 0) /* we were slow; or it has done enough for once */
                port->batch.refetch = true;
        else
                port->failure = result;
}

static unsigned arrived(struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags)
{
        struct ublk_batch *batch = &port->batch;
        unsigned count = cqe->res > 0 ? (unsigned)cqe->res / (unsigned)sizeof(uint16_t) : 0;

        take_back_list(batch);
        if (cqe->flags & IORING_CQE_F_BUFFER) {
                batch->lent = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
                *ret_tags = batch->lists + (size_t)batch->lent * batch->list_length;
        } else {
                count = 0;
        }
        if (__builtin_expect(!(cqe->flags & IORING_CQE_F_MORE), 0))
                fetch_ended(port, cqe->res);
        batch->due += count;
        return count;
}

static unsigned completed(struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags)
{
        uint64_t what = user_data_of_command(cqe->user_data);

        switch ((enum command)(what & ((1 << COMMAND_BITS) - 1))) {
        case COMMAND_FETCH:
                return arrived(port, cqe, ret_tags);
        case COMMAND_COMMIT:
                committed(port, (unsigned)(what >> COMMAND_BITS), cqe->res);
                return 0;
        default:
                port->failure = -EPROTO;
                return 0;
        }
}

/* Sent ones, too: only their completions show which of them the driver took. */
static void keep_uncommitted(const struct ublk_port *port)
{
        const struct ublk_batch *batch = &port->batch;

        for (unsigned i = batch->first; i != batch->end; i++)
                io_data_keep_uncommitted(
                        port->data, ((const struct ublk_batch_element *)ublk_batch_place(batch, i))->tag);
}

static bool settled(const struct ublk_port *port)
{
        return port->batch.first == port->batch.end && port->unsent.count == 0;
}

static bool finished(const struct ublk_port *port)
{
        return port->aborted == port->depth && port->batch.due == port->batch.end && settled(port);
}

const struct ublk_port_class ublk_port_batch = {
        .init = init,
        .destroy = destroy,
        .fetch = fetch,
        .commit = commit,
        .completed = completed,
        .send = send_all,
        .keep_uncommitted = keep_uncommitted,
        .settled = settled,
        .finished = finished,
};
