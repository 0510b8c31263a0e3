/* SPDX-License-Identifier: MIT */
/* A device spec: what a client wants of a device, parsed and checked. No I/O. */
#pragma once

#include "targets/target_tree_kept.h"
#include "ublkd/kernel/data_path.h"
#include "ublkd/values/cpu_list.h"

#include <cjson/cJSON.h>

/* The order of each enum is that of the schema (schemas/device.schema.json); a test compares them. */
enum on_crash {
        ON_CRASH_DEFAULT, /* not given: reissue where the target allows a replay, else queue */
        ON_CRASH_REISSUE,
        ON_CRASH_QUEUE,
        ON_CRASH_FAIL,
        ON_CRASH_NONE,
        _ON_CRASH_MAX
};
enum isolation { ISOLATION_UBLKD, ISOLATION_KERNEL, _ISOLATION_MAX };
enum on_full { ON_FULL_ERROR, ON_FULL_WAIT, _ON_FULL_MAX };
enum recovery_trigger { TRIGGER_AUTO, TRIGGER_MANUAL, _TRIGGER_MAX };

enum { DEVICE_NAME_MAX = 63, QUEUES_AUTO_MAX = 4, QUEUES_MAX = 64, DEVICE_NUMBER_MAX = (1 << 20) - 1 };

/* Requests and bytes per second, and the burst that may pass at once after a pause. 0: no limit; a burst of 0
 * is the amount of 0.1 s. */
struct io_limits {
        int64_t iops, iops_burst;
        uint64_t bytes_per_sec, bytes_per_sec_burst;
};

/* Of the worker on the backing disk, per second. 0: no limit. */
struct io_max {
        int64_t iops;
        uint64_t bytes_per_sec;
};

/* Filled from the generated table device_spec_table by dispatch(); field names are the schema's in snake
 * case. */
struct device_options {
        char *name;
        cJSON *target;
        uint64_t size;        /* bytes; 0: what the target reports */
        int64_t block_size;   /* bytes; 0: what the target prefers */
        int64_t queues;       /* or OPTION_AUTO */
        int64_t queue_depth;  /* per queue */
        uint64_t max_io_size; /* bytes */
        bool read_only;
        int data_path; /* enum data_path */
        int isolation; /* enum isolation */
        struct {
                int on_crash;           /* enum on_crash */
                int trigger;            /* enum recovery_trigger */
                uint64_t give_up_after; /* microseconds; 0: never */
                uint64_t hang_after;    /* microseconds; 0: never */
        } recovery;
        int64_t id; /* kernel number, or -1 */
        struct {
                int64_t uid, gid;
                char *mode; /* octal, "0660" */
        } owner;
        char *cpus; /* "0-3,8", or NULL */
        struct {
                struct io_limits read, write;
        } limits;
        struct {
                int64_t cpu_weight;  /* 0: none */
                uint64_t memory_max; /* bytes; 0: none */
                struct {
                        struct io_max read, write;
                } io_max;
                int64_t pids_max; /* 0: none */
        } resources;
        int64_t busy_poll_us;
        int on_full; /* enum on_full */
        bool partitions;
        bool private_node; /* false: its tenant gets a mounted file system only */
        bool temporary;
        cJSON *labels; /* or NULL */
        bool enabled;
};

extern const struct option_table device_spec_table;

struct device_spec {
        cJSON *document; /* as the user wrote it, with its name; what the API gives back */
        struct device_options options;
        struct target_tree *tree;         /* of targets; NULL only while there are problems */
        const struct target_desc *target; /* the outermost one */
};

/* Parse and check `document` (not taken over). name: the name in the path of the request (PUT /devices/NAME),
 * or NULL; a name in the document must equal it, and a missing one is filled in. Report all problems at once.
 * Return 0 and a new spec; -EINVAL with problems; -ENOMEM. */
int device_spec_parse(
        const cJSON *document, const char *name, struct device_spec **ret, struct problem_list *problems);

/* Free a spec. NULL is fine. Return NULL. */
struct device_spec *device_spec_free(struct device_spec *spec);
DEFINE_CLEANUP(struct device_spec, device_spec_free);
#define _cleanup_device_spec_ _cleanup_(device_spec_free_pointer)

/* Return whether two specs mean the same: "10GiB" equals 10737418240, a default equals a missing field. */
bool device_spec_equal(const struct device_spec *one, const struct device_spec *other);

/* The disk that a change of the spec would apply to. */
struct disk_now {
        int number;    /* of the device; -1: none yet */
        uint64_t size; /* bytes; 0: no disk, or unknown */
        bool can_grow; /* the kernel can change the size of a disk */
};

/* Why a change needs a new disk. */
struct disk_change {
        const char *field; /* the first field that needs it, as in the JSON ("target", "recovery.onCrash") */
        const char *why;   /* a phrase; NULL: the kernel takes the field only when a disk is created */
};

/* Return whether both specs name the same target with the same options, but for those that a disk can follow. */
bool device_spec_targets_equal(const struct device_spec *one, const struct device_spec *other);
/* Return whether the change from `from` to `to` needs a new disk. Every field does but labels, owner (not in the
 * driver's unprivileged mode), enabled,
 * limits, live options of the target, resources, busyPollUs, onFull, partitions, temporary, recovery.trigger,
 * recovery.giveUpAfter, recovery.hangAfter, a
 * size that the disk can grow to, and an id that is the number of the disk. ret may be NULL; it is set only if the change
 * needs a new disk. */
bool device_spec_needs_new_disk(const struct device_spec *from, const struct device_spec *to,
        const struct disk_now *now, struct disk_change *ret);

/* Return what the targets of the spec promise together (enum target_flag). */
unsigned device_spec_flags(const struct device_spec *spec);
/* Return how many bytes the targets keep for the disk and its queues over the death of a worker, in the runtime directory. "auto"
 * queues count as many as they can become on a larger machine. */
uint64_t device_spec_kept_bytes(const struct device_spec *spec);
/* Return `recovery.onCrash`, with the default of the target instead of ON_CRASH_DEFAULT. */
enum on_crash device_spec_on_crash(const struct device_spec *spec);

/* Return whether `owner` lets users write to the disk: another user than root, a group that may write and is neither root nor
 * `disk`, or all. */
bool device_spec_lets_users_write(const struct device_spec *spec);
/* Return whether the tenant of the device cannot write to its disk past the file system on it: it has no node, and ublkd has made the
 * backing store. */
bool device_spec_is_volume(const struct device_spec *spec);

/* Return whether the name has 1 to DEVICE_NAME_MAX characters, all allowed by the schema. */
bool device_name_is_valid(const char *name);
