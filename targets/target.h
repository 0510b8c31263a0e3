/* SPDX-License-Identifier: MIT */
/* The one header that a backend includes.
 *
 * A target is a struct of callbacks. A callback runs on its request's own coroutine, on the thread of the
 * request's queue. It returns bytes done (the full length, or 0 for flush) or -errno, and returning is the
 * completion: it can be neither left out nor done twice. It suspends only in await_*(); between two awaits a
 * queue is atomic. No malloc and no blocking call on the I/O path. The core has checked range, alignment and
 * read-only before the call, and owns the data.
 *
 * Acknowledged means: survives kill -9. Once a callback has returned, the next worker must be able to read
 * what was written, flushed or not. Keep no acknowledged data or metadata in the memory of the process. */
#pragma once

#include "targets/target_desc.h"
#include "ublkd/backing/backing.h"
#include "ublkd/backing/backing_claims.h"
#include "ublkd/base/problem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TARGET_FILES_MAX = 128 }; /* of a disk: a leaf of a tree has a few */

enum io_op { IO_READ, IO_WRITE, IO_FLUSH, IO_DISCARD, IO_WRITE_ZEROES, _IO_OP_MAX };

enum io_flag {
        IO_FUA = 1 << 0,     /* on the disk before it is answered */
        IO_NOUNMAP = 1 << 1, /* write zeroes: keep the blocks allocated */
};

struct target_queue;

/* Of all kept memory of a disk together: of each target, that of the disk and that of each queue. Constant from start_device() on. */
enum target_kept_state {
        TARGET_KEPT_NONE, /* the target declares none, or is not started yet */
        /* All zeroes, and no worker has served this disk since the kernel has it, or its targets kept nothing so far: openers
         * may then have writes that were answered and not flushed. The store may hold data, of a disk before a
         * reboot or a stop: the slow path, as after a power failure. */
        TARGET_KEPT_FRESH,
        TARGET_KEPT_FOUND, /* as the worker before this one left it */
        TARGET_KEPT_LOST, /* all zeroes, and a worker before this one may have served the disk with other memory: the slow
                              path, and what was acknowledged and lay only there is lost */
};

/* Memory that outlives the worker and the supervisor, and that the next worker of the disk gets as this one left it. It
 * goes with the disk: a disk that is recreated, after a stop, a reboot or a change of its spec, begins with zeroes. So it
 * does when the version, a size or the number of queues is another. What a target does then, its slow path, must be
 * right without anything that was kept: as after a power failure.
 *
 * - The slow path is a matter of start_device() and start_queue(). When every start_queue() has returned, the core notes that
 *   it is done, and no queue takes a request before that. A worker that dies earlier leaves all of the memory to be
 *   zeroed again, for each queue, also for those that had started. A target that goes on with it while it serves has to
 *   note that by itself.
 * - Store into it from one thread at a time: that of the queue, for the memory of a queue. A worker can be killed
 *   between any two stores. targets/kept/record_log.h has records that are whole or absent then.
 * - Never pass it to await_*(): the kernel may still read or write it for a dead worker.
 * - TARGET_KEPT_LOST is reported whatever the target does: by an event (KeptMemoryLost; FlushFailed where the worker has found
 *   that the memory is damaged), and by failing flushes as after a failed one, until the administrator accepts that. A
 *   target that cannot serve then returns -ENODATA from start_device(): each worker ends with the reason KeptMemoryLost, and
 *   finds the same, until the disk is recreated.
 * - A target that declares 0 bytes has none, and costs nothing. Each target of a tree has its own, wherever it stands, and sees
 *   no other. But where one of them is of another version, or there is one more, all begin with zeroes.
 * - open() does not see it: it also runs in a preflight, and while the worker before this one may still store there. */
struct target_kept {
        void *memory;  /* `size` bytes, aligned to 64; NULL: TARGET_KEPT_NONE */
        uint64_t size; /* as declared */
        uint64_t
                seed; /* another number for each memory that begins with zeroes, as record_log_open() takes it */
        enum target_kept_state state;
};

/* What ublkd and a target share while the target serves, of one with target_desc.pack_live(). It outlives the worker, as
 * kept memory does. */
