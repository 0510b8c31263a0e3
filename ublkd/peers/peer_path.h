/* SPDX-License-Identifier: MIT */
/* The path on this host of a file that a process in a container names, as an event.
 *
 * It is found from the lists of mounts alone: nothing of the container is opened or looked up, so no file system of it has
 * to answer. A file system of the host can be asked for its options when its mount is listed, so a short-lived process
 * reads the lists, one after the other. What is found is a name, and no more: the file need not exist, and whether the
 * client may open it is for the opener to check. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct peer_paths;
struct peer_path_look;

/* Prepare looks. Return 0 or -errno. */
int peer_paths_new(sd_event *event, struct peer_paths **ret);
/* Drop all looks, whose `done` is not called, and free the rest. NULL is fine. Return NULL. */
struct peer_paths *peer_paths_free(struct peer_paths *paths);

struct peer_path_wish {
        const char *path; /* absolute, without "." and ".." */
        bool writes;      /* the file is to be written to */
        uint32_t account; /* who asks: only a few looks of one account wait at once */
};

/* Begin to look for the path on this host of the file that the process at the other end of a connected Unix socket wishes.
 * `done` is called once from the loop, unless the look is cancelled; the look is gone then. path: valid during the call.
 * error: 0; -ENOENT: the file is on no file system that is mounted on the host, or the root directory of the process is not a
 * mount; -EROFS: its mount is read-only; -ESRCH: the process has ended; -EFBIG: too many mounts; -ETIMEDOUT; other -errno.
 * Return 0; -ESRCH: the process has ended, or is in a PID namespace that this process does not see; -EBUSY: too many looks of
 * the user; other -errno. */
int peer_path_begin(struct peer_paths *paths, int socket, const struct peer_path_wish *wish,
        void (*done)(void *userdata, int error, const char *path), void *userdata,
        struct peer_path_look **ret);
/* Cancel a look that has not called `done` yet. */
void peer_path_cancel(struct peer_path_look *look);
