/* SPDX-License-Identifier: MIT */
/* The ring, as targets/worker/io/io_ring.c opens and restricts it, and the loop in user space. */
#include "bench/inkernel/queue.h"
#include "ublkd/kernel/ublk_uapi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif
#ifndef IORING_ENTER_NO_IOWAIT
#define IORING_ENTER_NO_IOWAIT (1U << 7)
#endif
enum { REGISTER_MEM_REGION = 34, REGION_USER = 1 };

struct region_descriptor { /* struct io_uring_region_desc */
        uint64_t address, size;
        uint32_t flags, id;
        uint64_t offset, reserved[4];
};
struct region_registration { /* struct io_uring_mem_region_reg */
        uint64_t descriptor, flags, reserved[2];
};

static struct settings settings;
static struct state state;

#define STORE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)
#define TURN() ((void)0)

static inline int read_descriptor(uint16_t tag, struct ublksrv_io_desc *ret)
{
        *ret = ((const struct ublksrv_io_desc *)(uintptr_t)settings.descriptors)[tag];
        return 0;
}

#include "bench/inkernel/step.h"

/* ---- opening ---- */

static int call_register(const struct queue *queue, unsigned operation, const void *argument, unsigned count)
{
        return syscall(SYS_io_uring_register, queue->ring.ring_fd, operation, argument, count) < 0 ? -errno
                                                                                                   : 0;
}

/* The numbers of the ring's memory are what both loops walk by. */
static int open_ring(struct queue *queue)
{
        struct io_uring_params params = {
                .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN
                         | IORING_SETUP_NO_SQARRAY | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE
                         | IORING_SETUP_SUBMIT_ALL,
                .cq_entries = 2 * ENTRIES,
        };
        struct settings *set = &queue->settings;
        int fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &params), r;

        if (fd < 0)
                return -errno;
        if (dup2(fd, RING_FD) < 0)
                return -errno;
        (void)close(fd);
        r = io_uring_queue_mmap(RING_FD, &params, &queue->ring);
        if (r < 0)
                return r;
        queue->ring.ring_fd = queue->ring.enter_ring_fd = RING_FD;
        set->cq_head = params.cq_off.head;
        set->cq_tail = params.cq_off.tail;
        set->cqes = params.cq_off.cqes;
        set->cq_mask = params.cq_entries - 1;
        set->sq_tail = params.sq_off.tail;
        set->rings_size = params.cq_off.cqes + params.cq_entries * (uint32_t)sizeof(struct io_uring_cqe);
        return 0;
}

static int share_memory(struct queue *queue)
{
        struct region_descriptor descriptor = {.size = SHARED_SIZE, .flags = REGION_USER};
        struct region_registration registration = {.descriptor = (uintptr_t)&descriptor};
        struct io_uring_buf_reg buffers = {.ring_entries = BUFFERS};
        struct io_uring_buf *list;
        int r;

        queue->shared = mmap(
                NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (queue->shared == MAP_FAILED)
                return -errno;
        queue->settings.shared = descriptor.address = buffers.ring_addr = (uintptr_t)queue->shared;
        r = call_register(queue, REGISTER_MEM_REGION, &registration, 1);
        if (r < 0)
                return r;
        list = (struct io_uring_buf *)queue->shared;
        for (unsigned i = 0; i < BUFFERS; i++)
                list[i] = (struct io_uring_buf){
                        .addr = queue->settings.shared + SHARED_LISTS + (uint64_t)i * LIST_LENGTH * 2,
                        .len = queue->settings.list_bytes,
                        .bid = (uint16_t)i};
        r = call_register(queue, IORING_REGISTER_PBUF_RING, &buffers, 1);
        __atomic_store_n(&list[0].resv, BUFFERS, __ATOMIC_RELEASE);
        queue->state.buffers_tail = BUFFERS;
        queue->state.list_id = BUFFERS; /* none */
        return r;
}

static int map_descriptors(struct queue *queue, int command_fd)
{
        size_t size = (DEPTH_MAX * sizeof(struct ublksrv_io_desc) + 4095) & ~(size_t)4095;
        void *descriptors =
                mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_POPULATE, command_fd, UBLKSRV_CMD_BUF_OFFSET);

        if (descriptors == MAP_FAILED)
                return -errno;
        queue->settings.descriptors = (uintptr_t)descriptors;
        return 0;
}

int queue_open(struct queue *queue, int command_fd, int backing_fd)
{
        const int files[] = {[COMMAND_FILE] = command_fd, [BACKING_FILE] = backing_fd};
        int r = open_ring(queue);

        queue->settings.list_bytes =
                2 * (queue->settings.depth < LIST_LENGTH ? queue->settings.depth : LIST_LENGTH);
        queue->settings.commit = UBLK_U_IO_COMMIT_AND_FETCH_REQ;
        queue->settings.commit_batch = UBLK_U_IO_COMMIT_IO_CMDS;
        queue->settings.fetch_batch = UBLK_U_IO_FETCH_IO_CMDS;
        queue->settings.batch_flags = queue->settings.null ? 0 : UBLK_BATCH_F_AUTO_BUF_REG_FALLBACK;
        if (r >= 0)
                r = call_register(queue, IORING_REGISTER_FILES, files, 2);
        if (r >= 0)
                r = io_uring_register_buffers_sparse(&queue->ring, queue->settings.depth);
        if (r >= 0)
                r = share_memory(queue);
        return r < 0 ? r : map_descriptors(queue, command_fd);
}