struct target_live {
        const uint32_t
                *sequence;    /* changes with the options; NULL: there is no such memory, as in a preflight */
        const uint32_t *size; /* bytes, of the options */
        const unsigned char *options; /* as pack_live() has written them */
        uint64_t *counts;             /* TARGET_COUNTS_MAX numbers of the target, for show_counts() */
};

/* Read the options if they are others than those of *sequence (0: those of the spec that the worker was started with). Return
 * true with `size` bytes and the new *sequence; false: there is nothing new, they have another size, or ublkd writes them
 * now: look again later. On any thread. */
static inline bool target_live_read(
        const struct target_live *live, uint32_t *sequence, void *ret, size_t size)
{
        uint32_t now = live->sequence ? __atomic_load_n(live->sequence, __ATOMIC_ACQUIRE) : 0;

        if (now == *sequence || now % 2 != 0 || size > TARGET_LIVE_MAX
                || __atomic_load_n(live->size, __ATOMIC_RELAXED) != size)
                return false;
        for (size_t i = 0; i < size; i++)
                ((unsigned char *)ret)[i] = __atomic_load_n(&live->options[i], __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(live->sequence, __ATOMIC_RELAXED) != now)
                return false;
        *sequence = now;
        return true;
}

/* One request. `queue`, `op`, `offset`, `length`, `tag` and `flags` are set by the core. */
struct target_io {
        struct target_queue *queue;
        enum io_op op;
        unsigned flags;  /* enum io_flag */
        uint64_t offset; /* bytes, a multiple of the logical block size, within the disk */
        uint32_t length; /* bytes; 0 for flush */
        uint16_t tag; /* below device->queue_depth; no other request of the queue has it at the same time, but
                         below another target several parts of one request may. device->queue_depth itself: of an
                         action, with `data` that is memory of the target above */
        /* length bytes: to fill (read) or to store (write). NULL for the other operations, and where the
         * bytes stay in the kernel, which only a target with TARGET_REGISTERED_BUFFERS lives with: it moves
         * them with await_read() and await_write(). The data of one tag always begins at the same address,
         * and of no other tag; what is there when a read begins is what the last request of the tag left, or
         * zeroes. Below another target it begins anywhere in the data of the tag: device->is_below. */
        void *data;
        uint32_t data_position; /* bytes; with `data` NULL: where in the pages the data begins; else 0 */
};

/* What only opening the backing store can show. Zeroed before open(); 0 means "none" or "do not care". */
struct target_geometry {
        uint64_t size;                                /* bytes; 0: as big as asked for */
        uint32_t logical_block_size;                  /* bytes, what the target prefers; 0: 512 */
        uint32_t logical_block_size_min;              /* the smallest it can serve; 0: 512 */
        uint32_t physical_block_size, io_min, io_opt; /* bytes */
        uint32_t discard_granularity, max_discard_size,
                max_write_zeroes_size; /* bytes; 0 max: no such operation */
        bool read_only;                /* cannot be written, whatever the spec says */
        bool rotational;
        bool volatile_cache;    /* flush has something to do */
        bool prefers_zero_copy; /* zero copy is the fastest path: the pages go to a device without a copy */
        /* What the backing store takes without splitting or copying, with prefers_zero_copy; 0: anything. */
        uint32_t dma_alignment, max_segment_size; /* bytes */
        uint16_t max_segments;
        /* Freed by the core, also when open() fails. It sets `writes` and the end of each that is not mapped:
         * as long as the disk. Empty: nothing to share. */
        struct backing_claims claims;
        bool claims_have_ends; /* the core's, of a tree over several stores: the ends of the claims are right as they are */
        /* Freed by the core: see struct disk_params. Pointers into the spec ("/target/path"). */
        struct problem_list sharing;
        bool path_may_change; /* the path of the options may lead to another store after the next boot */
        char *stable_path;    /* the same store by a name that stays; freed by the core; NULL: it has none */
};

/* The backing store of a disk, which outlives its workers. A target whose store is not a single file leaves it
 * as it is. */
