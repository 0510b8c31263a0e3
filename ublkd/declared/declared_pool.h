/* SPDX-License-Identifier: MIT */
/* PURE: the path of an image, for the spec of a file that names a pool. */
#pragma once

#include "ublkd/pools/pool_spec.h"

/* Copy `spec` with the path of its image, if it names a pool: see pool_spec_resolve(). A spec that cannot get a path is
 * copied without it, and *ret_why is the cause, one sentence, which the caller frees; else NULL. Return 0 or -ENOMEM. */
int declared_pool_resolve(const struct policy *policy, const struct device_record *record,
        const struct device_spec *spec, struct device_spec **ret, char **ret_why);
