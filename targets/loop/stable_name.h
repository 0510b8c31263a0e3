/* SPDX-License-Identifier: MIT */
/* A name of a block device that stays the same over boots, and after it was pulled and plugged in again. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/* Whether `path`, which leads to a block device, may lead to another one after the next boot: it is a name
 * that the kernel gives out in the order in which it finds disks, a link to one from outside of /dev, or a
 * node made by hand. May block as long as the directories of the path do. */
bool stable_name_is_wanted(const char *path);

/* The best name below `dev` ("/dev") of the device that `stat` is of: one that stands for the disk itself
 * comes before one that is written on it. No name of what is on the disk (by-uuid, by-label) is one, nor of
 * the place where it is plugged in (by-path). *ret: to be freed; NULL: there is none. 0 or -ENOMEM. */
int stable_name_find(const char *dev, const struct stat *stat, char **ret);
