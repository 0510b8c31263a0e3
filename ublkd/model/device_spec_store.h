/* SPDX-License-Identifier: MIT */
/* The backing stores of a device spec. No I/O. */
#pragma once

#include "ublkd/model/device_spec.h"

/* Return the path of the backing store as the spec has it, of several the first one; NULL: it has none. */
const char *device_spec_path(const struct device_spec *spec);
/* Write the pointer of that path into the spec: "/target/child/path"; "/target/path" where there is no store. */
void device_spec_path_pointer(const struct device_spec *spec, char ret[static TARGET_POINTER_SIZE + 8]);
/* Return how many backing stores the spec has, in the order of its tree. */
unsigned device_spec_stores(const struct device_spec *spec);
/* Return the path of one of them as the spec has it; NULL: it has none (a pool is given). */
const char *device_spec_store_path(const struct device_spec *spec, unsigned number);
/* Return where in that store the part of the disk begins, in bytes. */
uint64_t device_spec_store_begin(const struct device_spec *spec, unsigned number);
/* Write the pointer of its target into the spec: "/target/children/1". */
void device_spec_store_pointer(
        const struct device_spec *spec, unsigned number, char ret[static TARGET_POINTER_SIZE]);
/* Return whether one of them has this path. */
bool device_spec_names_store(const struct device_spec *spec, const char *path);
/* Return whether the stores have a list: see target_tree_has_list(). */
bool device_spec_has_list(const struct device_spec *spec);
/* Replace *spec, which has no list of stores, by the same with this path of its backing store. Return 0;
 * -EINVAL with problems; -ENOMEM: *spec is unchanged. */
int device_spec_set_path(struct device_spec **spec, const char *path, struct problem_list *problems);
