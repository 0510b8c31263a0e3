/* SPDX-License-Identifier: MIT */
/* One operation, one return value: short transfers, EAGAIN, ends and errors, and a submission queue that is
 * full. */
#include "targets/worker/io/await.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "tests/unit/temporary_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { DEPTH = 4, MANY = 300, BLOCK = 4096 };

/* The linker puts this in front of liburing's: the kernel's refusal of a submission cannot be had otherwise.
 * What also waits is let through. */
int __real_io_uring_enter2(
        unsigned fd, unsigned count, unsigned wait, unsigned flags, sigset_t *argument, size_t argument_size);
int __wrap_io_uring_enter2(
        unsigned fd, unsigned count, unsigned wait, unsigned flags, sigset_t *argument, size_t argument_size);
static unsigned refusals;

int __wrap_io_uring_enter2(
        unsigned fd, unsigned count, unsigned wait, unsigned flags, sigset_t *argument, size_t argument_size)
{
        if (refusals > 0 && !(flags & IORING_ENTER_GETEVENTS)) {
                refusals--;
                return -EBUSY;
        }
        return __real_io_uring_enter2(fd, count, wait, flags, argument, argument_size);
}

static struct io_loop loop;
static struct target_device device;
static enum io_loop_holder holder;

static bool begin(int fd)
{
        device = (struct target_device){.files = {fd}, .file_count = 1, .queue_depth = DEPTH};
        return CHECK_INT(io_loop_init(&loop, &device, 0, DEPTH, MANY, -1, holder), 0)
               && CHECK_INT(io_loop_start(&loop), 0);
}

static void end(void)
{
        CHECK_INT(loop_drive(&loop), 0);
        io_loop_destroy(&loop);
}

/* Read from the file of the loop. */
static int read_co(char *data, uint32_t length, uint64_t offset)
{
        return await_transfer(&loop, &(struct transfer){.file = IO_LOOP_FIRST_FILE,
                                             .address = (uintptr_t)data,
                                             .length = length,
                                             .offset = offset});
}

/* One call of await_*(), as a coroutine. */
struct call {
        enum { READ, WRITE, SYNC, ALLOCATE } kind;
        char *data;
        uint32_t length;
        uint64_t offset;
        int flags;
        int result;
};

static void call_co(void *argument)
{
        struct call *call = argument;
        struct target_io io = {.queue = &loop.queue};

        switch (call->kind) {
        case READ:
                call->result = read_co(call->data, call->length, call->offset);
                break;
        case WRITE:
                call->result =
                        await_write_memory(&io, 0, call->data, call->length, call->offset, call->flags);
                break;
        case SYNC:
                call->result = await_fdatasync(&io, 0);
                break;
        case ALLOCATE:
                call->result = await_fallocate(&io, 0, call->flags, call->offset, call->length);
                break;
        }
}

static int one(int fd, struct call call)
{
        if (!begin(fd))
                return -ENOTRECOVERABLE;
        CHECK_INT(co_start(&loop.coroutines, call_co, &call), 0);
        end();
        return call.result;
}

/* ---- many at a time, through a submission queue for four ---- */

struct writer {
        unsigned number;
        char written[BLOCK], read[BLOCK];
        int results[3];
};

static void write_and_read_co(void *argument)
{
        struct writer *writer = argument;
        struct target_io io = {.queue = &loop.queue};
        uint64_t offset = (uint64_t)writer->number * BLOCK;

        memset(writer->written, (int)writer->number + 1, BLOCK);
        writer->results[0] = await_write_memory(&io, 0, writer->written, BLOCK, offset, 0);
        writer->results[1] = await_fdatasync(&io, 0);
        writer->results[2] = read_co(writer->read, BLOCK, offset);
}

static void test_many(unsigned refused)
{
        static struct writer writers[MANY];
        int fd = open_temporary();

        refusals = refused;
        if (begin(fd)) {
                for (unsigned i = 0; i < MANY; i++) {
                        writers[i] = (struct writer){.number = i};
                        CHECK_INT(co_start(&loop.coroutines, write_and_read_co, &writers[i]), 0);
                }
                CHECK_INT(refusals, 0);
                CHECK(refused == 0 || loop.starved.first);
                end();
                for (unsigned i = 0; i < MANY; i++) {
                        CHECK_INT(writers[i].results[0], BLOCK);
                        CHECK_INT(writers[i].results[1], 0);
                        CHECK_INT(writers[i].results[2], BLOCK);
                        CHECK(memcmp(writers[i].written, writers[i].read, BLOCK) == 0);
                }
        }
        close(fd);
}

/* ---- transfers in pieces ---- */

struct feeder {
        int fd;
        unsigned pieces;
};

/* Fills a pipe piece by piece, with pauses in between. */
static void feed_co(void *argument)
{
        struct feeder *feeder = argument;
        char piece[100];

        for (unsigned i = 0; i < feeder->pieces; i++) {
                await_pause(&loop, 2000);
                memset(piece, 'a' + (int)i, sizeof(piece));
                CHECK_INT(write(feeder->fd, piece, sizeof(piece)), sizeof(piece));
        }
}

