/* SPDX-License-Identifier: MIT */
/* Whether anything has a disk for itself. */
#include "ublkd/filesystems/filesystem_claim.h"
#include "ublkd/filesystems/filesystem_open.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* An open with O_EXCL says nothing of a disk before it is known which one it is. */
static enum filesystem_claim find_at(dev_t disk, const char *path)
{
        _cleanup_close_ int node = open(path, O_PATH | O_CLOEXEC), claim = -1;
        struct stat st;

        if (node < 0 || fstat(node, &st) < 0 || !S_ISBLK(st.st_mode) || st.st_rdev != disk)
                return FILESYSTEM_CLAIM_UNSEEN;
        claim = filesystem_open_in_time(
                node, O_RDONLY | O_EXCL | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, OPEN_MSEC);
        return claim >= 0        ? FILESYSTEM_CLAIM_FREE
               : claim == -EBUSY ? FILESYSTEM_CLAIM_TAKEN
                                 : FILESYSTEM_CLAIM_UNSEEN;
}

enum filesystem_claim filesystem_claim_find(dev_t disk, const char *node)
{
        enum filesystem_claim claim = FILESYSTEM_CLAIM_UNSEEN;
        char path[48];

        if (major(disk) == 0)
                return FILESYSTEM_CLAIM_FREE;
        if (*node)
                claim = find_at(disk, node);
        snprintf(path, sizeof(path), "/dev/block/%u:%u", major(disk), minor(disk));
        return claim == FILESYSTEM_CLAIM_UNSEEN ? find_at(disk, path) : claim;
}
