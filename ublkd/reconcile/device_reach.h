/* SPDX-License-Identifier: MIT */
/* Whether the store of a disk can still be reached without the disk. */
#pragma once

#include "ublkd/model/backing_reach.h"

struct reconciler;

/* Return whether the store of the device's disk can be reached without the disk, as it is at this moment. */
enum backing_reach reconciler_reach(struct reconciler *reconciler, const char *name);
