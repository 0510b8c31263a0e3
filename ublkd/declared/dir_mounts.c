/* SPDX-License-Identifier: MIT */
/* Directories whose file system is another one than before. */
#include "ublkd/declared/dir_mounts.h"

int dir_mounts_doubt(struct dir_mounts *mounts, struct device_files *files)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < files->dir_count && i < DEVICE_DIRS_MAX; i++) {
                if (files->dirs[i].state != DIR_READ || files->dirs[i].device == mounts->devices[i])
                        continue;
                if (mounts->devices[i] == 0)
                        mounts->devices[i] = files->dirs[i].device;
                else
                        r = device_files_doubt(files, i,
                                "it is on another file system than before, so a mount came or went; mount it "
                                "again, or "
                                "restart ublkd if that is right");
        }
        return r;
}
