/* SPDX-License-Identifier: MIT */
/* The number of a disk, from its name or that of one of its partitions. */
#pragma once

/* Return the number: 0 for "ublkb0" and "ublkb0p1"; -1 for what is not such a name, as "ublkb01". */
int disk_name_number(const char *name);
/* Return the number in the last part of an absolute path, also of a node that was removed while it was open
 * ("/dev/ublkb0 (deleted)"); -1: it is not such a name. */
int disk_name_number_in_path(const char *path);
