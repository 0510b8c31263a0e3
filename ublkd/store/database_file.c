/* SPDX-License-Identifier: MIT */
/* Which file a database is. */
#include "ublkd/store/database_file.h"

#include <errno.h>
#include <sys/stat.h>

int database_file_read(const char *path, struct database_file *ret)
{
        struct stat info;

        if (stat(path, &info) < 0)
                return -errno;
        *ret = (struct database_file){.path = path, .device = info.st_dev, .inode = info.st_ino};
        return 0;
}

/* SQLITE_FCNTL_HAS_MOVED takes every error for a file that was moved: a server with a bad moment would be a database
 * that was deleted. */
int database_file_check(const struct database_file *file)
{
        struct database_file now;
        int r = database_file_read(file->path, &now);

        if (r == -ENOENT || r == -ENOTDIR)
                return -ENOLINK;
        if (r < 0)
                return -EIO;
        return now.device == file->device && now.inode == file->inode ? 0 : -ENOLINK;
}
