/* SPDX-License-Identifier: MIT */
/* One round of a queue's loop: takes completions, and prepares what answers them. The same lines run in user space and
 * in BPF, so that only the place of the loop differs.
 *
 * Who includes this declares, before it: `settings` and `state` of layout.h; STORE(place, value), a store that the kernel
 * sees after all earlier ones; TURN(), in each turn of a round's loop; read_descriptor(tag, &descriptor). The verifier of
 * BPF wants each index bounded by a mask that it knows, and what a round counts in memory: a number that differs by path
 * would have it look at each path of each turn.
 *
 * One queue in a process. Not handled, unlike in targets/worker/queue: short transfers (the request fails), limits,
 * statistics beyond two counters, and all operations but READ, WRITE and FLUSH. */
#pragma once

#include "bench/inkernel/layout.h"

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS struct io_uring_sqe *step_entry(const struct memory *memory, enum kind kind, __u32 tag)
{
        struct io_uring_sqe *sqe = &memory->sqes[state.sq_tail & (ENTRIES - 1)];
        __u64 *words = (__u64 *)sqe;

#pragma clang loop unroll(full)
        for (int i = 0; i < 8; i++)
                words[i] = 0;
        sqe->flags = IOSQE_FIXED_FILE;
        sqe->user_data = (__u64)kind << 16 | tag;
        state.sq_tail++;
        state.prepared++;
        return sqe;
}

ALWAYS void step_commit_single(const struct memory *memory, __u16 tag, __s32 result)
{
        struct io_uring_sqe *sqe = step_entry(memory, KIND_ARRIVAL, tag);
        struct ublksrv_io_cmd *command = (struct ublksrv_io_cmd *)((char *)sqe + 48);

        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = COMMAND_FILE;
        sqe->off = settings.commit; /* cmd_op */
        sqe->addr = tag;            /* the index of the next request's buffer */
        command->tag = tag;
        command->result = result;
}

ALWAYS void step_answer(const struct memory *memory, __u16 tag, __s32 result)
{
        state.requests++;
        if (settings.batch) {
                struct element *elements = (struct element *)(memory->shared + SHARED_ELEMENTS);

                elements[state.element_end & (ELEMENTS - 1)] = (struct element){tag, tag, result};
                state.element_end++;
        } else {
                step_commit_single(memory, tag, result);
        }
}

ALWAYS void step_begin(const struct memory *memory, __u16 tag)
{
        struct ublksrv_io_desc descriptor;
        struct io_uring_sqe *sqe;
        __u32 operation, bytes;

        if (read_descriptor(tag, &descriptor) < 0) {
                state.failure = -EFAULT;
                return;
        }
        operation = descriptor.op_flags & 0xff;
        bytes = descriptor.nr_sectors << 9;
        if (settings.null || operation > UBLK_IO_OP_FLUSH) {
                step_answer(memory, tag, operation > UBLK_IO_OP_FLUSH ? -EOPNOTSUPP : (__s32)bytes);
                return;
        }
        sqe = step_entry(memory, KIND_OPERATION, tag);
        sqe->fd = BACKING_FILE;
        if (operation == UBLK_IO_OP_FLUSH) {
                sqe->opcode = IORING_OP_FSYNC;
                return;
        }
        sqe->opcode = operation == UBLK_IO_OP_READ ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
        sqe->off = settings.start + (descriptor.start_sector << 9);
        sqe->len = bytes;
        sqe->buf_index = tag;
}

/* ---- batches ---- */

ALWAYS void step_return_list(const struct memory *memory)
{
        struct io_uring_buf *buffers = (struct io_uring_buf *)memory->shared;
        struct io_uring_buf *buffer = &buffers[state.buffers_tail & (BUFFERS - 1)];
        __u32 id = state.list_id & (BUFFERS - 1);

        buffer->addr = settings.shared + SHARED_LISTS + (__u64)id * LIST_LENGTH * 2;
        buffer->len = settings.list_bytes;
        buffer->bid = (__u16)id;
        state.buffers_tail++;
        STORE(buffers->resv, (__u16)state.buffers_tail); /* the ring's tail lies there */
        state.list_id = BUFFERS;
}

ALWAYS void step_fetch(const struct memory *memory)
{
        struct io_uring_sqe *sqe = step_entry(memory, KIND_FETCH, 0);
        struct batch_command *command = (struct batch_command *)((char *)sqe + 48);

        sqe->opcode = IORING_OP_URING_CMD;
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->fd = COMMAND_FILE;
        sqe->off = settings.fetch_batch;
        sqe->rw_flags = 1 << 1; /* IORING_URING_CMD_MULTISHOT */
        command->element_size = sizeof(__u16);
}

