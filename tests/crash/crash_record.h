/* SPDX-License-Identifier: MIT */
/* Notes what a target does to its files, in order and with the data, while a test runs it.
 *
 * It stands between the loops of the worker and the kernel: the linker puts it in the place of io_uring_enter2()
 * (--wrap), so it meets every entry of the ring, whichever await_*() has made it. Of the entries that wait it has
 * the kernel carry out one at a time, drawn from the seed, and waits for its completion. Thus an operation is in
 * flight from the moment at which the target has handed it over to the one at which the kernel has answered it,
 * others overtake it meanwhile, and the whole order comes from the seed. The kernel really does each operation.
 *
 * These system calls of the thread that runs the target are noted as well, as over at once, on the files that were
 * named to record_begin(): pwrite(), also by syscall(), fallocate(), ftruncate(), fsync(), fdatasync().
 *
 * What it cannot see: other system calls (pwritev(), write(), copy_file_range()), memory that is mapped, other
 * threads, what open() and close() of the target do (the record lies between them), and files by another name than
 * their inode. What it does not see shows in the end: record_explains() compares the files with what the record
 * would make of them. An operation that the record has no rule for is a fault (record.fault), never left out.
 *
 * Only one record at a time in a process, on the thread that called record_begin(). */
#pragma once

#include "targets/worker/io/io_loop.h"
#include "tests/crash/crash_kept.h"
#include "tests/crash/crash_random.h"
#include "ublkd/base/cleanup.h"

enum { RECORD_FILES_MAX = 10, RECORD_LOOPS_MAX = 4 };

/* The moment of what has not happened. */
#define RECORD_NEVER UINT64_MAX

enum record_kind { RECORD_WRITE, RECORD_ZERO, RECORD_FLUSH, RECORD_RESIZE };

struct record_op {
        enum record_kind kind;
        unsigned file;           /* as named to record_begin() */
        uint64_t offset, length; /* bytes; RECORD_RESIZE: offset is the size */
        char *data;              /* RECORD_WRITE: the record's copy */
        bool durable;            /* a write that is on the disk when it is over (RWF_DSYNC) */
        uint64_t begun, done;    /* moments */
        uint64_t user_data;      /* of the ring's entry, until it is done */
        uint64_t address;        /* of the data, until it is done */
};

struct record {
        struct record_op *ops; /* in the order in which they were begun */
        size_t count, room;
        size_t *order; /* of those that are over, indices into ops, in the order in which they were done */
        size_t ordered;
        uint64_t now; /* the last moment: counts what has happened, to files and to requests */
        struct crash_random random;
        struct record_loop {
                struct io_loop *loop;
                unsigned noted; /* the position in its ring up to which entries were noted */
        } loops[RECORD_LOOPS_MAX];
        unsigned loop_count;
        struct crash_kept
                *kept; /* set by the caller behind record_begin(); NULL: nothing notes kept memory */
        unsigned files;
        uint64_t capacity; /* bytes that a file may grow to */
        struct {
                uint64_t device, inode;
        } names[RECORD_FILES_MAX];
        int at[TARGET_FILES_MAX]; /* of each file of the device: which of ours; -1: none */
        char fault[256];          /* why the record is of no use; empty: it is good */
};

/* Begin to note what open loops do to the regular files that are open as `fds`: up to RECORD_LOOPS_MAX of one disk, which this
 * thread turns. capacity: bytes. */
void record_begin(struct record *record, struct io_loop *const *loops, unsigned loop_count, const int *fds,
        unsigned files, uint64_t capacity, uint64_t seed);
/* End it: the rings are the kernel's alone again. */
void record_end(struct record *record);
/* Free what was noted. A zero-initialised record is fine. */
void record_clear(struct record *record);

/* Return the moment of something that happens now, later than all before. */
static inline uint64_t record_moment(struct record *record)
{
        record->now++;
        if (record->kept)
                kept_note(record->kept, record->now);
        return record->now;
}

/* Note the first reason why the record is of no use. */
_printf_(2, 3) void record_fault(struct record *record, const char *format, ...);
