/* SPDX-License-Identifier: MIT */
/* A ublk device that is not ours, and the bare control commands: for tests of how ublkd treats strangers, and
 * to clean up after a test that failed.
 *
 * Deliberately shares no code with ublkd: it is the other party. One queue; reads give 0x5a, writes are
 * dropped. */
#include "ublkd/kernel/ublk_uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEPTH = 4, IO_SIZE = 64 * 1024, SECTORS = 32 * 1024, PATTERN = 0x5a, OPEN_TRIES = 1000 };

static int control(unsigned command, int number, void *data, size_t size, uint64_t argument)
{
        struct ublksrv_ctrl_cmd cmd = {
                .dev_id = (uint32_t)number,
                .queue_id = UINT16_MAX,
                .len = (uint16_t)size,
                .addr = (uint64_t)(uintptr_t)data,
                .data = {argument},
        };
        int fd = open("/dev/ublk-control", O_RDWR | O_CLOEXEC);
        struct io_uring ring;
        struct io_uring_sqe *sqe;
        struct io_uring_cqe *cqe;
        int r;

        if (fd < 0)
                return -errno;
        r = io_uring_queue_init(2, &ring, IORING_SETUP_SQE128);
        if (r < 0)
                return r;
        sqe = io_uring_get_sqe(&ring);
        if (!sqe)
                return -EBUSY;
        memset(sqe, 0, 2 * sizeof(*sqe));
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = fd;
        sqe->cmd_op = command;
        memcpy(sqe->cmd, &cmd, sizeof(cmd));
        r = io_uring_submit_and_wait(&ring, 1);
        if (r >= 0)
                r = io_uring_wait_cqe(&ring, &cqe);
        if (r >= 0)
                r = cqe->res;
        io_uring_queue_exit(&ring);
        close(fd);
        return r;
}

static int add(int number)
{
        struct ublksrv_ctrl_dev_info info = {
                .dev_id = (uint32_t)number,
                .nr_hw_queues = 1,
                .queue_depth = DEPTH,
                .max_io_buf_bytes = IO_SIZE,
                .flags = UBLK_F_CMD_IOCTL_ENCODE,
        };

        return control(UBLK_U_CMD_ADD_DEV, number, &info, sizeof(info), 0);
}

static int set_params(int number)
{
        struct ublk_params params = {
                .len = sizeof(params),
                .types = UBLK_PARAM_TYPE_BASIC,
                .basic =
                        {
                                .logical_bs_shift = 9,
                                .physical_bs_shift = 12,
                                .io_opt_shift = 12,
                                .io_min_shift = 9,
                                .max_sectors = IO_SIZE / 512,
                                .dev_sectors = SECTORS,
                                },
        };

        return control(UBLK_U_CMD_SET_PARAMS, number, &params, sizeof(params), 0);
}

struct server {
        int number, fd;
        struct io_uring ring;
        const struct ublksrv_io_desc *descriptors;
        char *buffers;
        pthread_barrier_t fetched;
};

static void queue_command(struct server *server, unsigned tag, unsigned command, int result)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&server->ring);
        struct ublksrv_io_cmd cmd = {
                .tag = (uint16_t)tag,
                .result = result,
                .addr = (uint64_t)(uintptr_t)(server->buffers + (size_t)tag * IO_SIZE),
        };

        if (!sqe)
                abort(); /* the ring has two entries a tag */
        memset(sqe, 0, sizeof(*sqe));
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = server->fd;
        sqe->cmd_op = command;
        sqe->user_data = tag;
        memcpy(sqe->cmd, &cmd, sizeof(cmd));
}

/* Reads and writes only: nothing else was offered. */
static int serve_request(struct server *server, unsigned tag)
{
        const struct ublksrv_io_desc *descriptor = &server->descriptors[tag];
        size_t bytes = (size_t)descriptor->nr_sectors * 512;

        if (ublksrv_get_op(descriptor) == UBLK_IO_OP_READ)
                memset(server->buffers + (size_t)tag * IO_SIZE, PATTERN, bytes);
        return (int)bytes;
}

