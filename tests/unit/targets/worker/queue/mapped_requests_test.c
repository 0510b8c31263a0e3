/* SPDX-License-Identifier: MIT */
/* Which requests of a tree of maps a queue moves by itself: those whose bytes lie in one file, and of these
 * not one that comes back short. All others get their coroutine. */
#include "tests/unit/targets/worker/queue/queue_world.h"

#include <string.h>

enum {
        DEPTH = 8,
        BLOCK = 4096,
        FILES = 2,
        BLOCKS = 16,
        WIDE = 5 /* the tag of two blocks */,
        FROM_CALLBACK = 'z'
};

static unsigned answered, callbacks;
static int results[DEPTH];

/* Even blocks lie in the first file, and odd ones in the second. */
static bool locate(const struct target_queue *of_disk, enum io_op op, uint64_t offset, uint32_t length,
        struct target_place *ret)
{
        CHECK(of_disk == &queue->loop.queue);
        CHECK(op == IO_READ || op == IO_WRITE);
        *ret = (struct target_place){
                .file = offset / BLOCK % FILES, .offset = offset / BLOCK / FILES * BLOCK};
        return length == BLOCK;
}

static int perform(struct target_io *io)
{
        callbacks++;
        memset(io->data, FROM_CALLBACK, io->length);
        return (int)io->length;
}

static char letter_of(uint64_t block)
{
        return (char)('a' + block);
}

/* ---- the driver ---- */

static bool note_answer(struct ublk_port *port, uint16_t tag, int result)
{
        (void)port;
        results[tag] = result;
        answered++;
        return true;
}

static uint16_t arriving;

static unsigned one_arrived(struct ublk_port *port, const struct io_uring_cqe *cqe, const uint16_t **ret_tags)
{
        (void)port, (void)cqe;
        *ret_tags = &arriving;
        return 1;
}

static void describe_all(unsigned op)
{
        world_describe_all(op, BLOCK);
        world_describe(WIDE, op, WIDE * BLOCK, 2 * BLOCK);
}

/* Have a request arrive, and wait for its answer. Return the memory with its bytes. */
static char *request(uint16_t tag)
{
        arriving = tag;
        answered = callbacks = 0;
        world_put_command(0);
        while (answered == 0 && CHECK_INT(io_loop_submit(&queue->loop, true), 0)) {
                queue->take_completions(queue);
                io_loop_run_ready(&queue->loop);
        }
        CHECK_INT(answered, 1);
        CHECK_INT(queue->port.failure, 0);
        return queue->requests[tag].data.address;
}

/* ---- the tests ---- */

static void test_reads(void)
{
        describe_all(UBLK_IO_OP_READ);
        for (uint16_t tag = 0; tag < DEPTH; tag++) {
                const char *bytes = request(tag);

                CHECK_INT(results[tag], tag == WIDE ? 2 * BLOCK : BLOCK);
                CHECK_INT(callbacks, tag == WIDE);
                CHECK_INT(bytes[0], tag == WIDE ? FROM_CALLBACK : letter_of(tag));
                CHECK(memcmp(bytes, bytes + 1, BLOCK - 1) == 0);
        }
}

static void test_writes(const int *files)
{
        describe_all(UBLK_IO_OP_WRITE);
        for (uint16_t tag = 0; tag < DEPTH; tag++) {
                char block[BLOCK];

                memset(queue->requests[tag].data.address, 'A' + tag, BLOCK);
                (void)request(tag);
                CHECK_INT(results[tag], tag == WIDE ? 2 * BLOCK : BLOCK);
                CHECK_INT(callbacks, tag == WIDE);
                CHECK_INT(pread(files[tag % FILES], block, BLOCK, tag / FILES * BLOCK), BLOCK);
                CHECK_INT(block[0], tag == WIDE ? letter_of(tag) : 'A' + tag);
                CHECK(memcmp(block, block + 1, BLOCK - 1) == 0);
        }
}

/* The callback finds out why. */
static void test_a_short_read(const int *files)
{
        describe_all(UBLK_IO_OP_READ);
        CHECK_INT(ftruncate(files[1], BLOCK + 512), 0);
        CHECK_INT(request(3)[0], FROM_CALLBACK);
        CHECK_INT(callbacks, 1);
        CHECK_INT(request(2)[0], 'A' + 2);
        CHECK_INT(callbacks, 0);
}

static void make_files(int files[static FILES])
{
        for (unsigned i = 0; i < FILES; i++)
                files[i] = memfd_create("file", MFD_CLOEXEC);
        for (unsigned block = 0; block < BLOCKS; block++) {
                char bytes[BLOCK];

                memset(bytes, letter_of(block), BLOCK);
                CHECK_INT(pwrite(files[block % FILES], bytes, BLOCK, block / FILES * BLOCK), BLOCK);
        }
}

int main(void)
{
        static const struct target_desc desc = {.name = "map"};
        static const struct target target = {
                .desc = &desc, .read = perform, .write = perform, .locate = locate};
        struct target_device device = {
                .target = &target, .size = BLOCKS * BLOCK, .queue_depth = DEPTH, .file_count = FILES};

        make_files(device.files);
        if (!world_open(&device, 2 * BLOCK, false))
                return check_report();
        driver.commit = note_answer;
        driver.completed = one_arrived;
        CHECK(queue->profile.mapped && !queue->profile.linear);
        test_reads();
        test_writes(device.files);
        test_a_short_read(device.files);
        world_close();
        for (unsigned i = 0; i < FILES; i++)
                close(device.files[i]);
        return check_report();
}
