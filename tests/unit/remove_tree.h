/* SPDX-License-Identifier: MIT */
/* Removal of the temporary directory of a test. */
#pragma once

#include <ftw.h>
#include <stdio.h>

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
        (void)info;
        (void)kind;
        (void)place;
        return remove(path);
}

/* Remove a directory and all that is in it; links are removed and not followed. Return 0, or -1 and errno. */
static inline int remove_tree(const char *path)
{
        return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
