/* SPDX-License-Identifier: MIT */
/* The calls of the protocol of volume plug-ins: each asks ublkd for what it needs, and waits. Every call may be repeated, and
 * ends like the first: ublkd, this program or the engine may have died before the answer. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

struct plugin {
        const char *socket; /* of ublkd */
        const char *pool;   /* of volumes without the option; NULL: none */
};

/* Return whether the protocol has this call ("/VolumeDriver.Create"). */
bool plugin_has_call(const char *path);
/* Carry out a call. request: its body; NULL: none. Return the answer, which the caller frees; NULL on ENOMEM. *ret_failed:
 * it has an error in "Err". */
cJSON *plugin_call(const struct plugin *plugin, const char *path, const cJSON *request, bool *ret_failed);
/* End the calls that are under way, with an error that says to repeat them: an engine does not wait for the end of the program.
 * A Mount takes its ID back first. */
void plugin_end_calls(void);
