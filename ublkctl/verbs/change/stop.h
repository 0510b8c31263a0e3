/* SPDX-License-Identifier: MIT */
/* stop and start: take a disk down until the next boot, and create it again. */
#pragma once

#include "ublkctl/client/context.h"

/* Create the disk of a stopped device, wait until it is Live if the options say so, and print that. On failure print the
 * cause. */
enum exit_status start_device(struct context *context, const char *name);
