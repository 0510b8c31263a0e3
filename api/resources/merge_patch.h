/* SPDX-License-Identifier: MIT */
/* JSON merge patch (RFC 7396). Pure. */
#pragma once

#include "ublkd/base/problem.h"

#include <cjson/cJSON.h>

/* What `patch` makes of `target` (NULL: there is nothing yet), as a new document; neither of them changes.
 * Returns 0; -EINVAL with problems: a name stands twice in one object of the patch, at any depth and in
 * arrays too, so that what is meant cannot be known; -ENOMEM. In `target` no name stands twice. The names of
 * one object are compared with each other, so bound their number before (json_check()). */
int merge_patch(const cJSON *target, const cJSON *patch, cJSON **ret, struct problem_list *problems);
