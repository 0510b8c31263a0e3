/* SPDX-License-Identifier: MIT */
/* Plain requests: a read or a write without FUA, within the disk, aligned, allowed, and with its data where
 * the target can use it. Most requests are plain, and one look at the driver's descriptor shows it; what
 * perform.c would find out about them is known then. All others go through perform_co().
 *
 * Three kinds of plain requests need no coroutine: those of a target that never waits, those of a disk that
 * lies in one file as it is (target_device.linear), and those of a tree of maps whose bytes lie in one of its
 * files (target.locate). One operation moves the latter two: one of the ring, or where the only file is memory
 * and the request is short, a system call at once. Such an operation ends the request if it
 * has moved every byte, or has failed for good. Otherwise the request starts again on a coroutine, from its
 * first byte: nothing of it was answered yet, and nothing of it is under way. So what becomes of short
 * transfers and of EAGAIN is known to await.c alone.
 *
 * A system call holds up the other requests of its queue: for the copy of at most PLAIN_AT_ONCE_MAX bytes,
 * and where memory was swapped out for as long as its return takes. Longer ones are left to the ring, whose
 * threads copy on several CPUs. The fence holds as well: a thread that is killed in its system call ends
 * that before its process releases the ring or the descriptors.
 *
 * Inline: most requests pass here. On the queue's thread. */
#pragma once

#include "targets/worker/io/io_data.h"
#include "ublkd/kernel/ublk_uapi.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        SECTOR_SHIFT = 9,
        UBLK_OPERATION_MASK = 0xff,
        PLAIN_AT_ONCE_MAX = 64 << 10,        /* bytes */
        _PLAIN_OPERATION_MAX = IO_WRITE + 1, /* IO_READ, IO_WRITE */
};
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
        uint64_t impossible;  /* bits that a number of sectors must not have: those below a block, and those
                                 beyond an offset in bytes, so that the end of a request cannot overflow */
        uint64_t file_offset; /* bytes, as target_device.linear_offset */
        uint32_t inline_sectors; /* of a linear disk: what is moved by a system call; 0: nothing */
        int descriptor;          /* for that */
        uint64_t heads[_PLAIN_OPERATION_MAX]; /* where the ring moves the bytes: how its entries begin */
        int (*callbacks[_PLAIN_OPERATION_MAX])(struct target_io *io);
};

/* Return an entry's first 8 bytes: what is the same for all reads, or all writes. */
static inline uint64_t plain_head(const struct io_loop *loop, uint8_t opcode, unsigned file)
{
        const struct io_uring_sqe sqe = {
                .opcode = opcode, .flags = loop->file_flags, .fd = loop->files[file]};
        uint64_t head;

        _Static_assert(
                offsetof(struct io_uring_sqe, off) == sizeof(head), "a head ends where the offset begins");
        memcpy(&head, &sqe, sizeof(head));
        return head;
}

/* Return the rules of a queue. The device must be open, and the loop set up. max_io_size: bytes. */
static inline struct plain_rules plain_rules_of(const struct target_device *device,
        const struct io_data *data, const struct io_loop *loop, uint32_t max_io_size)
{
        bool copies = data->route.path == DATA_PATH_COPY, registers = data->route.auto_buffers;
        const struct target *target = device->target;
        unsigned writable = !device->read_only && target->write,
                 file = IO_LOOP_FIRST_FILE + device->linear_file;
        struct plain_rules rules = {
                .device = device,
                .deciding = UBLK_OPERATION_MASK | UBLK_IO_F_FUA | (registers ? UBLK_IO_F_NEED_REG_BUF : 0),
                .operations = copies || registers ? 1 + writable : 0,
                .sectors_max = max_io_size >> SECTOR_SHIFT,
                .impossible =
                        ~(UINT64_MAX >> SECTOR_SHIFT) | ((device->logical_block_size >> SECTOR_SHIFT) - 1),
                .file_offset = device->linear_offset,
                .inline_sectors = copies && device->linear_in_memory ? PLAIN_AT_ONCE_MAX >> SECTOR_SHIFT : 0,
                .descriptor = device->files[device->linear_file],
        };

        rules.heads[IO_READ] = plain_head(loop, registers ? IORING_OP_READ_FIXED : IORING_OP_READ, file);
        rules.heads[IO_WRITE] = plain_head(loop, registers ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE, file);
        rules.callbacks[IO_READ] = target->read;
        rules.callbacks[IO_WRITE] = target->write;
        return rules;
}

/* Return the disk's size now. It grows before requests arrive that know of it. */
static inline uint64_t plain_disk_sectors(const struct plain_rules *rules)
{
        return target_size(rules->device) >> SECTOR_SHIFT;
}

/* Return whether the request is plain. disk_sectors: read after the request has arrived. */
static inline bool plain_is(
        const struct plain_rules *rules, const struct ublksrv_io_desc *descriptor, uint64_t disk_sectors)
{
        uint64_t start = descriptor->start_sector;
        uint32_t sectors = descriptor->nr_sectors;

        return (descriptor->op_flags & rules->deciding) < rules->operations
               && ((start | sectors) & rules->impossible) == 0 && sectors - 1 < rules->sectors_max
               && start + sectors <= disk_sectors;
}

