/* SPDX-License-Identifier: MIT */
/* What the kernel serves from the bytes of a backing store, and takes no claim for: attached loop devices,
 * and exports of its NVMe and SCSI targets. */
#pragma once

#include "ublkd/backing/backing_claims.h"
#include "ublkd/base/problem.h"

/* Append a problem to `sharing`, as struct disk_params says, for each loop device or export that would write
 * to the same bytes, or read what is written; those that `claims` lie on do not count. claims: of an open
 * store, with `writes` and the ends set. path: the store's name in sentences. What is not found out in time
 * is reported as not known. Return 0 or -ENOMEM. Call only while this process has one thread. */
int backing_users_find(const struct backing_claims *claims, const char *path, struct problem_list *sharing);
