/* SPDX-License-Identifier: MIT */
/* A target for tests that has what targets with state have: over a file, it writes on a coroutine of the background, with threads
 * for what blocks, and locks between its requests. Its options are those of loop. */
#pragma once

#include "targets/target.h"

/* Each write stands in a line, and is answered when the background has written it. */
extern struct target lined_target;
/* The same, but a write is answered as soon as it stands in the line: what the worker had not written dies with it. */
extern struct target hasty_target;

/* Set both up. */
void lined_targets_make(void);
/* Return the one with that name, or NULL. */
const struct target *lined_target_find(const char *name);
