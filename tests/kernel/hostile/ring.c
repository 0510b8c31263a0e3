/* SPDX-License-Identifier: MIT */
/* What a ring could be used for. */
#include "tests/kernel/hostile/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the queue's loop takes for a tick, and so for nothing: USER_DATA_TICK with bits of ours. */
#define MARK UINT64_C(0x486f7374696c6507)

/* OPERATIONS: of Linux 6.12. One that a kernel does not know is an invalid argument before it is forbidden. */
enum { COMMAND_FILE = 0, GETS_MAX = 1000, OPERATIONS = 58 };

static char text[512];
#define ADDRESS(of) ((uint64_t)(uintptr_t)(of))

/* Return whether the entry is done, and its result. */
static bool take_result(struct io_uring *ring, int *ret)
{
        unsigned head = *ring->cq.khead, tail = *ring->cq.ktail;

        for (; head != tail; head++) {
                struct io_uring_cqe *cqe = &ring->cq.cqes[head & *ring->cq.kring_mask];

                if (cqe->user_data != MARK)
                        continue;
                cqe->user_data = 3; /* seen */
                *ret = cqe->res;
                return true;
        }
        return false;
}

/* Send one entry. Return its result; -ETIME: it has none. */
static int perform(struct io_uring *ring, const struct io_uring_sqe *entry)
{
        unsigned registered = ring->enter_ring_fd != ring->ring_fd ? IORING_ENTER_REGISTERED_RING : 0;
        struct io_uring_sqe *sqe = &ring->sq.sqes[ring->sq.sqe_tail & *ring->sq.kring_mask];
        int r, result;

        *sqe = *entry;
        sqe->user_data = MARK;
        ring->sq.sqe_tail++;
        ring->sq.sqe_head = ring->sq.sqe_tail;
        io_uring_smp_store_release(ring->sq.ktail, ring->sq.sqe_tail);
        for (unsigned i = 0; i < GETS_MAX; i++) {
                r = (int)io_uring_enter(
                        (unsigned)ring->enter_ring_fd, i == 0, 0, registered | IORING_ENTER_GETEVENTS, NULL);
                if (r < 0)
                        return r;
                if (take_result(ring, &result))
                        return result;
                usleep(1000);
        }
        return -ETIME;
}

int ring_attack_try(struct io_uring *ring, const struct ring_attack *attack)
{
        int r = perform(ring, &(const struct io_uring_sqe){.opcode = attack->opcode,
                                      .flags = attack->flags,
                                      .fd = attack->fd,
                                      .off = attack->off,
                                      .addr = attack->address,
                                      .len = attack->length,
                                      .rw_flags = (int)attack->more});

        return r == -EACCES || r == -ETIME ? r
                                           : 0; /* any other is of an operation that was allowed, and tried */
}

/* The headers of Debian 12 have no names for these. */
enum { SOCKET_GET = 2, SOCKET_SET = 3, PEER_PIDFD = 77 };

static int command_socket(struct io_uring *ring, int fd, uint32_t command, uint32_t option, int *value)
{
        const uint32_t what[] = {SOL_SOCKET, option};
        struct io_uring_sqe entry = {.opcode = IORING_OP_URING_CMD,
                .fd = fd,
                .cmd_op = command,
                .file_index = sizeof(*value),
                .addr3 = (uintptr_t)value};

        memcpy(&entry.addr, what, sizeof(what));
        return perform(ring, &entry);
}

/* Have a socket get or set an option. A worker may not ask what its descriptors are: with each that it can have. Only a
 * socket has a type; /dev/null takes every command. */
static int command_sockets(struct io_uring *ring, uint32_t command, uint32_t option, int *value)
{
        for (int fd = 0; fd < HOSTILE_FDS; fd++) {
                int type, r = command_socket(ring, fd, SOCKET_GET, SO_TYPE, &type);

                if (r == -EACCES)
                        return r;
                if (r > 0)
                        return command_socket(ring, fd, command, option, value);
        }
        return -ENOTSOCK;
}

int ring_attack_peer(struct io_uring *ring)
{
        int pidfd = -1, r = command_sockets(ring, SOCKET_GET, PEER_PIDFD, &pidfd);

        return r < 0 ? r : opened(pidfd);
}

int ring_attack_option(struct io_uring *ring)
{
        int size = 1 << 20, r = command_sockets(ring, SOCKET_SET, SO_SNDBUF, &size);

        return r < 0 ? r : 0;
}

/* By number, because the headers of a distribution do not know them all. */
int ring_attack_all(struct io_uring *ring)
{
        static const uint8_t allowed[] = {IORING_OP_URING_CMD, IORING_OP_READ, IORING_OP_WRITE,
                IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED, IORING_OP_FSYNC, IORING_OP_FALLOCATE,
                IORING_OP_TIMEOUT, IORING_OP_NOP};

        for (unsigned opcode = 0; opcode < OPERATIONS; opcode++) {
                const struct ring_attack attack = {
                        .opcode = (uint8_t)opcode, .flags = IOSQE_FIXED_FILE, .fd = COMMAND_FILE};

                if (memchr(allowed, (int)opcode, sizeof(allowed)))
                        continue;
                if (ring_attack_try(ring, &attack) != -EACCES)
                        return 0;
        }
        return -EACCES;
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
        {"ring: a link", IORING_OP_NOP, .flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK, .fd = COMMAND_FILE},
        {"ring: no completion", IORING_OP_NOP, .flags = IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS,
         .fd = COMMAND_FILE},
        {},
};
