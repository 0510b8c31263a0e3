/* SPDX-License-Identifier: MIT */
/* The memory of a device that outlives its worker: a file in the supervisor's runtime directory, which the
 * worker maps and its successor maps again.
 *
 * The supervisor makes it, and passes it to each worker beside its CONFIG. It lasts as long as
 * the device, through the deaths of workers and of supervisors. A region of another version, device or number
 * of queues is never misread: a new one is made in its place before the next worker starts.
 *
 * A header, then sections, whose places the header gives, then kept memory (region_kept.h). Nothing in it is an
 * address. The supervisor takes nothing in it for true but numbers to be shown, and it reads and writes with
 * system calls instead of mapping it: a worker that goes mad could cut the file off, and a mapping would then
 * kill any process that reads. */
#pragma once

#include "ublkd/proto/latency_buckets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        DEVICE_REGION_VERSION = 1,
        DEVICE_REGION_ALIGNMENT = 4096,  /* of sections, and of each queue's statistics: no two share a cache
                                           line */
        DEVICE_REGION_QUEUES_MAX = 4096, /* UBLK_MAX_NR_QUEUES of the driver */
        DEVICE_REGION_SECTIONS_MAX = 8,
};

#define DEVICE_REGION_MAGIC UINT64_C(0x6e6772646b6c6275) /* "ublkdrgn", little endian */

enum device_region_section {
        REGION_CONTROL, /* struct region_control */
        REGION_STATS,   /* struct queue_stats for each queue, device_region_stats_stride() apart */
        _REGION_SECTION_MAX
};

/* What the device has been through, counted by the supervisor for its successor; no other process reads it. */
struct region_history {
        uint64_t restarts;   /* workers started in place of another, tries that failed included */
        uint64_t recoveries; /* that ended in Live */
        double last_recovery_ms;
};

/* What the header says of the memory that belongs to the target: see region_kept.h. */
struct region_kept {
        uint64_t
                restarts; /* region_history.restarts, as a supervisor that knows of kept memory counts; directly
                              behind the history, to be written with it. Others count in the history alone */
        uint64_t disk_bytes, queue_bytes;
        uint64_t seed;
        uint32_t version;
        uint32_t lost;   /* enum region_kept_loss of region_kept.h; 0 where an older supervisor made it */
        uint32_t given;  /* how often it was given to a worker: see region_kept_give() */
        uint32_t taken;  /* the `given` of the last worker that took it; written by the worker */
        char target[32]; /* its name, or that of a layout, and zeroes */
};

struct device_region_header {
        uint64_t magic;
        uint32_t version;
        uint32_t queues;
        uint32_t epoch; /* of the device's record: a disk that is recreated counts from zero */
        uint32_t sections;
        uint64_t size; /* of the file without kept memory, which lies behind */
        struct {
                uint64_t offset, size; /* bytes */
        } section[DEVICE_REGION_SECTIONS_MAX];
        struct region_history history; /* 0 where an older supervisor made the region */
        struct region_kept kept;       /* likewise */
};

enum region_direction { REGION_READ, REGION_WRITE, _REGION_DIRECTION_MAX };
enum region_bucket { REGION_BUCKET_REQUESTS, REGION_BUCKET_BYTES, _REGION_BUCKET_MAX };

struct region_limits {
        uint64_t per_second[_REGION_BUCKET_MAX]; /* 0: no limit */
        uint64_t burst[_REGION_BUCKET_MAX];      /* 0: a tenth of a second's */
};

/* What the supervisor may change while the worker serves. */
struct region_values {
        uint64_t busy_poll_us;
        struct region_limits limits[_REGION_DIRECTION_MAX];
};

/* In the order of enum io_op of targets/target.h, and what the program does not know. */
enum stats_op {
        STATS_READ,
        STATS_WRITE,
        STATS_FLUSH,
        STATS_DISCARD,
        STATS_WRITE_ZEROES,
        STATS_OTHER,
        _STATS_OP_MAX
};

