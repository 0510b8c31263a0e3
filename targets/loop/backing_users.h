/* SPDX-License-Identifier: MIT */
/* What the kernel serves from the bytes of a backing store, and takes no claim for: attached loop devices,
 * and exports of its NVMe and SCSI targets. */
#pragma once

#include "ublkd/base/backing_claims.h"
#include "ublkd/base/problem.h"

/* claims: of a store that is open, `writes` and the ends set; path: its name in sentences. Appends to
 * `sharing` what struct disk_params says, for each that would write to the same bytes, or read what is
 * written; those that `claims` lie on do not count. What is not found out in time is reported as not known.
 * 0 or -ENOMEM. Only while this process has one thread. */
int backing_users_find(const struct backing_claims *claims, const char *path, struct problem_list *sharing);
