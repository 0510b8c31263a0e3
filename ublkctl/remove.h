/* Removing devices. */
#pragma once

#include "ublkctl/call.h"

/* Asks for the removal of each device, then (unless --no-wait) waits until they are gone, and prints "NAME
 * removed". Goes on after a failure; says what is wrong. */
enum exit_status remove_devices(struct context *context, size_t count, const char *const *names);

/* Asks for the removal of one device, with --force if given. `quiet_missing`: one that is not there is
 * STATUS_OK, with *ret_missing (may be NULL). */
enum exit_status request_removal(
        struct context *context, const char *name, bool quiet_missing, bool *ret_missing);
