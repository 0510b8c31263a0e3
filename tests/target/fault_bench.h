/* SPDX-License-Identifier: MIT */
/* For tests of the fault target: one over a file of a pattern, with a region as ublkd makes it. */
#pragma once

#include "targets/fault/fault.h"
#include "targets/fault/fault_counts.h"
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"

enum { FILE_SIZE = 64 * 1024, LENGTH = 16 * 1024 };

struct fault_bench {
        struct scratch scratch;
        char path[300], spec[1600];
        int region;
        bool exists;     /* for the next open: the kernel has the disk */
        unsigned depth;  /* of the queue; 0: HOST_DEPTH */
        uint64_t before; /* bytes of the file that lie before the disk */
        struct target_host host;
};

/* Make the file and the region, and serve. more: fields of the target, each with a comma behind it. rules: in the list. */
void fault_bench_set_up_with(struct fault_bench *bench, const char *more, const char *rules);
/* The same below a linear target, so that the disk does not begin with the file. */
void fault_bench_set_up_below(struct fault_bench *bench, const char *more, const char *rules);
void fault_bench_set_up(struct fault_bench *bench, const char *rules);
void fault_bench_tear_down(struct fault_bench *bench);
/* Serve again, as the worker after one that has closed. Return 0 or -errno. */
int fault_bench_open(struct fault_bench *bench);
/* Make a file the region of a new disk. */
void fault_bench_format(int fd);
/* Return where the last of the first LENGTH bytes of the file ends that is not as the pattern has it; 0: none. */
unsigned fault_bench_changed_bytes(const struct fault_bench *bench);
/* Return what the target has counted. */
struct fault_counts fault_bench_counts(const struct fault_bench *bench);
