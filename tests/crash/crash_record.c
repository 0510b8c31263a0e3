/* SPDX-License-Identifier: MIT */
/* Notes what a target does to its files, in order and with the data. */
#include "tests/crash/crash_record.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The linker puts ours in the place of the library's. */
int __real_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size);
int __wrap_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size);
ssize_t __real_pwrite(int fd, const void *data, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *data, size_t length, off_t offset);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static _Thread_local struct record *active;

void record_fault(struct record *record, const char *format, ...)
{
        va_list arguments;

        if (record->fault[0])
                return;
        va_start(arguments, format);
        vsnprintf(record->fault, sizeof(record->fault), format, arguments);
        va_end(arguments);
}

/* ---- operations ---- */

static void *grown(struct record *record, void *array, size_t count, size_t size)
{
        void *larger = realloc(array, count * size);

        if (!larger)
                record_fault(record, "out of memory");
        return larger;
}

/* Return room for one more operation, or NULL. */
static struct record_op *append(struct record *record)
{
        if (record->count == record->room) {
                size_t room = record->room ? 2 * record->room : 64;
                struct record_op *ops = grown(record, record->ops, room, sizeof(*ops));
                size_t *order = ops ? grown(record, record->order, room, sizeof(*order)) : NULL;

                record->ops = ops ? ops : record->ops;
                record->order = order ? order : record->order;
                if (!ops || !order)
                        return NULL;
                record->room = room;
        }
        return &record->ops[record->count++];
}

static void begin_op(struct record *record, const struct record_op *begun)
{
        struct record_op *op;

        if (begun->kind != RECORD_FLUSH
                && (begun->offset > record->capacity || begun->length > record->capacity - begun->offset)) {
                record_fault(record, "the target uses file %u up to byte %ju; give the case room for that",
                        begun->file, (uintmax_t)(begun->offset + begun->length));
                return;
        }
        op = append(record);
        if (!op)
                return;
        *op = *begun;
        op->begun = record_moment(record);
        op->done = RECORD_NEVER;
        if (op->kind != RECORD_WRITE)
                return;
        op->data = malloc(op->length > 0 ? op->length : 1);
        if (!op->data)
                record_fault(record, "out of memory");
        else
                memcpy(op->data, (const void *)(uintptr_t)op->address, op->length);
}

/* A write that ended early has done a part, and what the kernel refused has done nothing. After any other error
 * it is unknown what is in the file: the record has no rule for that. */
static void end_op(struct record *record, struct record_op *op, int result)
{
        static const int refused[] = {-EAGAIN, -EINTR, -EOPNOTSUPP, -EINVAL, -EBUSY};
        bool nothing = false;

        if (op->kind == RECORD_WRITE && result >= 0 && (uint64_t)result < op->length)
                op->length = (uint64_t)result;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
                nothing |= result == refused[i];
        if (nothing) {
                op->kind = RECORD_ZERO;
                op->length = 0;
        } else if (result < 0) {
                record_fault(record, "an operation on file %u has failed: %s", op->file, strerror(-result));
        }
        op->done = record_moment(record);
        record->order[record->ordered++] = (size_t)(op - record->ops);
}

static struct record_op *find_open(struct record *record, uint64_t user_data)
{
        for (size_t i = record->count; i > 0; i--)
                if (record->ops[i - 1].done == RECORD_NEVER && record->ops[i - 1].user_data == user_data)
                        return &record->ops[i - 1];
        return NULL;
}

/* ---- which file ---- */

static int file_of(const struct record *record, int fd)
{
        struct stat stat;

        if (fstat(fd, &stat) < 0)
                return -1;
        for (unsigned i = 0; i < record->files; i++)
                if (record->names[i].device == stat.st_dev && record->names[i].inode == stat.st_ino)
                        return (int)i;
        return -1;
}

/* The file of an entry of the ring. All have a fixed file: the loop is HELD_BY_RING. */
static int file_of_entry(const struct record *record, const struct io_uring_sqe *sqe)
{
        int index = sqe->fd - IO_LOOP_FIRST_FILE;

        if (!(sqe->flags & IOSQE_FIXED_FILE) || index < 0
                || (unsigned)index >= record->loops[0].loop->queue.device->file_count)
                return -1;
        return record->at[index];
}

/* ---- entries of the ring ---- */

/* Set what an fallocate() does. Return false: it changes nothing that is read. */
static bool describe_fallocate(
        struct record *record, int mode, uint64_t offset, uint64_t length, struct record_op *ret)
{
        ret->kind = RECORD_ZERO;
        ret->offset = offset;
        ret->length = length;
        if (!(mode & FALLOC_FL_KEEP_SIZE)
                || (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)))
                record_fault(record, "the record has no rule for fallocate() with mode %d", mode);
        return mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE);
}

