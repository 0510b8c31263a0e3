/* SPDX-License-Identifier: MIT */
/* When a queue answers its first requests, which come all at once after a recovery. The descriptors lie in a file in
 * place of the driver, and a NOP stands for each arrival. */
#include "targets/worker/queue/queue_requests.h"
#include "targets/worker/queue/ublk_queue.h"
#include "tests/unit/check.h"
#include "tests/unit/shared_region.h"

#include <string.h>

enum { DEPTH = 16, SECTORS = 8, SENT_MAX = 16 };

static struct ublk_queue *queue;
static const uint16_t *arriving;
static unsigned arriving_count, sent[SENT_MAX], sent_count;

static int read_nothing(struct target_io *io)
{
        return (int)io->length;
}

enum { ARRIVAL, COMMIT };

/* Put a NOP into the ring, in place of a command. */
static void put_command(uint64_t what)
{
        struct io_uring_sqe *sqe = io_loop_sqe(&queue->loop);

        io_uring_prep_nop(sqe);
        io_loop_set_file(&queue->loop, sqe, IO_LOOP_COMMAND_FILE);
        io_uring_sqe_set_data64(sqe, user_data_command(what));
}

/* Of the driver: it has taken all answers so far, and may use the list of tags again. The answers of the part before
 * have been submitted. */
static void send_to_none(struct ublk_port *port)
{
        static const uint16_t reused[DEPTH] = {[0 ... DEPTH - 1] = UINT16_MAX};

        CHECK_INT(io_uring_sq_ready(&queue->loop.ring), 0);
        put_command(COMMIT);
        if (sent_count < SENT_MAX)
                sent[sent_count] = port->batch.end - port->batch.sent;
        sent_count++;
        port->batch.sent = port->batch.end;
        if (arriving)
                memcpy((void *)(uintptr_t)arriving, reused, arriving_count * sizeof(*arriving));
}

static unsigned all_arrived(struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags)
{
        if (user_data_of_command(cqe->user_data) == COMMIT)
                return 0;
        port->batch.full = port->batch.end + 2 * DEPTH;
        *ret_tags = arriving;
        return arriving_count;
}

static void write_descriptors(int fd)
{
        struct ublksrv_io_desc descriptors[DEPTH];

        for (unsigned tag = 0; tag < DEPTH; tag++)
                descriptors[tag] = (struct ublksrv_io_desc){
                        .op_flags = UBLK_IO_OP_READ,
                        .nr_sectors = SECTORS,
                        .start_sector = (uint64_t)tag * SECTORS,
                };
        CHECK_INT(pwrite(fd, descriptors, sizeof(descriptors), UBLKSRV_CMD_BUF_OFFSET), sizeof(descriptors));
}

/* Turn the loop once, with these tags. Their list is not theirs any more after the first answers. */
static void arrive(unsigned count)
{
        static uint16_t tags[DEPTH];

        for (uint16_t tag = 0; tag < DEPTH; tag++)
                tags[tag] = tag;
        arriving = tags;
        arriving_count = count;
        sent_count = 0;
        put_command(ARRIVAL);
        CHECK_INT(io_loop_submit(&queue->loop, true), 0);
        queue->take_completions(queue);
        CHECK_INT(queue->port.failure, 0);
        CHECK_INT(io_uring_sq_ready(&queue->loop.ring), 0);
        arriving = NULL;
}

/* The first answer waits for one request, the next for one more, and so on: none for all. */
static void test_first(void)
{
        static const unsigned expected[] = {1, 1, 2, 4, 5};

        arrive(13);
        if (!CHECK_INT(sent_count, ARRAY_SIZE(expected)))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
                CHECK_INT(sent[i], expected[i]);
        CHECK_INT(queue->port.batch.end, 13);
}

/* All others go together, at the end of their round. */
static void test_later(void)
{
        arrive(DEPTH);
        CHECK_INT(sent_count, 0);
        CHECK_INT(queue->port.batch.end - queue->port.batch.sent, DEPTH);
}

int main(void)
{
        static const struct target_desc desc = {.flags = TARGET_NEVER_WAITS};
        static const struct target target = {.desc = &desc, .read = read_nothing};
        struct target_device device = {
                .target = &target,
                .size = DEPTH * SECTORS * 512,
                .logical_block_size = 512,
                .queues = 1,
                .queue_depth = DEPTH,
                .store = {.given = -1, .kept = -1}
        };
        const struct shared shared = shared_region_new();
        int driver = memfd_create("descriptors", MFD_CLOEXEC);
        struct ublk_port_class class = ublk_port_batch;
        atomic_bool served = false;
        const struct ublk_queue_setup setup = {
                .device = &device,
                .depth = DEPTH,
                .max_io_size = SECTORS * 512,
                .route = {.path = DATA_PATH_COPY, .batch = true},
                .command_fd = driver,
                .served = &served,
                .shared = &shared
        };

        write_descriptors(driver);
        if (!CHECK_INT(ublk_queue_open(&setup, &queue), 0))
                return check_report();
        class.send = send_to_none;
        class.completed = all_arrived;
        queue->port.class = &class;
        CHECK(!served);
        test_first();
        CHECK(served);
        test_later();
        queue->port.class = &ublk_port_batch;
        ublk_queue_close(queue);
        close(driver);
        return check_report();
}
