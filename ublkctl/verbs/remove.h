/* SPDX-License-Identifier: MIT */
/* Removing devices. */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Asks for the removal of each device, then (unless --no-wait) waits until they are gone, and prints "NAME
 * removed". Goes on after a failure; says what is wrong. */
enum exit_status remove_devices(struct context *context, size_t count, const char *const *names);

/* One removal: what is asked for, and what came of it. */
struct removal {
        const char *name;
        const char *etag;        /* only that device in that generation; NULL: whatever has the name */
        bool force;              /* also while the disk is in use */
        enum exit_status status; /* of asking for it */
        bool missing;            /* there was nothing to remove */
        bool in_use;             /* refused because of that */
        cJSON *foreseen;         /* of a dry run: what would happen, as the API answers; NULL: refused */
};

struct removal_mode {
        bool dry_run;
        bool drop_last_copy;        /* see the option */
        bool quiet_missing;         /* a device that is not there is STATUS_OK */
        const char *force_sentence; /* told once after disks in use; or NULL */
};

/* Asks for all of them at once, because the daemon then looks only once for those who use the disks. Says
 * what is wrong; the result is in each removal. STATUS_FAILED: out of memory, and nothing was asked for. */
enum exit_status request_removals(
        struct context *context, size_t count, struct removal *removals, const struct removal_mode *mode);

/* What a removal of the device would take away from whom, in *ret (the caller deletes it), as
 * DELETE ?dryRun=true&force=true&drop-last-copy=true answers. False, without a word: it could not be asked.
 */
bool removal_foresee(struct context *context, const char *name, cJSON **ret);
/* Whether only the disk that it is about has its data. */
bool removal_loses_data(const cJSON *foreseen);
/* Who uses the disk that it is about, or why that is not known; NULL: nobody does. */
const char *removal_users(const cJSON *foreseen);
