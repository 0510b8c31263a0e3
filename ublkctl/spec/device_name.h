/* SPDX-License-Identifier: MIT */
/* Derive names of devices from names of files. Pure. */
#pragma once

#include <stdbool.h>

enum { DEVICE_NAME_SIZE = 64 };

/* Derive a name from a path: its last part without extension, with invalid characters replaced; "disk" if
 * nothing is left. For a ublk disk (/dev/ublkb0): "on-ublkb0". */
void device_name(const char *path, char ret[static DEVICE_NAME_SIZE]);

/* Change `name` to the first of `name`, `name`-2, `name`-3, … for which `is_taken` returns false. */
void device_name_make_unique(char name[static DEVICE_NAME_SIZE],
        bool (*is_taken)(void *userdata, const char *name), void *userdata);
