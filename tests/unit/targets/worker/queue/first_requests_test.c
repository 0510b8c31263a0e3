/* SPDX-License-Identifier: MIT */
/* When a queue answers its first requests, which come all at once after a recovery. */
#include "tests/unit/targets/worker/queue/queue_world.h"

#include <string.h>

enum { DEPTH = 16, BLOCK = 4096, SENT_MAX = 16 };

static const uint16_t *arriving;
static unsigned arriving_count, sent[SENT_MAX], sent_count;

static int read_nothing(struct target_io *io)
{
        return (int)io->length;
}

enum { ARRIVAL, COMMIT };

/* Of the driver: it has taken all answers so far, and may use the list of tags again. The answers of the part before
 * have been submitted. */
static void send_to_none(struct ublk_port *port)
{
        static const uint16_t reused[DEPTH] = {[0 ... DEPTH - 1] = UINT16_MAX};

        CHECK_INT(io_uring_sq_ready(&queue->loop.ring), 0);
        world_put_command(COMMIT);
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

/* Turn the loop once, with these tags. Their list is not theirs any more after the first answers. */
static void arrive(unsigned count)
{
        static uint16_t tags[DEPTH];

        for (uint16_t tag = 0; tag < DEPTH; tag++)
                tags[tag] = tag;
        arriving = tags;
        arriving_count = count;
        sent_count = 0;
        world_put_command(ARRIVAL);
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
        struct target_device device = {.target = &target, .size = DEPTH * BLOCK, .queue_depth = DEPTH};

        if (!world_open(&device, BLOCK, true))
                return check_report();
        driver.send = send_to_none;
        driver.completed = all_arrived;
        world_describe_all(UBLK_IO_OP_READ, BLOCK);
        CHECK(!served);
        test_first();
        CHECK(served);
        test_later();
        world_close();
        return check_report();
}
