/* SPDX-License-Identifier: MIT */
/* Opening the backing store of a loop target: the very one that the disk was made on, or nothing. */
#pragma once

#include "targets/loop/loop_options.h"
#include "targets/target.h"

#include <sys/stat.h>

/* Opens the store that device->store.given refers to; without one, or where the device behind it is gone (for a
 * new disk: or its file system is dead), what the path of the options leads to, if that is the store that is
 * expected. Nothing is written before that is known, and the path is followed once. *ret: a descriptor for I/O,
 * the caller's; *ret_stat: of what it is open on. Fills the results of device->store; `kept` is then the
 * caller's as well. May block. 0; -errno with a problem; -ENOMEM. */
int loop_store_open(struct target_device *device, const struct loop_options *options, int *ret,
        struct stat *ret_stat, struct problem_list *problems);

/* Adds the problem that using the store failed with `error` (positive). Returns -error, or -ENOMEM. */
int loop_store_fault(const struct target_device *device, const struct loop_options *options, int error,
        struct problem_list *problems);
