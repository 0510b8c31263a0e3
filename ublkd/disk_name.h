/* Whether a name is that of a disk or of one of its partitions. */
#pragma once

#include <stdbool.h>

/* disk: "ublkb0". True for "ublkb0" and "ublkb0p1", not for "ublkb01". */
bool disk_name_matches(const char *disk, const char *name);
/* The same for the last part of an absolute path, also of a node that was removed while it was open
 * ("/dev/ublkb0 (deleted)"). */
bool disk_name_in_path(const char *disk, const char *path);
