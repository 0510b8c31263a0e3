/* SPDX-License-Identifier: MIT */
/* Opening the backing store of a loop target: the very one that the disk was made on, or nothing. */
#pragma once

#include "targets/loop/loop_options.h"
#include "targets/target.h"

#include <sys/stat.h>

/* Open the store that device->store.given refers to. Without such a descriptor, or if the device behind it is
 * gone (for a new disk: or its file system is dead), open what the path of the options leads to, if that is
 * the expected store. The path is followed once, and nothing is written before the store is known. *ret: a
 * descriptor for I/O, which the caller closes; *ret_stat: of what it is open on. Fill the results of
 * device->store; the caller also closes `kept`. May block. Return 0; -errno with a problem; -ENOMEM. */
int loop_store_open(struct target_device *device, const struct loop_options *options, int *ret,
        struct stat *ret_stat, struct problem_list *problems);

/* Add the problem that using the store failed with `error` (positive). Return -error or -ENOMEM. */
int loop_store_fault(const struct target_device *device, const struct loop_options *options, int error,
        struct problem_list *problems);