/* ---- starting ---- */

/* As targets/worker/io/io_ring.c restricts the rings of ublkd. */
static int restrict_ring(const struct queue *queue)
{
        static const uint8_t operations[] = {
                IORING_OP_URING_CMD, IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED, IORING_OP_FSYNC};
        struct io_uring_restriction rules[3 + sizeof(operations)] = {
                {.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
                 .sqe_flags = IOSQE_FIXED_FILE | IOSQE_ASYNC | IOSQE_BUFFER_SELECT                         },
                {.opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED, .sqe_flags = IOSQE_FIXED_FILE            },
                {.opcode = IORING_RESTRICTION_REGISTER_OP,        .register_op = IORING_UNREGISTER_RING_FDS},
        };

        for (size_t i = 0; i < sizeof(operations); i++)
                rules[3 + i] = (struct io_uring_restriction){
                        .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = operations[i]};
        return call_register(queue, IORING_REGISTER_RESTRICTIONS, rules, 3 + sizeof(operations));
}

static int enter(const struct queue *queue, unsigned count, unsigned wait)
{
        long r = syscall(SYS_io_uring_enter, queue->ring.enter_ring_fd, count, wait,
                IORING_ENTER_GETEVENTS | IORING_ENTER_NO_IOWAIT
                        | (queue->ring.enter_ring_fd != RING_FD ? IORING_ENTER_REGISTERED_RING : 0),
                NULL, 0);

        return r < 0 ? -errno : (int)r;
}

/* Submit what was prepared; 0 or -errno. */
static int submit(struct queue *queue)
{
        int r;

        STORE(*queue->ring.sq.ktail, state.sq_tail);
        r = enter(queue, state.prepared, 0);
        return r < 0 ? r : r == (int)state.prepared ? 0 : -EAGAIN;
}

static int prepare_tags(struct queue *queue, const struct memory *memory)
{
        struct element *elements = (struct element *)(memory->shared + SHARED_ELEMENTS);
        struct io_uring_sqe *sqe;
        struct io_uring_cqe *cqe;
        int r;

        for (uint16_t tag = 0; tag < settings.depth; tag++) {
                elements[tag] = (struct element){.tag = tag, .buffer = tag};
                if (!settings.batch) {
                        step_commit_single(memory, tag, 0);
                        memory->sqes[tag].off = UBLK_U_IO_FETCH_REQ;
                }
        }
        if (!settings.batch)
                return submit(queue);
        sqe = step_entry(memory, KIND_COMMIT, settings.depth);
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->off = UBLK_U_IO_PREP_IO_CMDS;
        sqe->addr = settings.shared + SHARED_ELEMENTS;
        sqe->len = settings.depth * (uint32_t)sizeof(struct element);
        *(struct batch_command *)((char *)sqe + 48) =
                (struct batch_command){.flags = (uint16_t)settings.batch_flags,
                        .elements = (uint16_t)settings.depth,
                        .element_size = sizeof(struct element)};
        r = submit(queue);
        if (r < 0)
                return r;
        cqe = &queue->ring.cq.cqes[*queue->ring.cq.khead & settings.cq_mask];
        r = cqe->res < 0 ? cqe->res : 0;
        io_uring_cq_advance(&queue->ring, 1);
        if (r < 0)
                return r;
        state.prepared = 0;
        step_fetch(memory);
        return submit(queue);
}

static struct memory memory_of(const struct queue *queue)
{
        return (struct memory){
                .sqes = queue->ring.sq.sqes, .rings = queue->ring.cq.ring_ptr, .shared = queue->shared};
}

int queue_fetch(struct queue *queue)
{
        const struct memory memory = memory_of(queue);
        int r = queue->restricted ? restrict_ring(queue) : 0;

        settings = queue->settings;
        state = queue->state;
        if (r >= 0)
                r = call_register(queue, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
        if (r >= 0)
                r = prepare_tags(queue, &memory);
        queue->state = state;
        return r;
}

/* ---- serving ---- */

int queue_serve(struct queue *queue, struct state *ret_state)
{
        const struct memory memory = memory_of(queue);
        int r = 0;

        settings = queue->settings;
        state = queue->state;
        while (state.failure >= 0 && state.aborted < settings.depth && r != -EINTR) {
                unsigned more = step_round(&memory);

                if (state.aborted == settings.depth)
                        break;
                r = enter(queue, state.prepared, more);
                if (r < 0 && r != -EINTR)
                        state.failure = r;
        }
        *ret_state = state;
        return state.failure < 0 ? state.failure : r == -EINTR ? r : 0;
}

int queue_enter(struct queue *queue)
{
        return enter(queue, 0, 0);
}