struct target_store {
        /* Set by the core before open(). */
        int given; /* a descriptor of the store that the disk is on, from the worker before this one, to be
                      opened in place of any path; -1: none. open() takes it over by setting it to -1 */
        struct backing_identity expected; /* of that store; empty: the disk is made on whatever is there */
        bool expected_in_this_boot;       /* `expected` was taken since the machine was started */
        bool served;   /* the kernel has the disk already, with I/O that waits or a worker that serves it */
        bool has_data; /* a disk with data may be on the store that open() finds */
        bool shared;   /* another disk of ours has claimed the block device for itself, and this one uses
                        another part */
        bool is_one_of_several; /* the supervisor, which knows its pointer, writes the command for a consent */
        uint32_t
                user; /* whose rights open() needs for the store, which is a regular file of this user; 0: those of
                          the worker */
        /* Set by open(), `found` and the numbers also where it fails because of them. */
        int kept; /* an open file description of the store for the supervisor to keep: its own, so that its
                     lock, its exclusive claim (of a block device that is written to) and its record of
                     writeback errors outlive this process; also among device->files, which own it; -1: none
                   */
        struct backing_identity found;
        uint32_t major, minor; /* of the disk, or of the file system that has the file */
        uint64_t inode;        /* of the file; 0: a disk */
        bool claimed;          /* `kept` is exclusive */
        bool as_given;         /* `kept` is what was given */
        /* Where the store ends, also where open() fails because of that, and as measure() sees it. Not known of
         * a block device that has no bytes at all: its medium or its server is away, and its data with it. Of a tree over several
         * stores: where the disk ends by them; 0: a part in its middle is gone. */
        bool end_known;
        uint64_t end; /* bytes */
};

/* What the core knows of the device; all of it but the size is constant after open(). */
struct target_device {
        const struct target *target;
        const char *name;     /* of the device, for messages */
        void *state;          /* target->device_size bytes, zeroed */
        const void *config;   /* the options of the target, parsed */
        bool read_only;       /* asked for by the spec */
        uint64_t wanted_size; /* bytes, from the spec; 0: not given */
        uint32_t
                wanted_block_size; /* bytes, from the spec; 0: not given; with store.served: of the disk, where another
                                       target of the tree can have larger blocks than those below this one */
        uint64_t
                wanted_offset; /* bytes; where wanted_size begins: another target above leaves alone what is before */
        bool is_below;         /* another target stands on this one */
        /* Of a target that stands on others, in the order of the spec. They are open before it is, with their sizes (0: as
         * large as asked for). */
        const struct target_device *children;
        unsigned child_count;
        bool has_list;               /* they are its "children", not its "child" */
        uint64_t size;               /* bytes; set after open(); only grows, at any time: target_size() */
        uint32_t logical_block_size; /* final; set after open() */
        unsigned queues, queue_depth;
        int files[TARGET_FILES_MAX]; /* descriptors that await_*() may use, by index; set in open(), closed by
                                        the core */
        unsigned file_count;
        /* Set in open(), where the disk lies in one file as it is: byte N of the disk is byte linear_offset +
         * N of files[linear_file]. The core then moves the bytes of reads and of writes without FUA by
         * itself, on shorter ways than a callback could; read() and write() are called for all others, and
         * for the whole of a request that could not be moved so. It also locks those bytes against other
         * servers (targets/worker/disk/backing_lock.h): the file must be open for writing unless the disk is
         * read-only. */
        bool linear;
        unsigned linear_file;
        uint64_t linear_offset; /* bytes; also set where open() fails because of where the store ends */
        bool linear_end_known; /* lseek(SEEK_END) on that file returns at once, without a lock and without asking
                                  a server, where it ends: the core looks before it answers requests, see
                                  targets/worker/queue/store_end.h. Of a disk that is not linear: reaches_end()
                                  of the target returns so */
        bool linear_in_memory; /* that file has no device below it: the core need not wait for a short read or
                                  write of it, and does it in place */
        bool by_callbacks; /* the core's: a target above the file wants to see each request (TARGET_SEES_ALL), so
                              the core moves no bytes by itself */
        /* May be set in open(), where no write of ours to the backing store can go on without this process:
         * each is done by one of its threads in a system call, from beginning to end. So it is with tmpfs,
         * whose writes and fallocate() are copies and clearing of memory by the caller
         * (shmem_file_write_iter(), shmem_fallocate(), mm/shmem.c); not where a device or a server has to
         * write (O_DIRECT, disks, network file systems), and not for sure anywhere else. When such a process
         * is gone nothing of it can come late, which makes its recovery shorter: see
         * targets/worker/queue/ublk_queue.c. In doubt: false.
         */
        bool io_ends_with_process;
        struct target_store store;
        struct target_live live; /* set before open(); of one with pack_live() */
        /* Of the disk; set before start_device(). All queues may store into it: by atomic operations, or with a lock of the
         * target. */
        struct target_kept kept;
        struct target_kept *queues_kept; /* of each queue; set before start_device(); NULL: none */
};

