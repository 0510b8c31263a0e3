/* SPDX-License-Identifier: MIT */
/* The action "scrub": reads every block of the disk. */
#pragma once

#include "targets/target_action.h"

/* Scrub the disk, from its beginning to its end: the act callback of target.h. Suspends. Return 0, also if ranges could
 * not be read, which it reports; -ECANCELED; or another -errno: the store cannot be read at all, or ENOMEM. */
int loop_scrub(struct target_action *action);
