/* SPDX-License-Identifier: MIT */
/* One disk as the driver has it, and what commands and workers come to. Pure: who asks, when, and with how much
 * luck is the matter of the test. Workers are numbers. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"

enum {
        NO_PROCESS = -1,
        KERNEL_BLOCKS = 1, /* a command that is not done yet */
};

/* Bits of <linux/ublk_cmd.h>; see model/kernel_feature.c. */
enum {
        FEATURE_RECOVERY = 1 << 3,
        FEATURE_REISSUE = 1 << 4,
        FEATURE_IOCTL_ENCODE = 1 << 6,
        FEATURE_FAIL_IO = 1 << 9,
        FEATURE_GROW = 1 << 10,
        FEATURE_QUIESCE = 1 << 12,
        FEATURE_TRY_STOP = 1 << 17,
        FEATURE_DESC_SIZE = 1 << 20, /* with it QUIESCE_DEV is safe: kernel_quiesces() */
};

struct kernel_disk {
        bool exists;
        bool unnoticed; /* live, and the driver never notices that no worker has its queues */
        uint64_t cookie, flags;
        uint16_t queues, queue_depth;
        uint32_t max_io_size;
        enum kernel_state state;
        uint64_t size; /* bytes */
        bool has_params, was_started;
        bool deleted;                  /* DEL_DEV came, an opener holds the disk */
        bool begun;                    /* START_USER_RECOVERY came */
        bool spoilt;                   /* a worker died while it fetched: no worker can fetch any more */
        bool fetched_any, fetched_all; /* by its holder */
        int holder;                    /* the worker whose /dev/ublkcN is open, dead or alive */
        int openers;                   /* of /dev/ublkbN */
        pid_t server_pid;              /* of the process that serves it */
        /* of the simulation, which alone looks at them */
        bool foreign;
        uint64_t free_at;       /* it no longer exists, and its number is not free before */
        unsigned instance;      /* each ADD_DEV makes another */
        unsigned size_given_up; /* the largest that the user took back; the kernel may be about to give it */
        unsigned refusals;      /* workers for which START_USER_RECOVERY was refused since it was last live */
        int refused_for;        /* the last of them */
        int exclusive;          /* how many openers keep others from opening it exclusively */
        uint64_t cancels_until; /* a kernel without QUIESCE cancels commands; no recovery may begin before */
        int store, consented;   /* what it is on, and what the user has accepted instead; or NO_STORE */
};

/* ---- commands: 0, -errno, or KERNEL_BLOCKS ---- */

int kernel_disk_add(struct kernel_disk *disk, const struct kernel_device_request *request, uint64_t features);
/* Return what GET_DEV_INFO says of a disk that exists. */
struct kernel_device kernel_disk_info(int number, const struct kernel_disk *disk);
int kernel_disk_set_params(struct kernel_disk *disk, uint64_t size);
int kernel_disk_update_size(struct kernel_disk *disk, uint64_t size);
/* Whether START_DEV or END_USER_RECOVERY for that worker lets the disk go live, which is another function. */
int kernel_disk_check_start(const struct kernel_disk *disk, int worker);
int kernel_disk_check_end_recovery(const struct kernel_disk *disk, int worker);
void kernel_disk_go_live(struct kernel_disk *disk);
/* What the control helper finds before a guarded command: 0, -ESTALE: a disk with another cookie; or -ENODEV. */
int kernel_disk_recognise(const struct kernel_disk *disk, uint64_t cookie);
/* refuses_second: EINVAL without a FETCH since the last one. */
int kernel_disk_begin_recovery(struct kernel_disk *disk, bool refuses_second);
/* Take the queues away from the worker. */
void kernel_disk_stop(struct kernel_disk *disk);
/* Whether QUIESCE_DEV is known; the worker of a live disk exits. */
int kernel_disk_check_quiesce(const struct kernel_disk *disk);
/* Return whether a deleted disk has no user any more. */
bool kernel_disk_is_over(const struct kernel_disk *disk);

/* ---- workers: 0 or -errno ---- */

/* Whether a worker could open /dev/ublkcN. */
int kernel_disk_check_attach(const struct kernel_disk *disk);
void kernel_disk_attach(struct kernel_disk *disk, int worker);
int kernel_disk_fetch(struct kernel_disk *disk, int worker, bool all);
/* The driver notices that the worker is dead. */
void kernel_disk_lose_worker(struct kernel_disk *disk, bool refuses_second);
/* The last reference of the worker is gone. */
void kernel_disk_release(struct kernel_disk *disk);
