/* SPDX-License-Identifier: MIT */
/* A mount that comes or goes shows other files in a directory, and all devices would go with the old ones. */
#pragma once

#include "ublkd/declared/device_files.h"

/* Zero-initialise. */
struct dir_mounts {
        uint64_t devices[DEVICE_DIRS_MAX]; /* the file system that each directory was on first; 0: unseen */
};

/* Doubt each directory of `files` that is on another file system than when it was seen first. Return 0 or -ENOMEM. */
int dir_mounts_doubt(struct dir_mounts *mounts, struct device_files *files);