/* Return how many bytes the disk may show; I/O beyond them does not reach the target. From any thread. */
static inline uint64_t target_size(const struct target_device *device)
{
        return __atomic_load_n(&device->size, __ATOMIC_RELAXED);
}

struct target_action; /* targets/target_action.h */

struct target_queue {
        struct target_device *device;
        unsigned index;
        void *state;                   /* target->queue_size bytes, zeroed */
        struct target_kept *kept;      /* of the queue, set before start_queue(); NULL: TARGET_KEPT_NONE */
        unsigned first_file;           /* of device->files among those of the disk */
        unsigned first_place;          /* of desc->waits.files likewise */
        struct target_queue *of_disk;  /* the queue of the outermost target; of that one: itself */
        struct target_queue *children; /* one for each of device->children */
};

/* A part of a request, for a child. */
struct target_part {
        unsigned child;
        uint64_t offset;   /* bytes, on the child */
        uint32_t position; /* bytes, in the data of the request; 0 where it has none */
        uint32_t length;   /* bytes; 0 for flush */
};

/* How far a request is divided. Zero-initialised; the target's. */
struct target_cursor {
        uint32_t done; /* bytes */
        unsigned child;
};

/* Write the next part of a request. Return false if there is none any more. Pure. */
typedef bool (*target_divide)(
        const struct target_io *io, struct target_cursor *cursor, struct target_part *ret);

/* Where the bytes of a request lie as they are. */
struct target_place {
        unsigned file;   /* index of device->files */
        uint64_t offset; /* bytes */
};

