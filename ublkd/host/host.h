/* SPDX-License-Identifier: MIT */
/* What this machine can do: facts gathered at start, for GET /host and for checks of specs; and what is wrong
 * with it. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/host/adoptable.h"
#include "ublkd/host/foreign_disk.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct host {
        char *kernel;                 /* release, as uname(2) says */
        bool ublk_available;          /* the driver answered */
        uint64_t features;            /* GET_FEATURES, bit N: kernel_feature_name(N) */
        unsigned cpus;                /* online */
        gid_t disk_group;             /* that block devices belong to, where there is no other wish */
        struct problem_list problems; /* with its driver; reason = title */
        struct problem_list state;    /* with the state directory, the same */
        struct foreign_disks foreign; /* as of when they were looked for last */
        struct adoptables adoptable;  /* the same */
};

enum state_answer {
        STATE_NOT_SEEN, /* the look failed, so nothing is known */
        STATE_ANSWERS,
        STATE_HANGS, /* the file system did not answer in time */
};

/* What is left on the file system of the state directory. */
struct state_room {
        enum state_answer answer;
        bool limited; /* `bytes` is known; false: it does not say, and is never full */
        uint64_t bytes;
};

/* Fills in the kernel release, the CPUs and the group; the rest is the control plane's to say. To be called
 * before the loop, since it reads files. 0 or -errno. */
int host_read(struct host *host);
/* Asks the file system of `directory`. May block for ever: not on the loop. */
void host_read_room(const char *directory, struct state_room *ret);
/* Replaces `state`, as the file system of `directory` was seen. `error` (-errno, 0: none): of the last events
 * that were to be written there. 1: there is no room; 0; or -ENOMEM, and `state` is empty. */
int host_tell_state(struct host *host, const char *directory, const struct state_room *room, int error);
/* The group `name` of the first of these files (in the form of group(5), count entries) that has it; 0
 * (root): none has. */
gid_t host_find_group(const char *const *paths, size_t count, const char *name);
void host_clear(struct host *host);
