/* SPDX-License-Identifier: MIT */
/* Files that only root may write to. */
#include "ublkd/base/trusted_file.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

const char *file_distrust(const struct stat *info)
{
        if (info->st_uid != 0 && info->st_uid != geteuid())
                return "it belongs to another user than root; 'chown root' it";
        if (info->st_mode & (S_IWGRP | S_IWOTH))
                return "its group or others may write to it; 'chmod go-w' it";
        return NULL;
}

static const char *distrust_file(const struct stat *info)
{
        return S_ISREG(info->st_mode) ? file_distrust(info) : "it is not a regular file; remove it";
}

int open_trusted(int dir, const char *name, const char **ret_why)
{
        _cleanup_close_ int fd = -1;
        struct stat info;

        if (fstatat(dir, name, &info, 0) < 0)
                return -errno;
        *ret_why = distrust_file(&info);
        if (*ret_why)
                return -EPERM;
        fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &info) < 0)
                return -errno;
        *ret_why = distrust_file(&info);
        return *ret_why ? -EPERM : TAKE_FD(fd);
}
