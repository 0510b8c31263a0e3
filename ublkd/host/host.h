/* SPDX-License-Identifier: MIT */
/* What this machine can do, and its problems: facts gathered at start, for GET /host and for checks of specs. */
#pragma once

#include "ublkd/kernel/kernel_walls.h"
#include "ublkd/base/problem.h"
#include "ublkd/host/adoptable.h"
#include "ublkd/host/foreign_disk.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum database_file {
        DATABASE_FILE_MAIN,
        DATABASE_FILE_WAL, /* its log */
        _DATABASE_FILE_MAX
};

/* The size of a file. known: false: it does not exist, or the look failed. */
struct file_size {
        bool known;
        uint64_t bytes;
};

struct host {
        char *kernel;                                  /* release, as uname(2) returns it */
        bool ublk_available;                           /* the driver answered */
        uint64_t features;                             /* GET_FEATURES, bit N: kernel_feature_name(N) */
        unsigned cpus;                                 /* online */
        struct kernel_walls walls;                     /* for workers */
        gid_t disk_group;                              /* of block devices, unless the spec names another */
        struct problem_list problems;                  /* of its driver; reason = title */
        struct problem_list state;                     /* of the state directory, the same */
        struct problem_list settings;                  /* of the configuration, the same */
        struct problem_list workers;                   /* of the upgrade of workers, the same */
        struct problem_list files;                     /* of the files that describe devices, the same */
        struct file_size database[_DATABASE_FILE_MAX]; /* at the last look at the state directory */
        struct foreign_disks foreign;                  /* at the last scan */
        struct adoptables adoptable;                   /* the same */
};

enum state_answer {
        STATE_NOT_SEEN, /* the look failed, so nothing is known */
        STATE_ANSWERS,
        STATE_HANGS, /* the file system did not answer in time */
};

/* The free space of the file system of the state directory. */
struct state_room {
        enum state_answer answer;
        bool limited; /* `bytes` is known; false: the file system reports no blocks, and is never full */
        uint64_t bytes;
};

/* Fill in the kernel release, the CPUs and the group; the control plane fills in the rest. Reads files: call it
 * before the loop runs. Return 0 or -errno. */
int host_read(struct host *host);
/* Ask the file system of `directory`. May block for ever: do not call it on the loop. */
void host_read_room(const char *directory, struct state_room *ret);
/* Return the name of the file in the state directory. */
const char *host_database_file(enum database_file which);
/* Ask for the sizes of the database in `directory`. May block for ever, like host_read_room(). */
void host_read_sizes(const char *directory, struct file_size ret[_DATABASE_FILE_MAX]);
/* Replace `state` by the problems of the file system of `directory`. room: from host_read_room(). error: -errno of
 * the last write of events, or 0. Return 1: there is little room; 0; or -ENOMEM: `state` is empty. */
int host_report_state(struct host *host, const char *directory, const struct state_room *room, int error);
/* Return the group `name` from the first of `count` files in the form of group(5) that has it; 0 (root) if none
 * has. */
gid_t host_find_group(const char *const *paths, size_t count, const char *name);
/* Return the group `name` of this machine, 0 if there is none. Asks no name service, so it finds local groups only.
 * Reads files: call it before the loop runs. */
gid_t host_group(const char *name);
/* Return the name of the group `gid` from the first of these files that has it, which the caller frees; NULL if none
 * has, or on ENOMEM. */
char *host_find_group_name(const char *const *paths, size_t count, gid_t gid);
/* Return the name of the group of this machine as host_group() looks for it, and as host_find_group_name() does. */
char *host_group_name(gid_t gid);
void host_clear(struct host *host);
