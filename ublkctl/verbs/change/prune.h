/* SPDX-License-Identifier: MIT */
/* apply --prune: remove devices that are in no file. */
#pragma once

#include "ublkctl/client/call.h"

/* Remove the devices with the labels of -l for which `is_described` returns false; with --dry-run print what
 * would be removed and its users. A disk in use is removed only if --prune-in-use names its device. On
 * failure print the cause. */
enum exit_status prune(struct context *context, bool (*is_described)(const void *userdata, const char *name),
        const void *userdata);