ALWAYS void step_arrived(const struct memory *memory, const struct io_uring_cqe *cqe)
{
        __s32 result = cqe->res;
        __u32 flags = cqe->flags;

        if (flags & IORING_CQE_F_BUFFER) {
                state.list_id = flags >> IORING_CQE_BUFFER_SHIFT;
                state.list_at = (state.list_id & (BUFFERS - 1)) * LIST_LENGTH;
                state.list_left = result > 0 ? (__u32)result / 2 : 0;
        }
        if (flags & IORING_CQE_F_MORE)
                return;
        if (result == UBLK_IO_RES_ABORT)
                state.aborted = settings.depth;
        else if (result == -ENOBUFS || result >= 0)
                step_fetch(memory);
        else
                state.failure = result;
}

/* One command, or in the next round a second where the circle closes. */
ALWAYS void step_send(const struct memory *memory)
{
        __u32 count = state.element_end - state.element_sent;
        __u32 place = state.element_sent & (ELEMENTS - 1);
        struct batch_command *command;
        struct io_uring_sqe *sqe;

        if (count == 0)
                return;
        if (count > ELEMENTS - place)
                count = ELEMENTS - place;
        if (count > settings.depth)
                count = settings.depth;
        sqe = step_entry(memory, KIND_COMMIT, count);
        command = (struct batch_command *)((char *)sqe + 48);
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = COMMAND_FILE;
        sqe->off = settings.commit_batch;
        sqe->addr = settings.shared + SHARED_ELEMENTS + (__u64)place * sizeof(struct element);
        sqe->len = count * (__u32)sizeof(struct element);
        command->flags = (__u16)settings.batch_flags;
        command->elements = (__u16)count;
        command->element_size = sizeof(struct element);
        state.element_sent += count;
        state.silent++;
}

/* ---- a round ---- */

ALWAYS void step_completed(const struct memory *memory, const struct io_uring_cqe *cqe)
{
        __u16 tag = (__u16)cqe->user_data;
        __u32 kind = (__u32)cqe->user_data >> 16;
        __s32 result = cqe->res;

        if (kind == KIND_OPERATION)
                step_answer(memory, tag, result);
        else if (kind == KIND_FETCH)
                step_arrived(memory, cqe);
        else if (kind == KIND_COMMIT)
                state.failure = result == tag * (__s32)sizeof(struct element) ? state.failure : -EPROTO;
        else if (result == UBLK_IO_RES_OK)
                step_begin(memory, tag);
        else if (result == UBLK_IO_RES_ABORT)
                state.aborted++;
        else
                state.failure = result;
}

/* Return how many completions more are worth a wake-up; 0: there are some that this round did not get to. */
ALWAYS __u32 step_round(const struct memory *memory)
{
        __u32 tail = *(volatile __u32 *)(memory->rings + settings.cq_tail);
        const struct io_uring_cqe *cqes = (const struct io_uring_cqe *)(memory->rings + settings.cqes);
        __u32 rest;

        state.head = *(volatile __u32 *)(memory->rings + settings.cq_head);
        state.rounds++;
        state.prepared = 0;
        state.silent = 0;
        state.sq_tail = *(volatile __u32 *)(memory->rings + settings.sq_tail);
        while (state.prepared < ROUND_MAX) {
                TURN();
                if (settings.batch && state.list_left > 0) {
                        const __u16 *lists = (const __u16 *)(memory->shared + SHARED_LISTS);

                        step_begin(memory, lists[state.list_at & (BUFFERS * LIST_LENGTH - 1)]);
                        state.list_at++;
                        state.list_left--;
                        continue;
                }
                if (settings.batch && state.list_id < BUFFERS)
                        step_return_list(memory);
                if (state.head == tail)
                        break;
                step_completed(memory, &cqes[state.head & settings.cq_mask]);
                state.head++;
        }
round_over:
        __attribute__((unused));
        STORE(*(__u32 *)(memory->rings + settings.cq_head), state.head);
        if (settings.batch)
                step_send(memory);
        STORE(*(__u32 *)(memory->rings + settings.sq_tail), state.sq_tail);
        rest = (tail - state.head) | state.list_left | (state.element_end - state.element_sent);
        return rest ? 0 : 1 + state.silent;
}
