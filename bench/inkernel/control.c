/* SPDX-License-Identifier: MIT */
/* Sends each control command on a ring of its own: nothing here is in a hurry. */
#include "bench/inkernel/control.h"
#include "ublkd/kernel/ublk_uapi.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { IO_SIZE_MAX = 512 << 10, SECTOR = 512, BLOCK_SHIFT = 12 };

static int run(struct io_uring *ring, uint32_t operation, const struct ublksrv_ctrl_cmd *command)
{
        int fd = open("/dev/ublk-control", O_RDWR | O_CLOEXEC), r;
        struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
        struct io_uring_cqe *cqe;

        if (fd < 0)
                return -errno;
        memset(sqe, 0, 2 * sizeof(*sqe));
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = fd;
        sqe->off = operation;
        memcpy((char *)sqe + offsetof(struct io_uring_sqe, cmd), command, sizeof(*command));
        r = io_uring_submit(ring);
        if (r >= 0)
                r = io_uring_wait_cqe(ring, &cqe);
        if (r >= 0)
                r = cqe->res;
        (void)close(fd);
        return r;
}

static int control(uint32_t operation, struct ublksrv_ctrl_cmd command)
{
        struct io_uring ring;
        int r = io_uring_queue_init(4, &ring, IORING_SETUP_SQE128);

        if (r < 0)
                return r;
        command.queue_id = UINT16_MAX;
        r = run(&ring, operation, &command);
        io_uring_queue_exit(&ring);
        return r;
}

static int set_parameters(const struct disk *disk)
{
        struct ublk_all_params parameters = {
                .len = sizeof(parameters),
                .types = UBLK_PARAM_TYPE_BASIC,
                .basic = {.logical_bs_shift = BLOCK_SHIFT,
                          .physical_bs_shift = BLOCK_SHIFT,
                          .io_opt_shift = BLOCK_SHIFT,
                          .io_min_shift = BLOCK_SHIFT,
                          .max_sectors = IO_SIZE_MAX / SECTOR,
                          .dev_sectors = disk->size / SECTOR},
        };

        return control(UBLK_U_CMD_SET_PARAMS, (struct ublksrv_ctrl_cmd){.dev_id = (uint32_t)disk->number,
                                                      .addr = (uintptr_t)&parameters,
                                                      .len = sizeof(parameters)});
}

int control_add(struct disk *disk)
{
        struct ublksrv_ctrl_dev_info info = {
                .nr_hw_queues = 1,
                .queue_depth = (uint16_t)disk->depth,
                .max_io_buf_bytes = IO_SIZE_MAX,
                .dev_id = (uint32_t)disk->number,
                .ublksrv_pid = (int32_t)getpid(),
                .flags = UBLK_F_SUPPORT_ZERO_COPY | UBLK_F_CMD_IOCTL_ENCODE
                         | (disk->null ? 0 : UBLK_F_AUTO_BUF_REG) | (disk->batch ? UBLK_F_BATCH_IO : 0)
                         | (disk->recovery ? UBLK_F_USER_RECOVERY | UBLK_F_USER_RECOVERY_REISSUE : 0),
        };
        int r = control(UBLK_U_CMD_ADD_DEV,
                (struct ublksrv_ctrl_cmd){
                        .dev_id = (uint32_t)disk->number, .addr = (uintptr_t)&info, .len = sizeof(info)});

        if (r < 0)
                return r;
        disk->number = (int)info.dev_id;
        return set_parameters(disk);
}

static int for_process(uint32_t operation, int number)
{
        return control(operation,
                (struct ublksrv_ctrl_cmd){.dev_id = (uint32_t)number, .data = {(uint64_t)getpid()}});
}

int control_start(int number)
{
        return for_process(UBLK_U_CMD_START_DEV, number);
}

int control_start_recovery(int number)
{
        return for_process(UBLK_U_CMD_START_USER_RECOVERY, number);
}

int control_end_recovery(int number)
{
        return for_process(UBLK_U_CMD_END_USER_RECOVERY, number);
}

int control_stop(int number)
{
        return control(UBLK_U_CMD_STOP_DEV, (struct ublksrv_ctrl_cmd){.dev_id = (uint32_t)number});
}

int control_delete(int number)
{
        return control(UBLK_U_CMD_DEL_DEV, (struct ublksrv_ctrl_cmd){.dev_id = (uint32_t)number});
}

int control_state(int number, unsigned *ret)
{
        struct ublksrv_ctrl_dev_info info = {};
        int r = control(UBLK_U_CMD_GET_DEV_INFO,
                (struct ublksrv_ctrl_cmd){
                        .dev_id = (uint32_t)number, .addr = (uintptr_t)&info, .len = sizeof(info)});

        if (r >= 0)
                *ret = info.state;
        return r;
}