static inline enum io_op plain_op(const struct ublksrv_io_desc *descriptor)
{
        return (enum io_op)(descriptor->op_flags & UBLK_OPERATION_MASK);
}

/* Return the length of the request in bytes. */
static inline uint32_t plain_length(const struct ublksrv_io_desc *descriptor)
{
        return descriptor->nr_sectors << SECTOR_SHIFT;
}

/* Describe the request for a target; io->queue and io->tag are already set. */
static inline void plain_describe(struct target_io *io, const struct ublksrv_io_desc *descriptor, void *data)
{
        io->op = plain_op(descriptor);
        io->flags = 0;
        io->offset = descriptor->start_sector << SECTOR_SHIFT;
        io->length = plain_length(descriptor);
        io->data = data;
}

/* Where a tag's bytes are. */
struct plain_data {
        void *address; /* NULL, where it is a registered buffer */
        struct {
                uint16_t index; /* of that buffer */
                uint16_t personality;
                uint32_t file_index; /* 0, both: an entry is given all three in one */
        } buffer;
};

_Static_assert(offsetof(struct io_uring_sqe, buf_index) + sizeof(((struct plain_data *)0)->buffer)
                       == offsetof(struct io_uring_sqe, addr3),
        "a buffer's index and its neighbours");

/* Move a request to or from `offset` of the file in `head` by an operation of the ring. Return false if this round has no free
 * entry for it. Field by field: whole, the entry would be cleared first. */
static inline bool plain_move_at(struct io_loop *loop, uint64_t head, uint64_t offset,
        const struct ublksrv_io_desc *descriptor, const struct plain_data *data, uint64_t user_data)
{
        struct io_uring_sqe *sqe = io_ring_sqe(&loop->ring);

        if (__builtin_expect(!sqe, 0))
                return false;
        memcpy(sqe, &head, sizeof(head));
        sqe->off = offset;
        sqe->addr = (uintptr_t)data->address; /* in a registered buffer: from its beginning, which is 0 */
        sqe->len = plain_length(descriptor);
        sqe->rw_flags = 0;
        sqe->user_data = user_data;
        memcpy(&sqe->buf_index, &data->buffer, sizeof(data->buffer)); /* not looked at, if not registered */
        sqe->addr3 = 0;
        sqe->__pad2[0] = 0;
        return true;
}

/* Move a linear disk's request: see plain_move_at(). */
static inline bool plain_move(const struct plain_rules *rules, struct io_loop *loop,
        const struct ublksrv_io_desc *descriptor, const struct plain_data *data, uint64_t user_data)
{
        return plain_move_at(loop, rules->heads[plain_op(descriptor)],
                rules->file_offset + (descriptor->start_sector << SECTOR_SHIFT), descriptor, data, user_data);
}

/* Move a request of a tree of maps, if all its bytes lie in one file: see plain_move_at(). Return false also if they do not. */
static inline bool plain_move_mapped(const struct plain_rules *rules, struct io_loop *loop,
        const struct ublksrv_io_desc *descriptor, const struct plain_data *data, uint64_t user_data)
{
        uint64_t head = rules->heads[plain_op(descriptor)];
        struct target_place place;
        int fd;

        if (!rules->device->target->locate(&loop->queue, plain_op(descriptor),
                    descriptor->start_sector << SECTOR_SHIFT, plain_length(descriptor), &place))
                return false;
        fd = loop->files[IO_LOOP_FIRST_FILE + place.file];
        memcpy((char *)&head + offsetof(struct io_uring_sqe, fd), &fd, sizeof(fd));
        return plain_move_at(loop, head, place.offset, descriptor, data, user_data);
}

static inline bool plain_is_inline(const struct plain_rules *rules, const struct ublksrv_io_desc *descriptor)
{
        return descriptor->nr_sectors <= rules->inline_sectors;
}

/* Move a linear disk's request to or from `address` now. Return bytes or -errno. By syscall(): pread() and pwrite()
 * are cancellation points, and with threads in the process glibc pays for that in each call. */
static inline int plain_transfer_inline(
        const struct plain_rules *rules, const struct ublksrv_io_desc *descriptor, void *address)
{
        size_t length = plain_length(descriptor);
        off_t offset = (off_t)(rules->file_offset + (descriptor->start_sector << SECTOR_SHIFT));
        long number = plain_op(descriptor) == IO_READ ? SYS_pread64 : SYS_pwrite64;
        long n = syscall(number, rules->descriptor, address, length, offset);

        return n < 0 ? -errno : (int)n;
}

/* Return whether `result`, of an operation that did not move every byte, is the answer to the request. One
 * that found no room may have to wait for it, which a coroutine does: see room.h. */
static inline bool plain_has_failed(int result)
{
        return result < 0 && result != -EAGAIN && result != -EINTR && result != -ENOSPC && result != -EDQUOT;
}
