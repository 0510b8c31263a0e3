/* SPDX-License-Identifier: MIT */
/* io_ring: what a worker's ring may do from its start on. */
#include "targets/worker/io/io_ring.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>

static int ends[2]; /* of a pipe; the first is the ring's file 0 */

static int try(struct io_uring *ring, uint8_t operation, uint8_t flags, int fd)
{
        static char byte;
        static struct __kernel_timespec soon = {.tv_nsec = 1};
        struct io_uring_sqe *sqe = io_ring_sqe(ring);
        struct io_uring_cqe *cqe;
        int r;

        if (!CHECK(sqe))
                return 0;
        *sqe = (struct io_uring_sqe){.opcode = operation, .flags = flags, .fd = fd, .len = 1};
        sqe->addr = operation == IORING_OP_TIMEOUT ? (uintptr_t)&soon : (uintptr_t)&byte;
        CHECK_INT(io_ring_submit_and_wait(ring, 1, NULL), 1);
        if (!CHECK_INT(io_uring_peek_cqe(ring, &cqe), 0))
                return 0;
        r = cqe->res;
        io_uring_cqe_seen(ring, cqe);
        return r;
}

static void open_ring(struct io_uring *ring, bool fixed_files, unsigned extras)
{
        CHECK_INT(io_ring_open(ring, 8, 16), 0);
        if (fixed_files)
                CHECK_INT(io_uring_register_files(ring, ends, 1), 0);
        CHECK_INT(io_ring_start(ring, fixed_files, extras), 0);
}

static void test_fixed_files(void)
{
        struct io_uring ring;

        open_ring(&ring, true, 0);
        CHECK_INT(write(ends[1], "x", 1), 1);
        CHECK_INT(try(&ring, IORING_OP_READ, IOSQE_FIXED_FILE, 0), 1);
        CHECK_INT(write(ends[1], "x", 1), 1);
        CHECK_INT(try(&ring, IORING_OP_READ, IOSQE_FIXED_FILE | IOSQE_ASYNC, 0), 1);
        CHECK_INT(try(&ring, IORING_OP_TIMEOUT, IOSQE_FIXED_FILE, 0), -ETIME);
        CHECK_INT(try(&ring, IORING_OP_READ, 0, ends[0]), -EACCES);
        CHECK_INT(try(&ring, IORING_OP_TIMEOUT, 0, 0), -EACCES);
        CHECK_INT(try(&ring, IORING_OP_READ, IOSQE_FIXED_FILE | IOSQE_IO_LINK, 0), -EACCES);
        CHECK_INT(try(&ring, IORING_OP_NOP, IOSQE_FIXED_FILE | IOSQE_ASYNC, 0), 0);
        CHECK_INT(try(&ring, IORING_OP_NOP, 0, 0), -EACCES);
        CHECK_INT(try(&ring, IORING_OP_SYNC_FILE_RANGE, IOSQE_FIXED_FILE, 0), -EACCES);
        CHECK_INT(io_uring_register_files_update(&ring, 0, ends + 1, 1), -EACCES);
        CHECK_INT(io_uring_register_buffers(&ring, &(struct iovec){ends, sizeof(ends)}, 1), -EACCES);
        io_ring_close(&ring);
}

static void test_files_of_the_process(void)
{
        struct io_uring ring;

        open_ring(&ring, false, 0);
        CHECK_INT(write(ends[1], "x", 1), 1);
        CHECK_INT(try(&ring, IORING_OP_READ, 0, ends[0]), 1);
        CHECK_INT(try(&ring, IORING_OP_TIMEOUT, 0, 0), -ETIME);
        CHECK_INT(try(&ring, IORING_OP_OPENAT, 0, AT_FDCWD), -EACCES);
        CHECK_INT(try(&ring, IORING_OP_SOCKET, 0, 1), -EACCES);
        CHECK_INT(io_uring_register_files(&ring, ends, 1), -EACCES);
        io_ring_close(&ring);
}

/* Each extra, and nothing but it. */
static void test_extras(void)
{
        static const struct {
                uint8_t operation;
                unsigned extra;
        } cases[] = {
                {IORING_OP_POLL_ADD,     IO_RING_POLLS  },
                {IORING_OP_SEND,         IO_RING_SENDS  },
                {IORING_OP_RECV,         IO_RING_SENDS  },
                {IORING_OP_ASYNC_CANCEL, IO_RING_CANCELS},
                {IORING_OP_SOCKET,       0              },
                {IORING_OP_CONNECT,      0              },
                {IORING_OP_FILES_UPDATE, 0              },
        };

        for (unsigned extras = 0; extras < 2 * IO_RING_SETS_FILES; extras++) {
                struct io_uring ring;

                open_ring(&ring, true, extras);
                CHECK_INT(write(ends[1], "x", 1), 1);
                for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                        int r = try(&ring, cases[i].operation, IOSQE_FIXED_FILE, 0);

                        CHECK_INT(r == -EACCES, !(extras & cases[i].extra));
                }
                CHECK_INT(io_ring_set_file(&ring, 0, ends[0]), extras & IO_RING_SETS_FILES ? 0 : -EACCES);
                CHECK_INT(io_uring_register_buffers(&ring, &(struct iovec){ends, sizeof(ends)}, 1), -EACCES);
                CHECK_INT(try(&ring, IORING_OP_READ, IOSQE_FIXED_FILE, 0), 1);
                io_ring_close(&ring);
        }
}

static void test_nothing_before_the_start(void)
{
        struct io_uring ring;
        struct io_uring_sqe *sqe;

        CHECK_INT(io_ring_open(&ring, 8, 16), 0);
        sqe = io_ring_sqe(&ring);
        if (CHECK(sqe))
                *sqe = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
        CHECK_INT(io_ring_submit(&ring), -EBADFD);
        io_ring_close(&ring);
}

int main(void)
{
        CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
        test_fixed_files();
        test_files_of_the_process();
        test_extras();
        test_nothing_before_the_start();
        return check_report();
}
