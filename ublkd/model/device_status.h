/* SPDX-License-Identifier: MIT */
/* The status of a device, as clients read it: phase, conditions, worker, backing store. No I/O. */
#pragma once

#include "ublkd/backing/backing.h"
#include "ublkd/base/problem.h"
#include "ublkd/model/device_condition.h"
#include "ublkd/model/io_errors.h"
#include "ublkd/model/write_errors.h"
#include "targets/target_tree.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum device_phase {
        PHASE_PENDING,
        PHASE_STARTING,
        PHASE_LIVE,
        PHASE_RECOVERING,
        PHASE_BACKOFF,
        PHASE_QUIESCED,
        PHASE_STOPPING,
        PHASE_DISABLED,
        PHASE_FAILED,
        PHASE_UNKNOWN, /* since its start ublkd could not find out whether there is a disk */
        _PHASE_MAX
};

/* One of the backing stores of a disk with a list of them. */
struct store_status {
        char pointer[TARGET_POINTER_SIZE];       /* of its target in the spec: "/target/children/1" */
        struct backing_identity identity, found; /* as in struct device_status */
        bool kept;
};

/* The struct owns what its pointers lead to, but for static strings. Times are CLOCK_REALTIME microseconds; 0:
 * none. */
struct device_status {
        enum device_phase phase;
        uint64_t observed_generation;
        uint32_t observed_restart;   /* not shown: see device_record.restart */
        uint64_t observed_asked;     /* not shown: see device_record.asked */
        struct device_faults faults; /* shown as a token; the conditions describe them */
        struct io_errors errors;     /* the newest of each operation */
        bool converged;              /* not shown: the disk is live, and no change is in progress */
        int number;                  /* N of /dev/ublkbN, -1 while there is none */
        bool disk;                   /* /dev/ublkbN exists */
        char node[80];               /* path of the private node; "": none */
        uint64_t size;               /* of the disk, bytes; 0: no disk, or unknown */
        uint64_t kept_bytes;         /* of memory that outlives the workers, for the target; 0: none */
        struct {
                pid_t pid; /* 0: no worker */
                uint64_t restarts;
                uint64_t started_at;
                char version[64]; /* of the program; cut if longer */
        } worker;
        const char *data_path;        /* static string, NULL while unknown */
        const char *data_path_reason; /* static: a sentence; NULL with data_path */
        bool batch;                   /* fetches and commits in batches; meaningful with data_path */
        struct {
                bool known;
                struct backing_identity identity, found; /* of the store that the disk is on, and of the
                                                            store found instead; empty: none */
                bool kept;                               /* ublkd holds a descriptor of the store */
        } backing; /* of a disk with a list: what holds for all of them, without identities */
        struct store_status *stores; /* of a disk with a list, in the order of the tree */
        unsigned store_count;
        uint64_t kernel_flags; /* as negotiated, bit N: kernel_feature_name(N) */
        struct {
                uint64_t count;
                double last_ms; /* from the death of the worker until Live */
        } recoveries;
        enum condition_reason reason; /* of the Ready condition */
        enum condition_reason quoted; /* of the failure that message and cause quote; REASON_NONE: none */
        char *message;                /* a sentence: what happened, what ublkd does next, and when */
        char *cause;                  /* why the last try failed, a sentence; NULL: none failed */
        unsigned attempts;            /* failed in a row */
        uint64_t next_try_at;         /* 0: no time is set for the next try */
        uint64_t transition_at;       /* of the Ready condition */
        struct device_conditions conditions; /* beside Ready */
};

const char *device_phase_to_string(enum device_phase phase);

/* Replace reason and message. Return 0 or -ENOMEM (unchanged). */
int device_status_explain(struct device_status *status, enum condition_reason reason, const char *format, ...)
        _printf_(3, 4);

/* Replace the cause. Return 0 or -ENOMEM (unchanged). */
int device_status_set_cause(struct device_status *status, const char *format, ...) _printf_(2, 3);

/* Return the name of the reason, or of the phase if there is no reason. Valid for the life of the process. */
const char *device_status_reason(const struct device_status *status);

/* Return what the reader may read of the message of the Ready condition; NULL: there is none. Valid as long as the status. */
const char *device_status_message(const struct device_status *status, enum reader reader);

/* Return whether the worker runs another version of its program than ublkd starts now. */
bool device_status_needs_restart(const struct device_status *status);

/* Copy deeply into `ret` (overwritten, not freed first). Return 0 or -ENOMEM. */
int device_status_copy(const struct device_status *from, struct device_status *ret);
bool device_status_equal(const struct device_status *one, const struct device_status *other);
void device_status_clear(struct device_status *status);

/* Return the "status" object of the API, or NULL on ENOMEM. The caller frees it. name: by which the disk has a link; NULL: it
 * has none. reader: gets the messages.
 */
cJSON *device_status_to_json(const struct device_status *status, const char *name, enum reader reader);
