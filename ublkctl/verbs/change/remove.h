/* SPDX-License-Identifier: MIT */
/* Remove devices. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Request the removal of each device, then (unless --no-wait) wait until they are gone, and print "NAME
 * removed". Continue after a failure. On failure print the cause. */
enum exit_status remove_devices(struct context *context, size_t count, const char *const *names);

/* One removal: the request, and its result. */
struct removal {
        const char *name;
        const char *etag;        /* only that device in that generation; NULL: any */
        bool force;              /* even if the disk is in use */
        enum exit_status status; /* of the request */
        bool missing;            /* the device did not exist */
        bool in_use;             /* refused because the disk is in use */
        cJSON *foreseen;         /* of a dry run: the API's answer; NULL: refused */
};

struct removal_mode {
        bool dry_run;
        bool drop_last_copy;        /* see the option */
        bool quiet_missing;         /* a device that does not exist is STATUS_OK */
        const char *force_sentence; /* printed once after disks in use; or NULL */
};

/* Send all requests at once, so that the daemon looks for the openers of all disks once. On failure print the
 * cause; each removal has its result. STATUS_FAILED: out of memory, and no request was sent. */
enum exit_status request_removals(
        struct context *context, size_t count, struct removal *removals, const struct removal_mode *mode);