/* A pipe that does not block says EAGAIN when it is empty, and hands over what there is otherwise. */
static void test_pieces(void)
{
        char data[500] = "";
        struct call call = {.kind = READ, .data = data, .length = sizeof(data)};
        struct feeder feeder = {.pieces = 5};
        int fds[2];

        CHECK_INT(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
        feeder.fd = fds[1];
        if (begin(fds[0])) {
                CHECK_INT(co_start(&loop.coroutines, call_co, &call), 0);
                CHECK_INT(co_start(&loop.coroutines, feed_co, &feeder), 0);
                end();
                CHECK_INT(call.result, sizeof(data));
                for (unsigned i = 0; i < sizeof(data); i++)
                        CHECK_INT(data[i], 'a' + (int)i / 100);
        }
        close(fds[0]);
        close(fds[1]);
}

/* ---- ends and errors ---- */

static void test_end_of_file(void)
{
        char data[2 * BLOCK] = "";
        int fd = open_temporary();

        CHECK_INT(pwrite(fd, data, 1000, 0), 1000);
        CHECK_INT(one(fd, (struct call){.kind = READ, .data = data, .length = 1000}), 1000);
        CHECK_INT(one(fd, (struct call){.kind = READ, .data = data, .length = BLOCK}), -EIO);
        CHECK_INT(one(fd, (struct call){.kind = READ, .data = data, .length = BLOCK, .offset = BLOCK}), -EIO);
        close(fd);
}

static void test_errors(void)
{
        char data[BLOCK] = "";
        struct rlimit before, limit = {.rlim_cur = 2 * BLOCK, .rlim_max = RLIM_INFINITY};
        int fd = open("/dev/full", O_RDWR | O_CLOEXEC);

        CHECK_INT(one(fd, (struct call){.kind = WRITE, .data = data, .length = BLOCK}), -ENOSPC);
        close(fd);
        fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        CHECK_INT(one(fd, (struct call){.kind = WRITE, .data = data, .length = BLOCK}), -EBADF);
        CHECK_INT(one(fd, (struct call){.kind = READ, .data = data, .length = BLOCK}), BLOCK);
        CHECK_INT(one(fd, (struct call){.kind = SYNC}), -EINVAL);
        CHECK_INT(one(fd, (struct call){.kind = ALLOCATE, .length = BLOCK}), -EBADF);
        close(fd);
        fd = open_temporary();
        CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit.rlim_max = before.rlim_max;
        (void)signal(SIGXFSZ, SIG_IGN);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
        /* The first half fits: only the rest says why. */
        CHECK_INT(
                one(fd, (struct call){.kind = WRITE, .data = data, .length = BLOCK, .offset = 3 * BLOCK / 2}),
                -EFBIG);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
        close(fd);
}

static void test_allocate(void)
{
        int fd = open_temporary();
        struct stat stat;

        CHECK_INT(one(fd, (struct call){.kind = ALLOCATE, .offset = BLOCK, .length = BLOCK}), 0);
        CHECK_INT(fstat(fd, &stat), 0);
        CHECK_INT(stat.st_size, 2 * BLOCK);
        CHECK_INT(one(fd, (struct call){.kind = SYNC}), 0);
        CHECK_INT(one(fd, (struct call){.kind = ALLOCATE, .flags = FALLOC_FL_PUNCH_HOLE, .length = BLOCK}),
                -EOPNOTSUPP);
        close(fd);
}

/* A nudge ends, and changes nothing else. Those under way are limited: they may wait behind what they are to wake. */
static void test_nudge(void)
{
        struct call call = {.kind = SYNC, .result = -ENOTRECOVERABLE};
        int fd = open_temporary();
        unsigned sent = 0;

        if (begin(fd)) {
                CHECK_INT(co_start(&loop.coroutines, call_co, &call), 0);
                while (sent < MANY && io_loop_nudge(&loop))
                        sent++;
                CHECK(sent > 1 && sent < MANY);
                CHECK_INT(loop_drive(&loop), 0);
                CHECK_INT(call.result, 0);
                while (loop.nudges > 0 && CHECK_INT(loop_turn(&loop), 0))
                        continue;
                CHECK(io_loop_nudge(&loop));
                CHECK_INT(loop_turn(&loop), 0);
                CHECK_INT(loop.nudges, 0);
                end();
        }
        close(fd);
}

/* A pipe ends for its reader when the last writer has closed it. */
static void test_the_holder_of_a_file(void)
{
        int ends[2];
        char byte;

        CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        if (begin(ends[1])) {
                close(ends[1]);
                if (holder == IO_LOOP_HELD_BY_RING) {
                        CHECK_INT(read(ends[0], &byte, 1), -1);
                        CHECK_INT(errno, EAGAIN);
                } else {
                        CHECK_INT(read(ends[0], &byte, 1), 0);
                }
                end();
        }
        close(ends[0]);
}

static void test_user_data(void)
{
        static struct await await;

        CHECK_INT(user_data_kind(user_data_await(&await)), USER_DATA_AWAIT);
        CHECK_INT(user_data_kind(user_data_command(0)), USER_DATA_COMMAND);
        CHECK_INT(user_data_kind(user_data_command(UINT16_MAX)), USER_DATA_COMMAND);
        CHECK_INT(user_data_of_command(user_data_command(UINT16_MAX)), UINT16_MAX);
        CHECK_INT(user_data_of_command(user_data_command(4711)), 4711);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_user_data();
        for (holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++) {
                test_the_holder_of_a_file();
                test_many(0);
                test_many(20);
                test_pieces();
                test_end_of_file();
                test_errors();
                test_allocate();
                test_nudge();
        }
        return check_report();
}
