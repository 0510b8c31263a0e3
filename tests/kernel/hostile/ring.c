/* SPDX-License-Identifier: MIT */
/* What a ring could be used for. */
#include "tests/kernel/hostile/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the queue's loop takes for a tick, and so for nothing: USER_DATA_TICK with bits of ours. */
#define MARK UINT64_C(0x486f7374696c6507)

enum { COMMAND_FILE = 0, GETS_MAX = 1000 };

static char text[512];
#define ADDRESS(of) ((uint64_t)(uintptr_t)(of))

static int take_result(struct io_uring *ring)
{
        unsigned head = *ring->cq.khead, tail = *ring->cq.ktail;

        for (; head != tail; head++) {
                struct io_uring_cqe *cqe = &ring->cq.cqes[head & *ring->cq.kring_mask];

                if (cqe->user_data != MARK)
                        continue;
                cqe->user_data = 3; /* seen */
                return cqe->res < 0 ? cqe->res : 0;
        }
        return 1;
}

int ring_attack_try(struct io_uring *ring, const struct ring_attack *attack)
{
        unsigned registered = ring->enter_ring_fd != ring->ring_fd ? IORING_ENTER_REGISTERED_RING : 0;
        struct io_uring_sqe *sqe = &ring->sq.sqes[ring->sq.sqe_tail & *ring->sq.kring_mask];
        int r;

        *sqe = (struct io_uring_sqe){.opcode = attack->opcode,
                .flags = attack->flags,
                .fd = attack->fd,
                .off = attack->off,
                .addr = attack->address,
                .len = attack->length,
                .rw_flags = (int)attack->more,
                .user_data = MARK};
        ring->sq.sqe_tail++;
        ring->sq.sqe_head = ring->sq.sqe_tail;
        io_uring_smp_store_release(ring->sq.ktail, ring->sq.sqe_tail);
        for (unsigned i = 0; i < GETS_MAX; i++) {
                r = (int)io_uring_enter(
                        (unsigned)ring->enter_ring_fd, i == 0, 0, registered | IORING_ENTER_GETEVENTS, NULL);
                if (r < 0)
                        return r;
                r = take_result(ring);
                if (r <= 0) /* any other error is of an operation that was allowed, and tried */
                        return r == -EACCES ? r : 0;
                usleep(1000);
        }
        return -ETIME;
}

const struct ring_attack ring_attacks[] = {
        {"ring: open a file", IORING_OP_OPENAT, .fd = AT_FDCWD, .address = ADDRESS("/"), .more = O_PATH},
        {"ring: read of a descriptor that was not registered", IORING_OP_READ, .fd = 0,
         .address = ADDRESS(text), .length = sizeof(text)},
        {"ring: write to a descriptor that was not registered", IORING_OP_WRITE, .fd = 2,
         .address = ADDRESS("forged\n"), .length = 7},
        {"ring: a socket", IORING_OP_SOCKET, .fd = AF_INET, .off = SOCK_STREAM},
        {"ring: send", IORING_OP_SEND, .fd = 0, .address = ADDRESS("x"), .length = 1},
        {"ring: epoll, poll", IORING_OP_POLL_ADD, .fd = 0, .more = 1},
        {"ring: look at a path", IORING_OP_STATX, .fd = AT_FDCWD, .address = ADDRESS("/"),
         .off = ADDRESS(text)},
        {"ring: make a directory", IORING_OP_MKDIRAT, .fd = AT_FDCWD, .address = ADDRESS("/hostile")},
        {"ring: splice", IORING_OP_SPLICE, .flags = IOSQE_FIXED_FILE, .fd = COMMAND_FILE},
        {"ring: register more buffers", IORING_OP_PROVIDE_BUFFERS, .fd = 1, .address = ADDRESS(text),
         .length = sizeof(text)},
        {"ring: message to another ring", IORING_OP_MSG_RING, .fd = 0},
        {"ring: advise memory", IORING_OP_MADVISE, .address = 0, .length = 0, .more = 0},
        {"ring: nothing", IORING_OP_NOP, .fd = -1},
        {},
};
