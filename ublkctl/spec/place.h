/* SPDX-License-Identifier: MIT */
/* A file or block device as the command line names it. The name is kept: what a link leads to today is not
 * what it leads to after the next boot. Two names are compared by what they lead to. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct place {
        const char *word; /* as it was given, not owned */
        char *path;       /* absolute, with its links */
        bool exists;
        int error;        /* why it cannot be looked at, positive; 0 where it exists */
        struct stat stat; /* of what it leads to, where it exists */
};

/* Looks where `word` leads to, from the working directory. 0 (also for what does not exist) or -errno. `ret`
 * is to be cleared. */
int place_look(const char *word, struct place *ret);
void place_clear(struct place *place);

/* Whether `path` (absolute) is that file or that block device: by another link, another name of the file or
 * another node of the device. What does not exist is the same as its own path alone. */
bool place_is(const struct place *place, const char *path);
