/* SPDX-License-Identifier: MIT */
/* A name of a block device that stays the same over boots, and after it was pulled and plugged in again. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* Return whether `path`, which leads to a block device, may lead to another one after the next boot: it is a
 * name that the kernel gives out in the order in which it finds disks, a link to one from outside of /dev, or
 * a node made by hand. May block as long as the directories of the path do. */
bool stable_name_is_wanted(const char *path);

/* Find the best name below `dev` ("/dev") of the device that `stat` is of: one that stands for the disk
 * itself comes before one that is written on it. A name of what is on the disk (by-uuid, by-label), or of the
 * place where it is plugged in (by-path), does not count. *ret: to be freed; NULL: no such name. Return 0 or
 * -ENOMEM. */
int stable_name_find(const char *dev, const struct stat *stat, char **ret);
