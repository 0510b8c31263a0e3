/* SPDX-License-Identifier: MIT */
/* The options of attach, as a spec, and compared with a disk that exists. */
#pragma once

#include "ublkctl/client/settings.h"

#include <cjson/cJSON.h>

struct attach_options {
        const struct settings *settings;
        uint64_t offset, size; /* bytes; size 0: not given */
};

/* Check the options of the command line. On a fault print a sentence. Return STATUS_OK or STATUS_USAGE. */
enum exit_status attach_options_read(const struct settings *settings, struct attach_options *ret);

/* Return the spec of the device, which the caller deletes; NULL on ENOMEM. */
cJSON *attach_options_spec(const struct attach_options *options, const char *name, const char *path);

/* Return whether `device` is the same part of its file, for reading or for writing, as the options ask for. */
bool attach_options_match(const struct attach_options *options, const cJSON *device);

/* Return the first option that was given and that `device`, which matches, does not have ("size"); NULL: none. */
const char *attach_options_difference(const struct attach_options *options, const cJSON *device);