static bool describe(struct record *record, const struct io_uring_sqe *sqe, struct record_op *ret)
{
        switch (sqe->opcode) {
        case IORING_OP_WRITE:
                ret->kind = RECORD_WRITE;
                ret->offset = sqe->off;
                ret->length = sqe->len;
                ret->address = sqe->addr;
                ret->durable = sqe->rw_flags & (RWF_DSYNC | RWF_SYNC);
                return true;
        case IORING_OP_FSYNC:
                ret->kind = RECORD_FLUSH;
                if (sqe->off != 0 || sqe->len != 0)
                        record_fault(record, "the record has no rule for a flush of a part of a file");
                return true;
        case IORING_OP_FALLOCATE:
                return describe_fallocate(record, (int)sqe->len, sqe->off, sqe->addr, ret);
        case IORING_OP_READ:
        case IORING_OP_READ_FIXED:
                return false;
        default:
                record_fault(record, "the record has no rule for operation %u of the ring", sqe->opcode);
                return false;
        }
}

/* Whether an entry needs no file of ours, and may take any time. */
static bool is_about_no_file(const struct io_uring_sqe *sqe)
{
        static const uint8_t opcodes[] = {IORING_OP_NOP, IORING_OP_TIMEOUT, IORING_OP_TIMEOUT_REMOVE,
                IORING_OP_ASYNC_CANCEL, IORING_OP_POLL_ADD, IORING_OP_POLL_REMOVE, IORING_OP_MSG_RING};

        for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++)
                if (sqe->opcode == opcodes[i])
                        return true;
        return false;
}

static void note_entry(struct record *record, const struct io_uring_sqe *sqe)
{
        int file = file_of_entry(record, sqe);
        struct record_op op = {.user_data = sqe->user_data, .file = (unsigned)file};

        if (is_about_no_file(sqe))
                return;
        if (file < 0)
                record_fault(record, "operation %u of the ring is about a file that the case does not name",
                        sqe->opcode);
        else if (describe(record, sqe, &op))
                begin_op(record, &op);
}

static const struct io_uring_cqe *completion_of(struct io_uring *ring, uint64_t user_data)
{
        const struct io_uring_cqe *cqe;
        unsigned head;

        io_uring_for_each_cqe(ring, head, cqe) if (cqe->user_data == user_data) return cqe;
        return NULL;
}

/* Wait for the completion of the entry that the kernel has got, which the loop finds later. */
static void await_completion(struct record *record, struct io_uring *ring, unsigned flags, uint64_t user_data)
{
        unsigned fd = (unsigned)ring->enter_ring_fd;
        const struct io_uring_cqe *cqe;
        struct record_op *op;

        while (!(cqe = completion_of(ring, user_data))) {
                int r = __real_io_uring_enter2(
                        fd, 0, io_uring_cq_ready(ring) + 1, flags | IORING_ENTER_GETEVENTS, NULL, 0);

                if (r < 0 && r != -EINTR) {
                        record_fault(record, "the ring cannot be waited for: %s", strerror(-r));
                        return;
                }
        }
        op = find_open(record, user_data);
        if (op)
                end_op(record, op, cqe->res);
}

/* The bytes of a write belong to the kernel until it is done: a target that changes them has no say in which of
 * them are written. */
static void check_data(struct record *record, uint64_t user_data)
{
        const struct record_op *op = find_open(record, user_data);

        if (op && op->data && memcmp(op->data, (const void *)(uintptr_t)op->address, op->length) != 0)
                record_fault(record,
                        "the target has changed the data of a write at byte %ju of file %u in flight",
                        (uintmax_t)op->offset, op->file);
}

/* Of all entries that wait, hand over one. The others stay in the ring, and are in flight for the target. */
static int enter(struct record *record, struct record_loop *of, unsigned complete, unsigned flags)
{
        struct io_uring *ring = &of->loop->ring;
        struct io_uring_sq *sq = &ring->sq;
        unsigned head = *sq->khead, tail = *sq->ktail, drawn;
        unsigned plain = flags & ~(unsigned)(IORING_ENTER_EXT_ARG | IORING_ENTER_GETEVENTS);
        unsigned fd = (unsigned)ring->enter_ring_fd;
        struct io_uring_sqe *first, taken;
        int r;

        for (; of->noted != tail; of->noted++)
                note_entry(record, &sq->sqes[of->noted & sq->ring_mask]);
        if (head == tail)
                return __real_io_uring_enter2(
                        fd, 0, complete, flags & ~(unsigned)IORING_ENTER_EXT_ARG, NULL, 0);
        drawn = head + (unsigned)crash_random_below(&record->random, tail - head);
        first = &sq->sqes[head & sq->ring_mask];
        taken = sq->sqes[drawn & sq->ring_mask];
        sq->sqes[drawn & sq->ring_mask] = *first;
        *first = taken;
        check_data(record, taken.user_data);
        r = __real_io_uring_enter2(fd, 1, 0, plain | IORING_ENTER_GETEVENTS, NULL, 0);
        if (r == 1 && !is_about_no_file(&taken))
                await_completion(record, ring, plain, taken.user_data);
        return r;
}

