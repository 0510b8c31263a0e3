/* SPDX-License-Identifier: MIT */
/* The action "scrub": reads every block of the disk. */
#pragma once

#include "targets/target_action.h"

enum {
        LOOP_SCRUB_FAILED_MAX = 1 << 30
}; /* bytes in a row that cannot be read: then the store itself fails */

/* Scrub the disk, from its beginning to its end: the act callback of target.h. Suspends. Return 0, also if ranges could
 * not be read, which it reports; -ECANCELED; or another -errno: the store cannot be read. */
int loop_scrub(struct target_action *action);
