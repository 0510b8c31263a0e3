/* SPDX-License-Identifier: MIT */
/* The submission entries of commands to the driver. Inline: one is filled for every request. */
#pragma once

#include "targets/worker/io/io_loop.h"
#include "ublkd/kernel/ublk_uapi.h"

#include <string.h>

/* Fill an entry with a command of the driver. command: struct ublksrv_io_cmd or struct ublk_batch_command.
 * The caller sets user_data. */
static inline void ublk_command_prepare(
        const struct io_loop *loop, struct io_uring_sqe *sqe, uint32_t operation, const void *command)
{
        enum { COMMAND_SIZE = 16 };

        /* Field by field: whole, it would be cleared first. */
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->flags = loop->file_flags;
        sqe->ioprio = 0;
        sqe->fd = loop->files[IO_LOOP_COMMAND_FILE];
        sqe->off = operation; /* cmd_op, and padding */
        sqe->addr = 0;
        sqe->len = 0;
        sqe->rw_flags = 0;
        sqe->buf_index = 0;
        sqe->personality = 0;
        sqe->file_index = 0;
        memcpy(&sqe->addr3, command, COMMAND_SIZE); /* sqe->cmd, which older headers declare empty */
}
_Static_assert(
        offsetof(struct io_uring_sqe, addr3) + sizeof(struct ublksrv_io_cmd) == sizeof(struct io_uring_sqe),
        "an I/O command fits a 64-byte entry");
_Static_assert(sizeof(struct ublksrv_io_cmd) == 16 && sizeof(struct ublk_batch_command) == 16,
        "both kinds of commands have one size");
