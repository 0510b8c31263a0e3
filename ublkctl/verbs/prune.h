/* SPDX-License-Identifier: MIT */
/* apply --prune: what no file names is removed. */
#pragma once

#include "ublkctl/client/call.h"

/* Removes the devices with the labels of -l that `is_described` does not know, or with --dry-run says what
 * would be removed and who uses it. A disk in use is removed only if --prune-in-use names its device. Says
 * what is wrong. */
enum exit_status prune(struct context *context, bool (*is_described)(const void *userdata, const char *name),
        const void *userdata);
