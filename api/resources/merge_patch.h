/* SPDX-License-Identifier: MIT */
/* JSON merge patch (RFC 7396). Pure. */
#pragma once

#include "ublkd/base/problem.h"

#include <cjson/cJSON.h>

/* Apply `patch` to `target` (NULL: none yet). Return 0 and a new document, which the caller frees; both
 * arguments stay unchanged. -EINVAL with problems: an object of the patch has a name twice, at any depth and
 * in arrays too, so its meaning is ambiguous; -ENOMEM. `target` must not have a name twice. All names of one
 * object are compared with each other, so limit their number first (json_check()). */
int merge_patch(const cJSON *target, const cJSON *patch, cJSON **ret, struct problem_list *problems);
