/* SPDX-License-Identifier: MIT */
/* Between the supervisor and its control helper: plain structs, one in each message of a SOCK_SEQPACKET socket. Requests are
 * answered in any order. After an upgrade or its reversal the next helper may be of another version than the supervisor, so
 * the structs keep their sizes, and padding means nothing. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/kernel/ublk_uapi.h"

#include <stdbool.h>
#include <stdint.h>

enum { CTL_DEV_PATH_SIZE = 32 };

/* What a command reads and writes in memory. */
union ctl_payload {
        struct ublksrv_ctrl_dev_info info;
        struct {
                char path[CTL_DEV_PATH_SIZE]; /* of the character device */
                struct ublksrv_ctrl_dev_info info;
        } info2;
        struct ublk_all_params params;
        uint64_t features;
        struct {
                uint64_t features;
                uint32_t guards;   /* CTL_GUARDS: it compares cookies. Older helpers leave 0 */
        } greeting;                /* of CTL_STEP_READY */
        uint64_t cookie;           /* of the disk for which a guarded command is */
        int32_t io_uring_disabled; /* in a greeting, CTL_STEP_RING: ctl_io_uring_disabled() */
        unsigned char queue_cpus[KERNEL_CPUS_SIZE];
        unsigned char behind_path[CTL_DEV_PATH_SIZE
                                  + sizeof(struct ublk_all_params)]; /* the largest, behind a path */
};
_Static_assert(sizeof(struct ublk_all_params) >= KERNEL_CPUS_SIZE, "a mask of CPUs fits behind a path");
_Static_assert(
        sizeof(struct ublk_all_params) >= sizeof(struct ublksrv_ctrl_dev_info), "so does what a device is");

struct ctl_request {
        uint64_t sequence; /* from 1 */
        uint32_t command;  /* UBLK_U_CMD_* */
        uint32_t number;
        uint64_t data;      /* data[0] of the command */
        uint32_t size;      /* bytes of the payload that the command may use; 0: none */
        uint16_t path_size; /* bytes at the start of the payload that are a path */
        uint16_t hold;      /* not 0: send it only while the helper has the disk open exclusively */
        uint16_t as_user;   /* not 0: send it with the rights of `uid` and `gid`, without a capability */
        uint32_t uid, gid;
        union ctl_payload payload;
};

enum { CTL_GUARDS = 0x67756172 };

/* Initialises a request that goes only to the disk with that cookie: of START_USER_RECOVERY and END_USER_RECOVERY, which have
 * no payload of their own. A helper that does not know of it sends the command all the same. */
#define CTL_GUARDED(disk, pid, disk_cookie)                                                                  \
        .number = (uint32_t)(disk), .data = (uint64_t)(pid), .size = sizeof(uint64_t),                       \
        .payload.cookie = (disk_cookie)

static inline bool ctl_request_is_guarded(const struct ctl_request *request)
{
        return (request->command == UBLK_U_CMD_START_USER_RECOVERY
                       || request->command == UBLK_U_CMD_END_USER_RECOVERY)
               && request->path_size == 0 && request->size == sizeof(request->payload.cookie);
}

/* How far the helper has got, for the sentence about a failure. */
enum ctl_step { CTL_STEP_OPEN, CTL_STEP_RING, CTL_STEP_FEATURES, CTL_STEP_READY, _CTL_STEP_MAX };

struct ctl_reply {
        uint64_t sequence; /* of the request; 0: the greeting, once, before all others */
        int32_t result;    /* 0 or -errno; of the greeting: why `step` failed */
        uint32_t step;     /* enum ctl_step, in the greeting */
        union ctl_payload payload;
};
