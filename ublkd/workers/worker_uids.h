/* SPDX-License-Identifier: MIT */
/* Which ranges of uids the workers of this boot have. A worker keeps its uid when ublkd starts again with another range: the
 * disk N of one range and the disk M of another one could have the same uid, and so reach each other's workers. */
#pragma once

#include "ublkd/runtime/runtime_dir.h"
#include "ublkd/workers/worker_start.h"

/* Note the range of `confinement` in workers/uids. Return 0; 1: workers that may live have uids of it for other disks, so the
 * range from before stays in force, and is in `confinement` now; -errno: it could not be read or noted, and is in force. */
int worker_uids_choose(struct runtime_dir *dir, struct worker_confinement *confinement);