struct target {
        const struct target_desc *desc;
        size_t device_size, queue_size; /* the core allocates these, zeroed */
        /* Opens the backing store: on the main thread, may block. 0 or -errno with problems (pointer
         * "/target/…"). Of a target that stands on others, *ret has what follows of theirs
         * (targets/worker/disk/stack_rules.h) and size(), and open() changes what is different of it. */
        int (*open)(struct target_device *device, struct target_geometry *ret, struct problem_list *problems);
        void (*close)(struct target_device *device);
        /* Optional: how many bytes the open backing store has now, from where the disk begins; without it the
         * disk may grow to any size. On the main thread, while the queues serve; must not block for
         * long. 0 or -errno. */
        int (*measure)(struct target_device *device, uint64_t *ret);
        /* Optional, of a disk that is not linear: return whether its backing stores still reach to the end of the disk; else
         * *ret is where it ends by them, in bytes. On the thread of any queue, while the disk may grow. */
        bool (*reaches_end)(const struct target_device *device, uint64_t *ret);
        /* Of a target that stands on others, in place of measure(): return its size by those of its children. Bytes; 0: as
         * large as asked for. Pure; also called before open(). */
        uint64_t (*size)(const struct target_device *device, const uint64_t *children);
        /* Optional, of one with a child: return whether the disk lies in the child as it is, from byte *ret on. Pure; also
         * called before open(). */
        bool (*is_part)(const struct target_device *device, uint64_t *ret);
        /* Optional, of one with children that only maps offsets: how it divides reads and writes. So the core moves the bytes
         * of a request that lies in one part by itself, as for a linear disk, if that part does, too. */
        target_divide divide;
        /* The core's own, of a tree: return whether all bytes of a read or a write lie in one file as they are, and where. On the
         * queue's thread. */
        bool (*locate)(const struct target_queue *queue, enum io_op op, uint64_t offset, uint32_t length,
                struct target_place *ret);
        /* Optional. On the main thread, once, before the queues: when the disk is this worker's, and no request of the worker
         * before it can come late. May block, but ublkd ends a worker whose queues have not fetched 30 seconds after GO, and
         * starts another one: start_device() and start_queue() have that long together. Must not suspend. It does what is to
         * be done of the kept memory of the disk, and may do it of that of all queues. 0; or -errno, with problems as open():
         * the worker ends. */
        int (*start_device)(struct target_device *device, struct problem_list *problems);
        /* Optional. On the queue's thread, before the first and after the last request. Once it has returned, the
         * worker opens and registers nothing any more, and few system calls are left: targets/worker/walls.h. */
        int (*start_queue)(struct target_queue *queue);
        void (*stop_queue)(struct target_queue *queue);
        /* Coroutines that no request waits for, `number` counting from 0 to what desc->waits declares: on the thread of
         * the queue, after start_queue() and before the first request. They may return at any time. After the last
         * request of the queue the core asks them to stop, the last one of the queue first and then those of the device,
         * each when the one before has returned, and waits for each: see target_wait.h. So none may hold a lock while
         * it waits for what may never come. stop_queue() comes after that.
         * device_background() is called on the first queue, and stops with it: other queues may still serve then. In a
         * tree those of a child begin before those of the target above it, and so are asked to stop after them; but
         * device_background() of the whole tree begins before the first background(), and stops after the last. */
        void (*background)(struct target_queue *queue, unsigned number);
        void (*device_background)(struct target_queue *queue, unsigned number);
        /* Of one with desc->verbs, and of a tree that has verbs: carry out an action, on a coroutine of the first queue
         * (targets/target_action.h). Return 0 or -errno. NULL: a client can start none. */
        int (*act)(struct target_action *action, unsigned verb);
        /* Of one with TARGET_SCANS: read bytes of its disk for an action, from where they lie: with await_action_read(), or scan()
         * of its children. `queue` is that of the target. On the coroutine of the action. Return `length` or -errno, as
         * await_action_read(). */
        int (*scan)(struct target_action *action, struct target_queue *queue, uint64_t offset,
                uint32_t length, void *memory);
        /* A callback that is there is the capability. read is mandatory. Return bytes done or -errno. */
        int (*read)(struct target_io *io);
        int (*write)(struct target_io *io);
        int (*flush)(struct target_io *io);
        int (*discard)(struct target_io *io);
        int (*write_zeroes)(struct target_io *io);
};

/* Perform all parts of a request of a target that stands on others, several at the same time, begun in their order. Suspends if a
 * child does. Each part is performed, also after another one has failed. Return what the request's callback has to return. Of
 * several errors: the first one after which data may be lost (of a flush or a write with IO_FUA), else the first. */
int await_parts(struct target_io *io, target_divide divide);

/* Each suspends the calling coroutine until the operation is done, and returns what the operation returned.
 * `file` is an index into device->files. Short transfers, EAGAIN and EINTR are finished inside: the answer is
 * `length` or -errno (-EIO for a read past the end of the backing store, -ENOSPC for a write that cannot
 * grow). */

/* Read from a file into the data of the request itself, wherever that is, `position` bytes from its
 * beginning. */
int await_read(struct target_io *io, unsigned file, uint32_t position, uint32_t length, uint64_t offset);
/* Write data of the request itself, from `position` bytes on, to a file. rw_flags: RWF_DSYNC or 0. */
int await_write(struct target_io *io, unsigned file, uint32_t position, uint32_t length, uint64_t offset,
        int rw_flags);
/* Write memory of the target to a file. rw_flags: as for await_write(). */
int await_write_memory(struct target_io *io, unsigned file, const void *memory, uint32_t length,
        uint64_t offset, int rw_flags);
/* Call fdatasync. Return 0 or -errno. */
int await_fdatasync(struct target_io *io, unsigned file);
/* Call fallocate with `mode` (FALLOC_FL_*). Return 0 or -errno. */
int await_fallocate(struct target_io *io, unsigned file, int mode, uint64_t offset, uint64_t length);
