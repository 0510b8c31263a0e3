/* SPDX-License-Identifier: MIT */
/* The loop target: a regular file or a block device, or a part of one. */
#pragma once

#include "targets/target.h"

#include <stdatomic.h>

extern const struct target loop_target;

/* The backing store among the device's files: for I/O, and to be kept (struct target_store). That one is
 * never read or written; the rings hold it, so that its lock ends with the last request. */
enum { LOOP_FILE, LOOP_KEPT };

/* Constant after loop_open(), except `refused`. */
struct loop_device {
        uint64_t offset;     /* bytes, where in the backing store the disk begins */
        void *zeroes;        /* to write from; never touched, so it costs no memory */
        atomic_uint refused; /* enum zeroing bits that the backing store turned out not to have */
};

enum { LOOP_ZEROES_SIZE = 1 << 20 };

/* Open what the options name, and find out what it can do: the open callback of target.h. */
int loop_open(struct target_device *device, struct target_geometry *ret, struct problem_list *problems);
/* Measure the backing store: the measure callback of target.h. */
int loop_measure(struct target_device *device, uint64_t *ret);
