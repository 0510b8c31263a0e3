/* Removing devices. */
#pragma once

#include "ublkctl/call.h"

/* Asks for the removal of each device, then (unless --no-wait) waits until they are gone, and prints "NAME
 * removed". Goes on after a failure; says what is wrong. */
enum exit_status remove_devices(struct context *context, size_t count, const char *const *names);

struct removal {
        enum exit_status status; /* of asking for it */
        bool missing;            /* there was nothing to remove */
};

/* Asks for the removal of each device, with --force if given; of many at once, because the daemon then looks
 * only once for those who use the disks. `quiet_missing`: one that is not there is STATUS_OK. Says what is
 * wrong. NULL: out of memory; else to be freed. */
struct removal *request_removals(
        struct context *context, size_t count, const char *const *names, bool quiet_missing);
