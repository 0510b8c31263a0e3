/* SPDX-License-Identifier: MIT */
/* Between the supervisor and its control helper: the same program on both ends, so plain structs, one in each
 * message of a SOCK_SEQPACKET socket. Requests are answered in any order. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/kernel/ublk_uapi.h"

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

/* How far the helper has got, for the sentence about a failure. */
enum ctl_step { CTL_STEP_OPEN, CTL_STEP_RING, CTL_STEP_FEATURES, CTL_STEP_READY, _CTL_STEP_MAX };

struct ctl_reply {
        uint64_t sequence; /* of the request; 0: the greeting, once, before all others */
        int32_t result;    /* 0 or -errno; of the greeting: why `step` failed */
        uint32_t step;     /* enum ctl_step, in the greeting */
        union ctl_payload payload;
};
