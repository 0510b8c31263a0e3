/* SPDX-License-Identifier: MIT */
/* A target for tests: a disk whose chunks have two slots in one file, and in another one a sector that points to the
 * slot in use, as formats with metadata do. A write goes to the slot that is not in use, then the pointer changes.
 *
 * {"type": "slots", "data": PATH, "map": PATH, "barrier": BOOL}; without the barrier the pointer can be on the disk
 * before the data. One request at a time: two writes of one chunk would use the same slot. */
#pragma once

#include "targets/target.h"

enum { SLOTS_CHUNK = 4096, SLOTS_CHUNKS_MAX = 64 };

extern const struct target slots_target;
