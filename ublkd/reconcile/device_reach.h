/* SPDX-License-Identifier: MIT */
/* Whether the store of a disk can still be reached without the disk. */
#pragma once

#include "ublkd/model/backing_reach.h"

struct device_spec;
struct reconciler;

/* Return whether the store of the device's disk can be reached without the disk, as it is at this moment. next: a later spec,
 * of which only the paths that it leaves as they are count; NULL: all count. */
enum backing_reach reconciler_reach(
        struct reconciler *reconciler, const char *name, const struct device_spec *next);
