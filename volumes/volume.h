/* SPDX-License-Identifier: MIT */
/* The device of a volume. PURE.
 *
 * The device has the name of the volume, if that can be one; else a name with a hash of it. Its label "volume" has the name
 * of the volume, and makes it one: a device without it is not a volume, whatever its name is. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#define VOLUME_LABEL "volume"
#define VOLUME_TYPE_LABEL "volume-type"
#define VOLUME_OPTIONS_LABEL "volume-options" /* a hash of the options that it was created with */

enum { VOLUME_NAME_MAX = 255, VOLUME_DEVICE_SIZE = 64, VOLUME_FAULT_SIZE = 256 };

/* Write the name of the device. Return 0; -EINVAL: the volume has no name, or one that is too long. */
int volume_device(const char *volume, char ret[static VOLUME_DEVICE_SIZE]);

/* Make the spec of a volume from the options of its creator (an object of texts; NULL: none): `size`, `pool` or `path`, `fs`,
 * and members of the spec, such as `target.keep`. pool: the pool without that option; NULL: none. Return the spec, which the
 * caller frees; NULL: `fault` has a sentence. */
cJSON *volume_spec(
        const char *volume, const cJSON *options, const char *pool, char fault[static VOLUME_FAULT_SIZE]);

/* Return whether the device was created with the options of this spec; it may have been changed since. */
bool volume_is_of_spec(const cJSON *device, const cJSON *spec);
/* Return the name of the volume that the device is; NULL: it is none. The device owns it. */
const char *volume_of_device(const cJSON *device);
/* Return the type of the file system of the volume. */
const char *volume_type(const cJSON *device);
