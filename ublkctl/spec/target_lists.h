/* SPDX-License-Identifier: MIT */
/* The "children" of a target in FIELD=VALUE arguments. assignments_add() writes target.children.1.path=/x as an object with the
 * member "1"; a spec has a list there, and a merge patch can only replace a whole list. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Replace each such object in `target` by a list: that of `stored`, the same target as the device has it (NULL: none), with the
 * members merged into its items. *ret_lists: how many there were; each is right for nothing but what `stored` was. Return
 * STATUS_USAGE with a complaint if a number is not that of an item or of the next one. */
enum exit_status target_lists_settle(cJSON *target, const cJSON *stored, unsigned *ret_lists);
