/* SPDX-License-Identifier: MIT */
/* The path of an image: chosen once, before the spec of a new device is stored, and kept from then on. PURE, but for the
 * random part of the name, which no other image has ever had: an image of this name belongs to this device. */
#pragma once

#include "ublkd/policy/policy.h"
#include "ublkd/store/device_store.h"

/* Put target.path into a spec with a pool, before it is stored: that of `record` (NULL: a new device), or a new one in
 * the directory of the pool in `policy` (NULL: it has none). A spec without a pool stays as it is. A device
 * that has its image in a pool which has left the configuration keeps its path.
 *
 * Return 0, and replace *spec if needed. Else *spec is unchanged, with one problem: -EINVAL: the client may not give
 * this path, or no such pool; -EEXIST: the record has another pool, none, or a larger size, and a device keeps that, or its
 * spec cannot be read; or -errno without a problem. */
int pool_spec_resolve(const struct policy *policy, const struct device_record *record,
        struct device_spec **spec, struct problem_list *problems);
