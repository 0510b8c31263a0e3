/* SPDX-License-Identifier: MIT */
/* Files and block devices, as the command line names them. The path keeps its links, because after the next
 * boot a link may lead elsewhere. Two paths are compared by where they lead. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <sys/stat.h>

struct place {
        const char *word; /* as given; the caller owns it */
        char *path;       /* absolute, with its links */
        bool exists;
        int error;        /* why stat() failed, positive; 0 if it exists */
        struct stat stat; /* of the target of the path, if it exists */
};

/* Look where `word` leads to, from the working directory. Return 0, also if it does not exist; -errno. The
 * caller clears `ret` in any case. */
int place_look(const char *word, struct place *ret);
void place_clear(struct place *place);

/* Return whether `path` (absolute) leads to the same file or block device: by another link, another name of
 * the file or another node of the device. A place that does not exist equals its own path only. */
bool place_is(const struct place *place, const char *path);

/* Return whether the backing store of `device` (in the form of the API) is that place. The path that another user has given
 * to a device of its own is never, and is not looked at. */
bool place_backs(const struct place *place, const cJSON *device);
