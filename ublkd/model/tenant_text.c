/* SPDX-License-Identifier: MIT */
/* What a tenant reads in place of a message that may name what belongs to others. */
#include "ublkd/model/tenant_text.h"

#include "ublkd/base/cleanup.h"

#include <stddef.h>

#define ASK " If that is nothing of yours, ask an administrator."

/* A reason without a row: its messages quote those of other reasons, or are about the host. A tenant reads its meaning. */
/* clang-format off */
static const struct {
        bool own;         /* its messages name only the device, its worker, its store and the driver */
        const char *text; /* a sentence in place of them; NULL: the meaning of the reason */
} rows[_REASON_MAX] = {
        [REASON_HOST_NOT_READY] = {.text = "ublkd cannot serve devices on this machine now; it tries again every few "
                                           "seconds. Ask an administrator."},
        [REASON_IN_USE] = {.text = "The disk is in use: it is open or mounted. Close or unmount it, and ublkd goes on." ASK},
        [REASON_STILL_HELD] = {.text = "Deletion of the disk is pending; the kernel waits for its last users, or for "
                                       "requests in flight in the backing store." ASK},
        [REASON_BACKING_IN_USE] = {.text = "The backing store is in use by another device or program; two that write to "
                                           "one store would destroy its data. Use another store." ASK},
        [REASON_BACKING_READ] = {.text = "Another program reads the backing store while the disk writes to it." ASK},
        [REASON_BACKING_SHARE_UNKNOWN] = {.text = "ublkd does not know whether another program writes to the backing "
                                                  "store; make sure that none of yours does."},
        [REASON_BACKING_STACK_UNREADABLE] = {.text = "What the backing store lies on cannot be found out; use another "
                                                     "store, or ask an administrator."},
        [REASON_PATH_LEADS_ELSEWHERE] = {.text = "The path of the spec leads to another store than the one of the disk. Let "
                                                 "it lead to the old one again before the next reboot."},
        [REASON_PENDING] = {.own = true},
        [REASON_STARTING] = {.own = true},
        [REASON_LIVE] = {.own = true},
        [REASON_GROWING] = {.own = true},
        [REASON_RECOVERED] = {.own = true},
        [REASON_RUNTIME_DIRECTORY] = {.own = true},
        [REASON_WORKER_DIED] = {.own = true},
        [REASON_WORKER_OUT_OF_MEMORY] = {.own = true},
        [REASON_WORKER_BROKE_PROTOCOL] = {.own = true},
        [REASON_WORKER_HANGS] = {.own = true},
        [REASON_WORKER_HUNG] = {.own = true},
        [REASON_WORKER_STARVED] = {.own = true},
        [REASON_WORKER_KILLED] = {.own = true},
        [REASON_WORKER_RETIRED] = {.own = true},
        [REASON_OTHER_VERSION] = {.own = true},
        [REASON_WORKER_UPGRADE] = {.own = true},
        [REASON_WORKER_NOT_STARTED] = {.own = true},
        [REASON_NO_WORKER_UID] = {.own = true},
        [REASON_WORKER_UNREACHABLE] = {.own = true},
        [REASON_OUT_OF_RESOURCES] = {.own = true},
        [REASON_RESOURCES_IN_FORCE] = {.own = true},
        [REASON_RESOURCES_NOT_IN_FORCE] = {.own = true},
        [REASON_RESOURCES_PENDING] = {.own = true},
        [REASON_CPUS_INVALID] = {.own = true},
        [REASON_CPUS_UNAVAILABLE] = {.own = true},
        [REASON_MALFORMED_SPEC] = {.own = true},
        [REASON_UNKNOWN_TARGET] = {.own = true},
        [REASON_TARGET_NOT_OPENED] = {.own = true},
        [REASON_DATA_PATH_UNSUPPORTED] = {.own = true},
        [REASON_DEVICE_NOT_OPENED] = {.own = true},
        [REASON_NO_DEVICE_FOLDER] = {.own = true},
        [REASON_SANDBOX_INCOMPLETE] = {.own = true},
        [REASON_QUEUE_FAILED] = {.own = true},
        [REASON_REGION_UNUSABLE] = {.own = true},
        [REASON_CONTROL_PLANE] = {.own = true},
        [REASON_CONTROL_PLANE_HANGS] = {.own = true},
        [REASON_REQUESTS_UNDER_WAY] = {.own = true},
        [REASON_NUMBER_TAKEN] = {.own = true},
        [REASON_NUMBER_UNSURE] = {.own = true},
        [REASON_NOT_SUPPORTED] = {.own = true},
        [REASON_TEST_TARGET_NOT_ALLOWED] = {.own = true},
        [REASON_QUEUES_ANYWHERE] = {.own = true},
        [REASON_QUEUES_LOST] = {.own = true},
        [REASON_TIMEOUT_NOT_SET] = {.own = true},
        [REASON_NODE_NOT_SET] = {.own = true},
        [REASON_PRIVATE_NODE_NOT_MADE] = {.own = true},
        [REASON_PRIVATE_NODE_NOT_REMOVED] = {.own = true},
        [REASON_CDI_SPEC_NOT_WRITTEN] = {.own = true},
        [REASON_CDI_SPEC_NOT_REMOVED] = {.own = true},
        [REASON_UDEV_LATE] = {.own = true},
        [REASON_LINK_NOT_REMOVED] = {.own = true},
        [REASON_PARTITIONS_UNKNOWN] = {.own = true},
        [REASON_PARTITION_INVALID] = {.own = true},
        [REASON_PARTITION_IN_USE] = {.own = true},
        [REASON_LIMITS_NOT_SET] = {.own = true},
        [REASON_LIMITS_NOT_LIFTED] = {.own = true},
        [REASON_ON_FULL_NOT_SET] = {.own = true},
        [REASON_BACKING_FILE_MISSING] = {.own = true},
        [REASON_BACKING_FILE_NOT_PERMITTED] = {.own = true},
        [REASON_BACKING_FILE_READ_ONLY] = {.own = true},
        [REASON_BACKING_FILE_BUSY] = {.own = true},
        [REASON_BACKING_FILE_EMPTY] = {.own = true},
        [REASON_BACKING_FILE_UNSUITABLE] = {.own = true},
        [REASON_BACKING_FILE_UNUSABLE] = {.own = true},
        [REASON_BACKING_UNREADABLE] = {.own = true},
        [REASON_BACKING_TOO_SMALL] = {.own = true},
        [REASON_BACKING_BLOCK_SIZE_UNSUPPORTED] = {.own = true},
        [REASON_POOL_UNAVAILABLE] = {.own = true},
        [REASON_POOL_FULL] = {.own = true},
        [REASON_IMAGE_CREATED] = {.own = true},
        [REASON_FILE_SYSTEM_BEGUN] = {.own = true},
        [REASON_FILE_SYSTEM_MADE] = {.own = true},
        [REASON_IMAGE_KEPT] = {.own = true},
        [REASON_IMAGE_DELETED] = {.own = true},
        [REASON_IMAGE_NOT_DELETED] = {.own = true},
        [REASON_BACKING_CHANGED] = {.own = true},
        [REASON_BACKING_TRUNCATED] = {.own = true},
        [REASON_FLUSH_FAILED] = {.own = true},
        [REASON_KEPT_MEMORY_LOST] = {.own = true},
        [REASON_ACTION_STARTED] = {.own = true},
        [REASON_ACTION_SUCCEEDED] = {.own = true},
        [REASON_ACTION_FAILED] = {.own = true},
        [REASON_ACTION_CANCELLED] = {.own = true},
        [REASON_ACTION_INTERRUPTED] = {.own = true},
        [REASON_ACTION_NOT_TAKEN] = {.own = true},
        [REASON_ACTION_UNSUPPORTED] = {.own = true},
        [REASON_BACKING_SLOW] = {.own = true},
        [REASON_PROGRESS_RESUMED] = {.own = true},
        [REASON_STORE_FULL] = {.own = true},
        [REASON_STORE_HAS_ROOM] = {.own = true},
        [REASON_STORE_LOW] = {.own = true},
        [REASON_STORE_NOT_LOW] = {.own = true},
        [REASON_READ_FAILED] = {.own = true},
        [REASON_WRITE_FAILED] = {.own = true},
        [REASON_DISCARD_FAILED] = {.own = true},
        [REASON_REQUEST_FAILED] = {.own = true},
        [REASON_DIRECT_IO_UNAVAILABLE] = {.own = true},
        [REASON_OFFSET_BEYOND_END] = {.own = true},
        [REASON_OFFSET_NOT_A_MULTIPLE] = {.own = true},
        [REASON_SIZE_MISSING] = {.own = true},
        [REASON_SIZE_NOT_A_MULTIPLE] = {.own = true},
        [REASON_TOO_LARGE] = {.own = true},
        [REASON_BLOCK_SIZE_TOO_SMALL] = {.own = true},
        [REASON_BLOCK_SIZE_UNSUPPORTED] = {.own = true},
        [REASON_CREATED] = {.own = true},
        [REASON_SPEC_CHANGED] = {.own = true},
        [REASON_DELETE_REQUESTED] = {.own = true},
        [REASON_BOOT_OVER] = {.own = true},
        [REASON_REMOVED] = {.own = true},
        [REASON_RECOVER_REQUESTED] = {.own = true},
        [REASON_RESTART_REQUESTED] = {.own = true},
        [REASON_STOP_REQUESTED] = {.own = true},
        [REASON_START_REQUESTED] = {.own = true},
        [REASON_WRITE_ERRORS_ACCEPTED] = {.own = true},
        [REASON_BACKING_ACCEPTED] = {.own = true},
        [REASON_PATH_LEADS_TO_STORE] = {.own = true},
        [REASON_PATH_GONE] = {.own = true},
        [REASON_PATH_UNKNOWN] = {.own = true},
        [REASON_UNSTABLE_PATH] = {.own = true},
};
/* clang-format on */

bool tenant_text_is_full(enum condition_reason reason)
{
        return reason == REASON_NONE || (reason < _REASON_MAX && rows[reason].own);
}

const char *tenant_text(enum reader reader, enum condition_reason reason, const char *message)
{
        if (reader == READER_OF_ALL || !message || tenant_text_is_full(reason))
                return message;
        return reason < _REASON_MAX && rows[reason].text ? rows[reason].text : reason_info(reason)->meaning;
}
