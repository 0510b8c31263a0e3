/* SPDX-License-Identifier: MIT */
/* Limits of the control group of one worker, and how the kernel writes them. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GROUP_LIMIT_TEXT_SIZE = 160 };

enum group_limit { GROUP_CPU_WEIGHT, GROUP_MEMORY_MAX, GROUP_IO_MAX, GROUP_PIDS_MAX, _GROUP_LIMIT_MAX };

/* 0: no limit. */
struct group_io_limits {
        uint64_t read_bytes, read_ios, write_bytes, write_ios; /* per second */
};

/* All 0: no limit. */
struct group_limits {
        uint64_t cpu_weight; /* 1 to 10000; 0: the kernel's default */
        uint64_t memory_max; /* bytes */
        uint64_t pids_max;   /* processes and threads */
        struct group_io_limits io;
        dev_t disk; /* that `io` is about, a whole disk; 0: there is none */
};

/* Return whether the limit is set. */
bool group_limit_is_set(const struct group_limits *limits, enum group_limit which);
/* Return whether any is set. */
bool group_limits_any(const struct group_limits *limits);
/* Return whether such a limit holds a worker from its first moment on: that on memory or on processes. A write of one on I/O
 * waits while the queue of that disk is frozen (blkg_conf_prep(), block/blk-cgroup.c), as during a reset of the disk. */
bool group_limit_is_bound(enum group_limit which);
/* Return whether one of those is set. */
bool group_limits_bound(const struct group_limits *limits);
bool group_limits_equal(const struct group_limits *one, const struct group_limits *other);
/* Return the file of the kernel: "memory.max". */
const char *group_limit_file(enum group_limit which);
/* Return the controller of the kernel: "memory". */
const char *group_limit_controller(enum group_limit which);
/* Return the field of the spec: "memoryMax". */
const char *group_limit_field(enum group_limit which);
/* Write what goes into the file, for a limit that is set or not. Return 0; -ENODEV: GROUP_IO_MAX without a disk. */
int group_limit_text(
        const struct group_limits *limits, enum group_limit which, char text[static GROUP_LIMIT_TEXT_SIZE]);
/* Write what goes into io.max so that the disk has no limit. */
void group_io_none_text(dev_t disk, char text[static GROUP_LIMIT_TEXT_SIZE]);
