/* SPDX-License-Identifier: MIT */
/* The queue of a worker with a test in the place of the driver: descriptors lie in a file, a NOP stands for a
 * command, and the test says in `driver` which requests arrive and what becomes of answers. One queue at a time,
 * on the thread of the test. */
#pragma once

#include "targets/worker/queue/queue_requests.h"
#include "targets/worker/queue/ublk_queue.h"
#include "tests/unit/check.h"
#include "tests/unit/shared_region.h"

static struct ublk_queue *queue;
static struct ublk_port_class driver; /* as the real one, until the test replaces functions of it */
static const struct ublk_port_class *real_driver;
static int descriptors = -1;
static atomic_bool served;             /* by the queue, at its first request */
static struct leave_call *world_leave; /* for world_open(); NULL: nothing calls the queue */

/* Write the descriptor of a request. op: UBLK_IO_OP_*; offset and length: bytes of the disk, in whole sectors. */
static inline void world_describe(uint16_t tag, unsigned op, uint64_t offset, uint32_t length)
{
        const struct ublksrv_io_desc descriptor = {
                .op_flags = op,
                .nr_sectors = length >> SECTOR_SHIFT,
                .start_sector = offset >> SECTOR_SHIFT,
        };

        CHECK_INT(pwrite(descriptors, &descriptor, sizeof(descriptor),
                          UBLKSRV_CMD_BUF_OFFSET + (off_t)(tag * sizeof(descriptor))),
                sizeof(descriptor));
}

/* Write the descriptors of all tags: each for the block of its number, in blocks of `block` bytes. */
static inline void world_describe_all(unsigned op, uint32_t block)
{
        for (unsigned tag = 0; tag < queue->depth; tag++)
                world_describe((uint16_t)tag, op, (uint64_t)tag * block, block);
}

/* Put a NOP into the ring in the place of command `what`. Once the queue takes its completion, it calls
 * driver.completed(). */
static inline void world_put_command(uint64_t what)
{
        struct io_uring_sqe *sqe = io_loop_sqe(&queue->loop);

        io_uring_prep_nop(sqe);
        io_loop_set_file(&queue->loop, sqe, IO_LOOP_COMMAND_FILE);
        io_uring_sqe_set_data64(sqe, user_data_command(what));
}

/* Open the only queue of a device, with memory for requests of up to max_io_size bytes. batch: answers go in
 * batches. The test has set the target, size, queue_depth and files of the device, which must outlive the queue;
 * what is common to all tests is set here. Return false after a failed check: then nothing is to be closed. */
static inline bool world_open(struct target_device *device, uint32_t max_io_size, bool batch)
{
        static struct shared shared;
        struct ublk_queue_setup setup = {
                .device = device,
                .depth = device->queue_depth,
                .max_io_size = max_io_size,
                .route = {.path = DATA_PATH_COPY, .batch = batch},
                .served = &served,
                .leave = world_leave,
                .shared = &shared
        };

        setup.command_fd = descriptors = memfd_create("descriptors", MFD_CLOEXEC);
        device->logical_block_size = 512;
        device->queues = 1;
        device->store.given = device->store.kept = -1;
        shared = shared_region_new();
        if (!CHECK_INT(ublk_queue_open(&setup, &queue), 0)) {
                close(descriptors);
                shared_region_unmap(&shared);
                return false;
        }
        real_driver = queue->port.class;
        CHECK(real_driver == (batch ? &ublk_port_batch : &ublk_port_single));
        driver = *real_driver;
        queue->port.class = &driver;
        return true;
}

/* Close the queue. The device and its files stay the test's; the region stays mapped to the end of the test. */
static inline void world_close(void)
{
        queue->port.class = real_driver;
        queue = ublk_queue_close(queue);
        close(descriptors);
}
