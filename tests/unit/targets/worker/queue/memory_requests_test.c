/* SPDX-License-Identifier: MIT */
/* How a queue moves the requests of a file in memory: by system calls, with all answers of a round in one batch. */
#include "tests/unit/targets/worker/queue/queue_world.h"

#include <string.h>

enum { DEPTH = 8, BLOCK = 4096, FILE_OFFSET = 2 * BLOCK };

static int file;

static unsigned callbacks;

static int perform(struct target_io *io)
{
        callbacks++;
        return (int)io->length;
}

/* ---- the driver ---- */

static unsigned answered;

/* It takes each answer. */
static void take_answers(struct ublk_port *port)
{
        port->batch.sent = port->batch.end;
}

static unsigned all_arrived(struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags)
{
        static uint16_t tags[DEPTH];

        (void)cqe;
        for (uint16_t tag = 0; tag < DEPTH; tag++)
                tags[tag] = tag;
        port->batch.full = port->batch.end + 2 * DEPTH;
        *ret_tags = tags;
        return DEPTH;
}

/* Have a request of each tag arrive, and wait for the answers. Each round is one of the queue. */
static void request_all(void)
{
        answered = queue->port.batch.end;
        world_put_command(0);
        while (queue->port.batch.end - answered < DEPTH && CHECK_INT(io_loop_submit(&queue->loop, true), 0)) {
                queue_meter_round(&queue->meter);
                store_end_round(&queue->store_end);
                queue->take_completions(queue);
                io_loop_run_ready(&queue->loop);
        }
        CHECK_INT(queue->port.batch.end - answered, DEPTH);
        CHECK_INT(queue->port.failure, 0);
        CHECK_INT(callbacks, 0);
}

/* Check the answers of request_all(), which came in the order of tags. */
static void check_answers(int result)
{
        for (uint16_t tag = 0; tag < DEPTH; tag++) {
                const struct ublk_batch_element_with_address *answer =
                        (const void *)ublk_batch_place(&queue->port.batch, answered + tag);

                CHECK_INT(answer->element.tag, tag);
                CHECK_INT(answer->element.result, result);
                CHECK(answer->address == (uintptr_t)queue->requests[tag].data.address);
        }
}

static char letter_of(uint16_t tag)
{
        return (char)('a' + tag);
}

/* ---- the tests ---- */

/* The first requests of a queue are answered in parts, see first_requests_test.c. */
static void test_first(void)
{
        world_describe_all(UBLK_IO_OP_READ, BLOCK);
        request_all();
        check_answers(BLOCK);
}

static void test_writes(void)
{
        world_describe_all(UBLK_IO_OP_WRITE, BLOCK);
        for (uint16_t tag = 0; tag < DEPTH; tag++)
                memset(queue->requests[tag].data.address, letter_of(tag), BLOCK);
        request_all();
        check_answers(BLOCK);
        for (uint16_t tag = 0; tag < DEPTH; tag++) {
                char block[BLOCK];

                CHECK_INT(pread(file, block, BLOCK, FILE_OFFSET + tag * BLOCK), BLOCK);
                CHECK_INT(block[0], letter_of(tag));
                CHECK(memcmp(block, block + 1, BLOCK - 1) == 0);
        }
}

static void test_reads(void)
{
        world_describe_all(UBLK_IO_OP_READ, BLOCK);
        for (uint16_t tag = 0; tag < DEPTH; tag++)
                memset(queue->requests[tag].data.address, 0, BLOCK);
        request_all();
        check_answers(BLOCK);
        for (uint16_t tag = 0; tag < DEPTH; tag++) {
                const char *block = queue->requests[tag].data.address;

                CHECK_INT(block[0], letter_of(tag));
                CHECK(memcmp(block, block + 1, BLOCK - 1) == 0);
        }
}

/* Of the reads before: none took a coroutine, and each is counted once. */
static void test_counts(void)
{
        const struct op_stats *reads = queue->meter.ops[STATS_READ];
        uint64_t ended = 0;

        for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
                ended += reads->latency[i];
        CHECK_INT(reads->begun, 2 * DEPTH);
        CHECK_INT(ended, 2 * DEPTH);
        CHECK_INT(reads->bytes, 2 * DEPTH * BLOCK);
        CHECK_INT(queue->loop.coroutines.opened, 0);
}

/* The last block is gone: then no answer of its round is a success, though the bytes of the others were moved. */
static void test_a_file_that_was_cut_off(void)
{
        CHECK_INT(ftruncate(file, FILE_OFFSET + (DEPTH - 1) * BLOCK), 0);
        request_all();
        check_answers(-EIO);
        CHECK(!queue->store_end.holds);
}

int main(void)
{
        static const struct target_desc desc = {.name = "file"};
        static const struct target target = {.desc = &desc, .read = perform, .write = perform};
        struct target_device device = {.target = &target,
                .size = DEPTH * BLOCK,
                .queue_depth = DEPTH,
                .file_count = 1,
                .linear = true,
                .linear_offset = FILE_OFFSET,
                .linear_end_known = true,
                .linear_in_memory = true};

        device.files[0] = file = memfd_create("file", MFD_CLOEXEC);
        CHECK_INT(ftruncate(file, FILE_OFFSET + DEPTH * BLOCK), 0);
        if (!world_open(&device, BLOCK, true))
                return check_report();
        driver.send = take_answers;
        driver.completed = all_arrived;
        CHECK(queue->profile.inline_transfer && queue->profile.linear);
        test_first();
        test_writes();
        test_reads();
        test_counts();
        test_a_file_that_was_cut_off();
        world_close();
        close(file);
        return check_report();
}