int __wrap_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size)
{
        for (unsigned i = 0; active && i < active->loop_count; i++)
                if (fd == (unsigned)active->loops[i].loop->ring.enter_ring_fd)
                        return enter(active, &active->loops[i], complete, flags);
        return __real_io_uring_enter2(fd, submit, complete, flags, signals, size);
}

/* ---- system calls of the target ---- */

/* Return the record, if the call is about one of its files. */
static struct record *record_of_call(int fd, int *ret_file)
{
        *ret_file = active ? file_of(active, fd) : -1;
        return *ret_file >= 0 ? active : NULL;
}

static void end_call(struct record *record, size_t count, ssize_t result)
{
        if (record && record->count > count)
                end_op(record, &record->ops[count], result < 0 ? -errno : (int)result);
}

/* As record_of_call(); *ret_count: how many operations there were before. */
static struct record *begin_pwrite(int fd, const void *data, size_t length, off_t offset, size_t *ret_count)
{
        int file;
        struct record *record = record_of_call(fd, &file);

        *ret_count = record ? record->count : 0;
        if (record)
                begin_op(record, &(struct record_op){.kind = RECORD_WRITE,
                                         .file = (unsigned)file,
                                         .offset = (uint64_t)offset,
                                         .length = length,
                                         .address = (uintptr_t)data});
        return record;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t length, off_t offset)
{
        size_t count;
        struct record *record = begin_pwrite(fd, data, length, offset, &count);
        ssize_t n = __real_pwrite(fd, data, length, offset);

        end_call(record, count, n);
        return n;
}

/* As syscall(): whatever was not given is garbage, and not looked at. */
long __wrap_syscall(long number, ...)
{
        struct record *record = NULL;
        long a[6], n;
        size_t count = 0;
        va_list list;

        va_start(list, number);
        for (size_t i = 0; i < ARRAY_SIZE(a); i++)
                a[i] = va_arg(list, long);
        va_end(list);
        if (number == SYS_pwrite64)
                record = begin_pwrite((int)a[0], (const void *)(uintptr_t)a[1], (size_t)a[2], a[3], &count);
        n = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
        end_call(record, count, n);
        return n;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
        int file, r;
        struct record *record = record_of_call(fd, &file);
        size_t count = record ? record->count : 0;
        struct record_op op = {.file = (unsigned)file};

        if (record && describe_fallocate(record, mode, (uint64_t)offset, (uint64_t)length, &op))
                begin_op(record, &op);
        r = __real_fallocate(fd, mode, offset, length);
        end_call(record, count, r);
        return r;
}

int __wrap_ftruncate(int fd, off_t size)
{
        int file, r;
        struct record *record = record_of_call(fd, &file);
        size_t count = record ? record->count : 0;

        if (record)
                begin_op(record,
                        &(struct record_op){
                                .kind = RECORD_RESIZE, .file = (unsigned)file, .offset = (uint64_t)size});
        r = __real_ftruncate(fd, size);
        end_call(record, count, r);
        return r;
}

static int note_sync(int fd, int (*real)(int))
{
        int file, r;
        struct record *record = record_of_call(fd, &file);
        size_t count = record ? record->count : 0;

        if (record)
                begin_op(record, &(struct record_op){.kind = RECORD_FLUSH, .file = (unsigned)file});
        r = real(fd);
        end_call(record, count, r);
        return r;
}

int __wrap_fsync(int fd)
{
        return note_sync(fd, __real_fsync);
}

int __wrap_fdatasync(int fd)
{
        return note_sync(fd, __real_fdatasync);
}

/* ---- beginning and end ---- */

void record_begin(struct record *record, struct io_loop *const *loops, unsigned loop_count, const int *fds,
        unsigned files, uint64_t capacity, uint64_t seed)
{
        const struct target_device *device = loops[0]->queue.device;
        struct stat stat;

        *record = (struct record){
                .random = {crash_mix(seed)}, .loop_count = loop_count, .files = files, .capacity = capacity};
        assert(files <= RECORD_FILES_MAX && loop_count <= RECORD_LOOPS_MAX && !active);
        for (unsigned i = 0; i < loop_count; i++)
                record->loops[i] = (struct record_loop){loops[i], *loops[i]->ring.sq.ktail};
        for (unsigned i = 0; i < files; i++)
                if (fstat(fds[i], &stat) < 0)
                        record_fault(record, "file %u cannot be looked at: %s", i, strerror(errno));
                else {
                        record->names[i].device = stat.st_dev;
                        record->names[i].inode = stat.st_ino;
                }
        for (unsigned i = 0; i < device->file_count; i++)
                record->at[i] = file_of(record, device->files[i]);
        active = record;
}

void record_end(struct record *record)
{
        if (active == record)
                active = NULL;
}

void record_clear(struct record *record)
{
        record_end(record);
        for (size_t i = 0; i < record->count; i++)
                free(record->ops[i].data);
        free(record->ops);
        free(record->order);
        *record = (struct record){};
}
