/* SPDX-License-Identifier: MIT */
/* The reasons of conditions and events, as values.
 *
 * To add one: a value of the enum and its row in reason_table.c; then generate docs/reasons.md with
 * `cmake --build build --target update_reasons`.
 *
 * A worker or a database of another version may contain a reason that this ublkd does not know. Such a name
 * gets a number from _REASON_MAX upwards: the API shows the name unchanged, and the reason has no properties. Numbers
 * are kept for good, so those for names of workers are limited.
 */
#pragma once

#include <stdbool.h>

enum condition_reason {
        REASON_NONE,
        /* Steps towards the spec. */
        REASON_PENDING,
        REASON_NOT_YET_KNOWN,
        REASON_HOST_NOT_READY,
        REASON_STARTING,
        REASON_LIVE,
        REASON_GROWING,
        REASON_CANNOT_GROW,
        REASON_RESTARTING,
        REASON_CANNOT_RESTART,
        REASON_RECOVERING,
        REASON_RECOVERED,
        REASON_WAITS_FOR_RECOVER,
        REASON_GAVE_UP,
        REASON_DELETING,
        REASON_DISABLING,
        REASON_DISABLED,
        REASON_STOPPED,
        REASON_REPLACING,
        /* Records. */
        REASON_QUARANTINED,
        REASON_RECORD_REMOVED,
        REASON_RECORD_OUTDATED,
        REASON_RECORD_NOT_KEPT,
        REASON_NOT_STORED,
        REASON_STORE_FAILED,
        REASON_RUNTIME_DIRECTORY,
        REASON_RUNTIME_DIRECTORY_GONE,
        /* The worker. */
        REASON_WORKER_DIED,
        REASON_WORKER_OUT_OF_MEMORY,
        REASON_WORKER_BROKE_PROTOCOL,
        REASON_WORKER_HANGS,
        REASON_WORKER_HUNG,
        REASON_WORKER_STARVED,
        REASON_WORKER_KILLED,
        REASON_WORKER_RETIRED,
        REASON_OTHER_VERSION,
        REASON_WORKER_UPGRADE,
        REASON_UPGRADE_STOPPED,
        REASON_UPGRADE_PASSED_OVER,
        REASON_WORKER_NOT_STARTED,
        REASON_NO_WORKER_UID,
        REASON_WORKER_UNREACHABLE,
        REASON_OUT_OF_RESOURCES,
        REASON_RESOURCES_IN_FORCE,
        REASON_RESOURCES_NOT_IN_FORCE,
        REASON_RESOURCES_PENDING,
        REASON_CPUS_INVALID,
        REASON_CPUS_UNAVAILABLE,
        REASON_MALFORMED_SPEC,
        REASON_UNKNOWN_TARGET,
        REASON_TARGET_NOT_OPENED,
        REASON_DATA_PATH_UNSUPPORTED,
        REASON_DEVICE_NOT_OPENED,
        REASON_NO_DEVICE_FOLDER,
        REASON_NOT_STARTED_BY_UBLKD,
        REASON_SANDBOX_INCOMPLETE,
        REASON_QUEUE_FAILED,
        REASON_REGION_UNUSABLE,
        /* The kernel. */
        REASON_CONTROL_PLANE,
        REASON_CONTROL_PLANE_HANGS,
        REASON_REQUESTS_UNDER_WAY,
        REASON_NUMBER_TAKEN,
        REASON_NUMBER_UNSURE,
        REASON_NOT_SUPPORTED,
        REASON_TEST_TARGET_NOT_ALLOWED,
        REASON_IN_USE,
        REASON_STILL_HELD,
        REASON_DISK_OF_NO_DEVICE,
        REASON_QUEUES_ANYWHERE,
        REASON_QUEUES_LOST,
        REASON_TIMEOUT_NOT_SET,
        REASON_NODE_NOT_SET,
        REASON_PRIVATE_NODE_NOT_MADE,
        REASON_PRIVATE_NODE_NOT_REMOVED,
        REASON_CDI_SPEC_NOT_WRITTEN,
        REASON_CDI_SPEC_NOT_REMOVED,
        REASON_UDEV_LATE,
        REASON_LINK_NOT_REMOVED,
        REASON_PARTITIONS_UNKNOWN,
        REASON_PARTITION_INVALID,
        REASON_PARTITION_IN_USE,
        REASON_LIMITS_NOT_SET,
        REASON_LIMITS_NOT_LIFTED,
        REASON_ON_FULL_NOT_SET,
        /* The backing store. */
        REASON_BACKING_FILE_MISSING,
        REASON_BACKING_FILE_NOT_PERMITTED,
        REASON_BACKING_FILE_READ_ONLY,
        REASON_BACKING_FILE_BUSY,
        REASON_BACKING_FILE_EMPTY,
        REASON_BACKING_FILE_UNSUITABLE,
        REASON_BACKING_FILE_UNUSABLE,
        REASON_BACKING_UNREADABLE,
        REASON_BACKING_TOO_SMALL,
        REASON_BACKING_BLOCK_SIZE_UNSUPPORTED,
        REASON_BACKING_IN_USE,
        REASON_BACKING_SHARE_UNKNOWN,
        REASON_BACKING_STACK_UNREADABLE,
        REASON_POOL_UNAVAILABLE,
        REASON_POOL_FULL,
        REASON_IMAGE_CREATED,
        REASON_FILE_SYSTEM_BEGUN,
        REASON_FILE_SYSTEM_MADE,
        REASON_IMAGE_KEPT,
        REASON_IMAGE_DELETED,
        REASON_IMAGE_NOT_DELETED,
        REASON_BACKING_READ,
        REASON_BACKING_CHANGED,
        REASON_BACKING_TRUNCATED,
        REASON_FLUSH_FAILED,
        REASON_KEPT_MEMORY_LOST,
        REASON_BACKING_SLOW,
        REASON_PROGRESS_RESUMED,
        REASON_STORE_FULL,
        REASON_STORE_HAS_ROOM,
        REASON_STORE_LOW,
        REASON_STORE_NOT_LOW,
        REASON_READ_FAILED,
        REASON_WRITE_FAILED,
        REASON_DISCARD_FAILED,
        REASON_REQUEST_FAILED,
        REASON_DIRECT_IO_UNAVAILABLE,
        REASON_OFFSET_BEYOND_END,
        REASON_OFFSET_NOT_A_MULTIPLE,
        REASON_SIZE_MISSING,
        REASON_SIZE_NOT_A_MULTIPLE,
        REASON_TOO_LARGE,
        REASON_BLOCK_SIZE_TOO_SMALL,
        REASON_BLOCK_SIZE_UNSUPPORTED,
        REASON_PATH_LEADS_TO_STORE,
        REASON_PATH_LEADS_ELSEWHERE,
        REASON_PATH_GONE,
        REASON_PATH_UNKNOWN,
        REASON_UNSTABLE_PATH,
        REASON_SWAP_NEEDS_MEMORY,
        /* Requests of clients. */
        REASON_CREATED,
        REASON_SPEC_CHANGED,
        REASON_DELETE_REQUESTED,
        REASON_BOOT_OVER,
        REASON_REMOVED,
        REASON_RECOVER_REQUESTED,
        REASON_RESTART_REQUESTED,
        REASON_STOP_REQUESTED,
        REASON_START_REQUESTED,
        REASON_WRITE_ERRORS_ACCEPTED,
        REASON_BACKING_ACCEPTED,
        REASON_NUMBER_RELEASED,
        REASON_ACTION_STARTED,
        REASON_ACTION_SUCCEEDED,
        REASON_ACTION_FAILED,
        REASON_ACTION_CANCELLED,
        REASON_ACTION_INTERRUPTED,
        REASON_ACTION_NOT_TAKEN,
        REASON_ACTION_UNSUPPORTED,
        REASON_ADOPTED,
        /* Devices that files describe. */
        REASON_OWNED_BY_FILE,
        REASON_FILE_INVALID,
        REASON_FILE_REFUSED,
        REASON_FILE_GONE,
        /* An unknown name above REASONS_UNKNOWN_MAX. */
        REASON_OTHER,
        _REASON_MAX
};

