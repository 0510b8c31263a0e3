/* Plain requests: a read or a write without FUA, within the disk, aligned, allowed, and with its data where
 * the target can use it. Most requests are plain, and one look at the driver's descriptor tells it; what
 * perform.c would find out about them is known then. All others go through perform_co().
 *
 * Two kinds of plain requests need no coroutine: those of a target that never waits, and those of a disk that
 * lies in one file as it is (target_device.linear), which one operation moves: one of the ring, or where the
 * file is memory and the request is short, a system call at once. Such an operation ends the request if it
 * has moved every byte, or has failed for good. Otherwise the request begins anew on a coroutine, from its
 * first byte: nothing of it was answered yet, and nothing of it is under way. So what becomes of short
 * transfers and of EAGAIN is known to await.c alone.
 *
 * A system call holds up the other requests of its queue: for the copy of at most PLAIN_AT_ONCE_MAX bytes,
 * and where memory was swapped out for as long as its return takes. Longer ones are left to the ring, whose
 * threads copy on several CPUs. The fence holds as well: a thread that is killed in its system call ends
 * that before it lets go of the ring's descriptor.
 *
 * Inline: most requests pass here. On the queue's thread. */
#pragma once

#include "targets/worker/io_data.h"
#include "ublkd/base/ublk_uapi.h"

#include <errno.h>
#include <unistd.h>

enum { SECTOR_SHIFT = 9, UBLK_OPERATION_MASK = 0xff, PLAIN_AT_ONCE_MAX = 64 << 10 };
_Static_assert(
        (int)UBLK_IO_OP_READ == (int)IO_READ && (int)UBLK_IO_OP_WRITE == (int)IO_WRITE && IO_WRITE == 1,
        "both have the number that the driver calls them");

/* What a queue knows of its requests beforehand. */
struct plain_rules {
        const struct target_device *device;
        uint32_t
                deciding; /* the bits of a descriptor's op_flags that decide; only the operation may be set */
        uint32_t operations;  /* how many of IO_READ and IO_WRITE may be plain; the queue may set it to 0 */
        uint32_t sectors_max; /* of one request */
        uint32_t unaligned;   /* bits that a number of sectors must not have */
        uint64_t file_offset; /* bytes, as target_device.linear_offset */
        uint32_t sectors_at_once; /* of a linear disk: what is moved by a system call; 0: nothing */
        int descriptor;           /* for that */
        unsigned file;            /* its number in the loop */
        bool linear;
        uint8_t read; /* the ring's operation for reads; the one for writes is the next */
};

/* The device must be open. max_io_size: bytes. */
static inline struct plain_rules plain_rules_of(
        const struct target_device *device, const struct io_data *data, uint32_t max_io_size)
{
        bool copies = data->route.path == DATA_PATH_COPY, registers = data->route.auto_buffers;
        const struct target *target = device->target;
        unsigned writable = !device->read_only && target->write;

        return (struct plain_rules){
                .device = device,
                .deciding = UBLK_OPERATION_MASK | UBLK_IO_F_FUA | (registers ? UBLK_IO_F_NEED_REG_BUF : 0),
                .operations = copies || registers ? 1 + writable : 0,
                .sectors_max = max_io_size >> SECTOR_SHIFT,
                .unaligned = (device->logical_block_size >> SECTOR_SHIFT) - 1,
                .file_offset = device->linear_offset,
                .sectors_at_once = copies && device->linear_in_memory ? PLAIN_AT_ONCE_MAX >> SECTOR_SHIFT : 0,
                .descriptor = device->files[device->linear_file],
                .file = IO_LOOP_FIRST_FILE + device->linear_file,
                .linear = device->linear,
                .read = registers ? IORING_OP_READ_FIXED : IORING_OP_READ,
        };
}

static inline bool plain_is(const struct plain_rules *rules, const struct ublksrv_io_desc *descriptor)
{
        uint64_t start = descriptor->start_sector, size = target_size(rules->device) >> SECTOR_SHIFT;
        uint32_t sectors = descriptor->nr_sectors;

        return (descriptor->op_flags & rules->deciding) < rules->operations
               && (((uint32_t)start | sectors) & rules->unaligned) == 0 && sectors - 1 < rules->sectors_max
               && start < size && sectors <= size - start;
}

static inline enum io_op plain_op(const struct ublksrv_io_desc *descriptor)
{
        return (enum io_op)(descriptor->op_flags & UBLK_OPERATION_MASK);
}

/* Bytes. */
static inline uint32_t plain_length(const struct ublksrv_io_desc *descriptor)
{
        return descriptor->nr_sectors << SECTOR_SHIFT;
}

/* For a target; io->queue and io->tag are there. */
static inline void plain_describe(struct target_io *io, const struct ublksrv_io_desc *descriptor, void *data)
{
        io->op = plain_op(descriptor);
        io->flags = 0;
        io->offset = descriptor->start_sector << SECTOR_SHIFT;
        io->length = plain_length(descriptor);
        io->data = data;
}

struct plain_data {
        void *address;   /* NULL, where it is a registered buffer */
        uint16_t buffer; /* its index then */
};

/* Moves a linear disk's request. False: there is no room for it in this round. */
static inline bool plain_move(const struct plain_rules *rules, struct io_loop *loop,
        const struct ublksrv_io_desc *descriptor, const struct plain_data *data, uint64_t user_data)
{
        _Static_assert(
                IORING_OP_WRITE == IORING_OP_READ + 1 && IORING_OP_WRITE_FIXED == IORING_OP_READ_FIXED + 1,
                "reads and writes are neighbours");
        struct io_uring_sqe *sqe = io_ring_sqe(&loop->ring);

        if (__builtin_expect(!sqe, 0))
                return false;
        *sqe = (struct io_uring_sqe){
                .opcode = (uint8_t)(rules->read + plain_op(descriptor)),
                .flags = loop->file_flags,
                .fd = loop->files[rules->file],
                .off = rules->file_offset + (descriptor->start_sector << SECTOR_SHIFT),
                .addr = (uintptr_t)data->address, /* in a registered buffer: from its beginning, which is 0 */
                .len = plain_length(descriptor),
                .buf_index = data->buffer, /* what is not registered does not look at it */
                .user_data = user_data,
        };
        return true;
}

static inline bool plain_is_at_once(const struct plain_rules *rules, const struct ublksrv_io_desc *descriptor)
{
        return descriptor->nr_sectors <= rules->sectors_at_once;
}

/* Moves a linear disk's request to or from `address` now. Bytes, or -errno. */
static inline int plain_move_at_once(
        const struct plain_rules *rules, const struct ublksrv_io_desc *descriptor, void *address)
{
        size_t length = plain_length(descriptor);
        off_t offset = (off_t)(rules->file_offset + (descriptor->start_sector << SECTOR_SHIFT));
        ssize_t n = plain_op(descriptor) == IO_READ ? pread(rules->descriptor, address, length, offset)
                                                    : pwrite(rules->descriptor, address, length, offset);

        return n < 0 ? -errno : (int)n;
}

/* What has come back of an operation that did not move every byte: whether it is what the request is
 * answered. */
static inline bool plain_has_failed(int result)
{
        return result < 0 && result != -EAGAIN && result != -EINTR;
}
