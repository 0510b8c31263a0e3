/* SPDX-License-Identifier: MIT */
/* Which errors of a flush may mean that data is lost. */
#pragma once

#include "targets/target.h"

/* Return whether an operation that ended so may have lost what was acknowledged before: it was to make data durable, was tried,
 * and was given up. op: IO_FLUSH, or a write with IO_FUA of a target that flushes it itself; all others lose nothing. result: 0
 * or more, or -errno. Pure. */
bool result_is_lossy(enum io_op op, unsigned flags, int result);
