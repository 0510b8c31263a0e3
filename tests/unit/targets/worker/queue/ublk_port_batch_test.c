/* SPDX-License-Identifier: MIT */
/* What a queue makes of a driver that takes fewer answers than it was given, or has run out of buffers. The
 * entries are read where they wait to be submitted, and the driver's completions are made up. */
#include "targets/worker/io/ublk_command.h"
#include "targets/worker/queue/ublk_port.h"
#include "tests/unit/check.h"

enum { DEPTH = 4, ROUNDS = 20, SENT_MAX = 8 };

static struct io_loop loop;
static struct target_device device;
static struct io_data data;
static struct ublk_port port;
static struct io_uring_sqe sent[SENT_MAX];
static uint64_t fetch_mark;

/* What the port has to say now; none of it reaches the kernel. */
static unsigned send_all(void)
{
        struct io_uring_sq *sq = &loop.ring.sq;
        unsigned count;

        port.class->send(&port);
        count = sq->sqe_tail - sq->sqe_head;
        CHECK(count <= SENT_MAX);
        for (unsigned i = 0; i < count && i < SENT_MAX; i++)
                sent[i] = sq->sqes[(sq->sqe_head + i) & *sq->kring_mask];
        sq->sqe_tail = sq->sqe_head;
        loop.inline_cqes = 0;
        return count;
}

static unsigned complete(uint64_t user_data, int result, unsigned flags)
{
        const struct io_uring_cqe cqe = {.user_data = user_data, .res = result, .flags = flags};
        const uint16_t *tags;

        return port.class->completed(&port, &cqe, &tags);
}

static void begin(void)
{
        const struct data_route route = {.path = DATA_PATH_COPY, .batch = true};

        device = (struct target_device){.queue_depth = DEPTH};
        CHECK_INT(io_loop_init(&loop, &device, 0, DEPTH, DEPTH, -1, IO_LOOP_HELD_BY_RING), 0);
        CHECK_INT(io_data_init(&data, &loop, &route, DEPTH, 4096, -1), 0);
        CHECK_INT(ublk_port_init(&port, &loop, &data, DEPTH), 0);
        CHECK_INT(io_loop_start(&loop), 0);
        port.batch.refetch = true;
        CHECK_INT(send_all(), 1);
        fetch_mark = sent[0].user_data;
}

static void end(void)
{
        ublk_port_destroy(&port);
        io_data_destroy(&data);
        io_loop_destroy(&loop);
}

static void all_arrive(void)
{
        for (uint16_t tag = 0; tag < DEPTH; tag++)
                port.batch.lists[tag] = tag;
        CHECK_INT(
                complete(fetch_mark, DEPTH * (int)sizeof(uint16_t), IORING_CQE_F_BUFFER | IORING_CQE_F_MORE),
                DEPTH);
}

static const struct ublk_batch_element *element(const struct io_uring_sqe *sqe, unsigned index)
{
        return (const struct ublk_batch_element *)((const char *)(uintptr_t)sqe->addr
                                                   + (size_t)index * port.batch.element_size);
}

/* Each answer goes again until it is taken, with its own result, and never after that: all around the circle.
 */
static void test_taken_one_at_a_time(void)
{
        begin();
        for (int round = 0; round < ROUNDS; round++) {
                int taken[DEPTH] = {0};

                all_arrive();
                for (uint16_t tag = 0; tag < DEPTH; tag++)
                        ublk_port_commit(&port, tag, round * DEPTH + tag);
                for (int tries = 0; tries < DEPTH && port.batch.first != port.batch.end; tries++) {
                        unsigned count = send_all();

                        for (unsigned i = 0; i < count; i++) {
                                const struct ublk_batch_element *first = element(&sent[i], 0);

                                CHECK_INT((uint32_t)sent[i].off, UBLK_U_IO_COMMIT_IO_CMDS);
                                CHECK_INT(first->result, round * DEPTH + first->tag);
                                taken[first->tag]++;
                                CHECK_INT(complete(sent[i].user_data, (int)port.batch.element_size, 0), 0);
                        }
                }
                for (unsigned tag = 0; tag < DEPTH; tag++)
                        CHECK_INT(taken[tag], 1);
                CHECK_INT(port.batch.first, port.batch.end);
        }
        CHECK_INT(port.failure, 0);
        CHECK_INT(send_all(), 0);
        end();
}

static void test_none_taken(void)
{
        static const struct {
                int result, failure;
                unsigned again;
        } rows[] = {
                {-EAGAIN, 0,       1},
                {-ENOMEM, 0,       1},
                {-EINVAL, -EINVAL, 0},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                begin();
                all_arrive();
                ublk_port_commit(&port, 2, 7);
                CHECK_INT(send_all(), 1);
                CHECK_INT(complete(sent[0].user_data, rows[i].result, 0), 0);
                CHECK_INT(port.failure, rows[i].failure);
                CHECK_INT(send_all(), rows[i].again);
                CHECK_INT(element(&sent[0], 0)->tag, 2);
                CHECK_INT(element(&sent[0], 0)->result, 7);
                end();
        }
}

/* A FETCH that ended on ENOBUFS is sent again, once. */
static void test_fetched_again(void)
{
        begin();
        CHECK_INT(complete(fetch_mark, -ENOBUFS, 0), 0);
        CHECK_INT(port.failure, 0);
        CHECK_INT(port.aborted, 0);
        CHECK_INT(send_all(), 1);
        CHECK_INT((uint32_t)sent[0].off, UBLK_U_IO_FETCH_IO_CMDS);
        CHECK(sent[0].flags & IOSQE_BUFFER_SELECT);
        CHECK_INT(sent[0].rw_flags, IORING_URING_CMD_MULTISHOT);
        CHECK_INT(send_all(), 0);
        end();
}

/* Over only when what has arrived is answered, too, and the driver has confirmed that it took it. */
static void test_finished(void)
{
        begin();
        all_arrive();
        CHECK_INT(complete(fetch_mark, UBLK_IO_RES_ABORT, 0), 0);
        for (uint16_t tag = 0; tag < DEPTH; tag++) {
                CHECK(!port.class->finished(&port));
                ublk_port_commit(&port, tag, 0);
        }
        for (unsigned i = send_all(); i > 0; i--) {
                CHECK(!port.class->finished(&port));
                complete(sent[i - 1].user_data, (int)sent[i - 1].len, 0);
        }
        CHECK(port.class->finished(&port));
        CHECK_INT(send_all(), 0);
        end();
}

int main(void)
{
        test_taken_one_at_a_time();
        test_none_taken();
        test_fetched_again();
        test_finished();
        return check_report();
}