/* What makes a disk fail requests until the administrator accepts what was lost: see region_faults.h. */
enum region_fault {
        REGION_FAULT_FLUSH, /* a flush failed: of what was written before, some may be lost */
        REGION_FAULT_CUT,   /* the backing store ends before the disk does */
        _REGION_FAULT_MAX
};

struct region_fault_state {
        uint64_t word;   /* 0: no fault; else its number << 32 | enum stats_op << 16 | errno */
        uint64_t at;     /* CLOCK_REALTIME, microseconds; 0: not known */
        uint64_t detail; /* of CUT: bytes that the backing store had */
        uint32_t count;  /* the number of the last one */
        /* Written by the supervisor: */
        uint32_t accepted; /* the administrator accepts faults up to that number */
        uint32_t reported; /* the number of the last one that there was an event of, which the database has */
        uint32_t unused;
};

enum region_on_full { REGION_ON_FULL_ERROR, REGION_ON_FULL_WAIT };

/* Writes for which the backing store has no room: see targets/worker/queue/room.h. */
struct region_space {
        uint64_t
                full_since; /* CLOCK_REALTIME, microseconds, of the first that found none; 0: there is room */
        uint64_t missed_at; /* CLOCK_MONOTONIC, microseconds, of the last */
        uint32_t waiting;   /* writes that wait for room, of all queues */
        uint32_t
                changes; /* how often full_since was set, and set back to 0, and a first write began to wait */
        /* Written by the supervisor: */
        uint64_t reported; /* the full_since that there was an event of, which the database has; 0: none, or
                                    also of its end */
        uint32_t on_full;  /* enum region_on_full */
        uint32_t reported_waits; /* 1: that event was that writes wait */
};

/* The errors that are counted apart, for a bounded number of labels; REGION_ERRNO_OTHER: all others. */
enum region_errno {
        REGION_ERRNO_EIO,
        REGION_ERRNO_ENOSPC,
        REGION_ERRNO_EROFS,
        REGION_ERRNO_EOPNOTSUPP,
        REGION_ERRNO_ENOMEM,
        REGION_ERRNO_ETIMEDOUT,
        REGION_ERRNO_EINVAL,
        REGION_ERRNO_OTHER,
        _REGION_ERRNO_MAX
};

/* The newest request of an operation that failed: see region_errors.h. */
struct region_error {
        uint64_t count;  /* of such requests, since the region began; 0: none */
        uint64_t at;     /* CLOCK_REALTIME, microseconds */
        uint64_t offset; /* bytes, on the disk */
        uint32_t length;
        uint32_t error;    /* errno */
        uint32_t sequence; /* odd while a queue writes this */
        uint32_t unused;
        /* Written by the supervisor: */
        uint64_t reported; /* the count that there was an event of, which the database has */
};

struct region_errors {
        struct region_error newest[_STATS_OP_MAX];
        uint64_t by_errno[_STATS_OP_MAX][_REGION_ERRNO_MAX];
        uint64_t announced_at; /* CLOCK_MONOTONIC, microseconds, of the last NEWS of them */
        uint32_t changes;      /* how often there was NEWS of them */
        uint32_t unused;
};

/* What the supervisor reports by events, each with a number in this order: errors by enum stats_op, faults by enum
 * region_fault, and the room. */
enum {
        REGION_REPORT_ERRORS = 0,
        REGION_REPORT_FAULTS = REGION_REPORT_ERRORS + _STATS_OP_MAX,
        REGION_REPORT_FULL = REGION_REPORT_FAULTS + _REGION_FAULT_MAX,
        _REGION_REPORT_MAX,
        REGION_REPORT_KEPT = _REGION_REPORT_MAX /* apart from the others: the loss of kept memory */
};

/* The last event of its kind: see region_reports.h. */
struct region_report {
        uint64_t revision; /* of the event; 0: none */
        uint64_t
                value; /* what was reported with it; of errors: their count, and from bit 56 on the kind of that
                              event, as device_errors.c has it; of kept memory: the seed of that in its place */
};