static void *serve(void *userdata)
{
        struct server *server = userdata;
        struct io_uring_cqe *cqe;
        int r = 0;

        for (unsigned tag = 0; tag < DEPTH; tag++)
                queue_command(server, tag, UBLK_U_IO_FETCH_REQ, 0);
        io_uring_submit(&server->ring);
        pthread_barrier_wait(&server->fetched);
        while (r >= 0 || r == -EINTR) {
                r = io_uring_submit_and_wait(&server->ring, 1);
                while (io_uring_peek_cqe(&server->ring, &cqe) == 0) {
                        unsigned tag = (unsigned)cqe->user_data;
                        int result = cqe->res;

                        io_uring_cqe_seen(&server->ring, cqe);
                        if (result < 0)
                                return NULL; /* -ENODEV: stopped */
                        queue_command(
                                server, tag, UBLK_U_IO_COMMIT_AND_FETCH_REQ, serve_request(server, tag));
                }
        }
        return NULL;
}

/* Udev may hold the node for a moment, or not have made it yet. */
static int open_disk(int number)
{
        char path[32];
        int fd = -1;

        snprintf(path, sizeof(path), "/dev/ublkc%d", number);
        for (unsigned i = 0; fd < 0 && i < OPEN_TRIES; i++) {
                fd = open(path, O_RDWR | O_CLOEXEC);
                if (fd < 0)
                        usleep(10 * 1000);
        }
        return fd < 0 ? -errno : fd;
}

static int prepare(struct server *server)
{
        size_t size = (DEPTH * sizeof(struct ublksrv_io_desc) + 4095) & ~(size_t)4095;

        server->fd = open_disk(server->number);
        if (server->fd < 0)
                return server->fd;
        server->descriptors = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, server->fd, 0);
        if (server->descriptors == MAP_FAILED)
                return -errno;
        server->buffers = aligned_alloc(4096, (size_t)DEPTH * IO_SIZE);
        if (!server->buffers)
                return -ENOMEM;
        pthread_barrier_init(&server->fetched, NULL, 2);
        return io_uring_queue_init(2 * DEPTH, &server->ring, 0);
}

/* Adds a disk, says "live", and serves it until it is stopped or this process is killed. */
static int add_and_serve(int number)
{
        struct server server = {.number = number};
        pthread_t thread;
        int r = add(number);

        if (r >= 0)
                r = set_params(number);
        if (r >= 0)
                r = prepare(&server);
        if (r < 0)
                return r;
        r = -pthread_create(&thread, NULL, serve, &server);
        if (r < 0)
                return r;
        pthread_barrier_wait(&server.fetched);
        r = control(UBLK_U_CMD_START_DEV, number, NULL, 0, (uint64_t)getpid());
        if (r < 0)
                return r;
        puts("live");
        fflush(stdout);
        pthread_join(thread, NULL);
        return 0;
}

static int info(int number)
{
        struct ublksrv_ctrl_dev_info device = {};
        int r = control(UBLK_U_CMD_GET_DEV_INFO, number, &device, sizeof(device), 0);

        if (r < 0)
                return r;
        printf("{\"state\": %u, \"cookie\": %" PRIu64 ", \"flags\": %" PRIu64
               ", \"pid\": %d, \"queues\": %u, \"depth\": %u}\n",
                device.state, (uint64_t)device.ublksrv_flags, (uint64_t)device.flags, device.ublksrv_pid,
                device.nr_hw_queues, device.queue_depth);
        return 0;
}

static int stop(int number)
{
        return control(UBLK_U_CMD_STOP_DEV, number, NULL, 0, 0);
}

/* DEL_DEV waits until the number is free: for ever, where another server takes it before it looks. */
static int del(int number)
{
        return control(UBLK_U_CMD_DEL_DEV_ASYNC, number, NULL, 0, 0);
}

int main(int argc, char *argv[])
{
        static const struct {
                const char *name;
                int (*run)(int number);
        } commands[] = {
                {"add",   add          },
                {"serve", add_and_serve},
                {"info",  info         },
                {"stop",  stop         },
                {"del",   del          },
        };

        for (size_t i = 0; argc == 3 && i < sizeof(commands) / sizeof(*commands); i++)
                if (strcmp(argv[1], commands[i].name) == 0) {
                        int r = commands[i].run(atoi(argv[2]));

                        if (r < 0)
                                fprintf(stderr, "%s %s: %s\n", argv[1], argv[2], strerror(-r));
                        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
                }
        fputs("Usage: ublk-stranger add|serve|info|stop|del NUMBER\n", stderr);
        return 2;
}
