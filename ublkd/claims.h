/* PURE: whether two devices would write to one backing store and destroy each other's data. */
#pragma once

#include "ublkd/proto/worker_msg.h"

#include <stddef.h>

/* The first of `others` (count entries; NULL entries are skipped) that `claim` collides with: same key,
 * overlapping ranges, and at least one of the two writes. Its index, or -1: none. */
int claims_collide(
        const struct backing_claim *claim, const struct backing_claim *const *others, size_t count);