/* The request that the episode of region_space.full_since began with. Written by the worker. */
struct region_missed {
        uint64_t since; /* the full_since of that episode; written last */
        uint64_t offset;
        uint32_t length;
        uint32_t op;    /* enum stats_op */
        uint32_t error; /* errno: ENOSPC, EDQUOT */
        uint32_t unused;
};

enum { REGION_TARGET_OPTIONS = 1024, REGION_TARGET_COUNTS = 64 };

/* What a target follows while it serves, and counts: see region_target.h. */
struct region_target {
        /* Written by the supervisor; the sequence is odd meanwhile, and changes with the options. 0: none */
        uint32_t sequence;
        uint32_t size; /* bytes, of the options */
        unsigned char options[REGION_TARGET_OPTIONS];
        uint64_t counts[REGION_TARGET_COUNTS]; /* written by the worker; of the device's life */
};

enum { REGION_ACTION_RANGES = 16 };

enum region_action_state {
        REGION_ACTION_NONE,
        REGION_ACTION_RUNNING,
        REGION_ACTION_DONE,
        REGION_ACTION_FAILED,    /* `error` says why */
        REGION_ACTION_CANCELLED, /* `cancel` asked for that */
        REGION_ACTION_LEFT,      /* the driver has taken the queues away meanwhile */
        _REGION_ACTION_STATE_MAX
};

struct region_range {
        uint64_t offset, length; /* bytes, on the disk */
};

/* The last action that a worker took: see region_action.h. */
struct region_action {
        uint32_t sequence; /* odd while the worker writes this */
        uint32_t state;    /* enum region_action_state */
        uint64_t id;
        uint64_t worker;      /* that took it: `started_at` of its CONFIG */
        uint64_t done, total; /* bytes */
        uint64_t found, found_bytes;
        uint32_t error;       /* errno */
        uint32_t range_count; /* of those that were found, the first */
        struct region_range ranges[REGION_ACTION_RANGES];
        uint32_t ends;   /* how often one has ended */
        uint32_t number; /* of the target; 0: none, as where an older program writes this */
        /* Written by the supervisor: */
        uint64_t cancel; /* the id of the action that is to end */
};

/* `sequence` is odd while the supervisor writes the values, and changes with them. */
struct region_control {
        uint32_t sequence, unused;
        struct region_values values;
        /* The state of the limits (targets/worker/queue/token_bucket.h), which all queues share, each in
         * lines of its own. */
        struct {
                uint64_t paid_until, unused[15];
        } buckets[_REGION_DIRECTION_MAX][_REGION_BUCKET_MAX];
        /* Zeroes where an older program made the region: no fault, and none accepted. */
        struct region_fault_state faults[_REGION_FAULT_MAX];
        /* Zeroes as well: onFull is "error", and there is room. */
        struct region_space space;
        /* Zeroes as well: no request has failed. An older worker does not note its errors here. */
        struct region_errors errors;
        /* Zeroes as well: no event waits for the database. Written by the supervisor. */
        struct region_report reports[_REGION_REPORT_MAX];
        /* Zeroes as well: the request is not known. */
        struct region_missed missed;
        /* Zeroes as well: the worker keeps to the options that it was started with. */
        struct region_target target;
        /* Zeroes as well: REGION_REPORT_KEPT, no event waits for the database. Written by the supervisor. */
        struct region_report kept_report;
        /* Zeroes as well: there was no action. */
        struct region_action action;
};

/* Counts one operation's requests as they end; it ends when its answer goes to the kernel. Numbers only rise,
 * and the next worker counts on. A request that a dead worker had in hand, and that the kernel replays,
 * counts once; one whose answer it had not handed over yet counts again when it is replayed. */
struct op_stats {
        uint64_t begun;  /* requests that came; those that have not ended are in flight. Each worker sets it
                            back to what has ended */
        uint64_t bytes;  /* of requests that succeeded */
        uint64_t errors; /* requests that failed; they are in the histogram, too */
        uint64_t latency_sum;              /* nanoseconds */
        uint64_t latency[LATENCY_BUCKETS]; /* requests, by the time from their arrival in the worker to their
                                              answer: the sum of all buckets is the number of requests */
};