enum {
        REASON_NAME_MAX = 64,       /* bytes, with the NUL; a longer one is REASON_OTHER */
        REASONS_UNKNOWN_MAX = 8192, /* unknown names that get a number of their own */
        REASONS_OF_A_DISK = 4,      /* of them, those that the workers of one disk have sent first */
        REASONS_OF_WORKERS = REASONS_UNKNOWN_MAX / 2, /* of all disks */
};

/* Whether a status with this reason is a Warning. */
enum reason_weight {
        REASON_AS_PHASE, /* as the phase says */
        REASON_ALARMING, /* whatever the phase */
        REASON_INTENDED, /* never: a client asked for it */
};

struct reason_info {
        const char *name; /* in the API: CamelCase */
        enum reason_weight weight;
        bool step;                    /* a step of a decision that was logged: not logged itself */
        bool transient;               /* does not come from the spec: the next try may succeed */
        bool obstacle;                /* keeps a disk, or the record of a removed device, from going */
        bool handover;                /* the worker exited because ublkd asked it to */
        bool of_host;                 /* of the machine: not an event of a device */
        const char *meaning, *advice; /* one sentence each; advice destroys nothing */
};

/* Return the row of a reason; for an unknown name the row of REASON_OTHER, with that name. Static. */
const struct reason_info *reason_info(enum condition_reason reason);
/* Return the name in the API; "" for REASON_NONE. Valid for the life of the process. */
const char *reason_to_string(enum condition_reason reason);
/* Return the reason of a name; REASON_NONE for "". An unknown name keeps its number for the life of the
 * process. */
enum condition_reason reason_from_string(const char *name);
/* The same for a name that a worker has sent, which may be under an attacker's control: a worker of a later version has a few
 * names that are unknown here. Beyond those an unknown name is REASON_OTHER. kept: how many names the workers of this disk
 * have added, 0 at first; NULL: add none. */
enum condition_reason reason_from_worker(const char *name, unsigned *kept);
