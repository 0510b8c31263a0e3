/* SPDX-License-Identifier: MIT */
/* Names of devices made from names of files. Pure. */
#pragma once

#include <stdbool.h>

enum { DISK_NAME_SIZE = 64 };

/* The name of a device for the file: the last part of its path without its extension, with what a name may
 * not hold replaced; "disk" when nothing is left. On a disk of ours (/dev/ublkb0): "on-ublkb0". */
void disk_name(const char *path, char ret[static DISK_NAME_SIZE]);

/* The first of `name`, `name`-2, `name`-3, … that is not taken; in place. */
void disk_name_make_unique(
        char name[static DISK_NAME_SIZE], bool (*is_taken)(void *userdata, const char *name), void *userdata);