/* Written by the thread of the queue alone, with plain stores. */
struct queue_stats {
        uint64_t rounds; /* turns of the queue's loop */
        struct op_stats ops[_STATS_OP_MAX];
        uint64_t unregistered; /* zero copy: requests whose pages the driver should have registered and did
                                  not, so that the worker did. 0 where an older worker counts */
        uint64_t
                held; /* requests that wait for the limits of the device: of those in flight, the store does not
                          know these. 0 where an older worker counts */
        uint64_t
                nudges; /* io_loop_nudge(): how often requests of a kind were under way and none had ended for a
                            second. 0 where an older worker counts */
};

/* What a region must fit, to be used again. */
struct device_region_key {
        unsigned queues;
        uint16_t epoch;
};

/* Return the bytes from one queue's statistics to the next one's. */
size_t device_region_stats_stride(void);

/* Make an empty file a region, with all of its memory allocated: no later access can fail. Return 0 or -errno
 * (ENOSPC). */
int device_region_format(int fd, const struct device_region_key *key);

/* The same in two steps, for region_kept.c: allocate the memory, and `more` bytes behind it; write the header, last. */
int device_region_allocate(int fd, const struct device_region_key *key, uint64_t more);
int device_region_write_header(int fd, const struct device_region_key *key,
        const struct region_history *history, const struct region_kept *kept);

/* Read the header, of which history and kept have readers of their own. Return 0: a region of this version, whole;
 * -ENODATA: none (yet), or cut off; -EPROTO: of another version; other -errno. */
int device_region_read_header(int fd, struct device_region_header *ret);

/* Map the region for reading and writing, for the worker; fd may be closed after that. *ret_base: its first
 * byte, which is the header; it stays mapped to the end of the process. Return 0; -errno as
 * device_region_read_header(); -EINVAL: not made for `queues` queues. */
int device_region_map(int fd, unsigned queues, void **ret_base);

/* Return the statistics of a queue in the mapping at `base`; queue must be one of the region's. */
struct queue_stats *device_region_queue_stats(void *base, unsigned queue);

/* Return the control part of the mapping at `base`. */
struct region_control *device_region_control(const void *base);
/* Return a bucket of the mapping at `base`. */
uint64_t *device_region_bucket(void *base, enum region_direction direction, enum region_bucket bucket);

/* Write the values into the region that is open as fd, for the supervisor. Return 1; 0: they were so already;
 * -errno as device_region_read_header(). */
int device_region_set_values(int fd, const struct region_values *values);
/* Write a part of the region, for the files of proto/ that know what lies there. Return 0 or -errno. */
int device_region_write(int fd, uint64_t offset, const void *data, size_t size);
/* Read or write a part of struct region_control, from `offset` in it on. Return 0; -ENODATA: the file ends before; or
 * -errno as device_region_read_header(). */
int device_region_read_control(int fd, size_t offset, void *buffer, size_t size);
/* As device_region_read_control(); *ret_epoch: that of the region. */
int device_region_read_control_of(int fd, size_t offset, void *buffer, size_t size, uint32_t *ret_epoch);
int device_region_write_control(int fd, size_t offset, const void *data, size_t size);
/* Write the history, for the supervisor; device_region_get_history(): read it. Return 0 or -errno as
 * device_region_read_header(). */
int device_region_set_history(int fd, const struct region_history *history);
int device_region_get_history(int fd, struct region_history *ret);
/* Return the number of the values that are there now, for the worker. */
uint32_t device_region_sequence(const void *base);
/* Read the values, for the worker. Return false if they are just being written: try again. */
bool device_region_get_values(const void *base, uint32_t *ret_sequence, struct region_values *ret);

const char *stats_op_to_string(enum stats_op op);            /* "read", "write_zeroes" */
const char *region_errno_to_string(enum region_errno error); /* "EIO", "other" */
