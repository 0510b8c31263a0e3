/* SPDX-License-Identifier: MIT */
/* The path watcher: a process of the supervisor that looks where paths lead, now and whenever that may have
 * changed. A look may hang (a server that does not answer, an automount), and then costs this process. */
#pragma once

#include <stdint.h>

struct path_watcher_options {
        uint64_t poll_usec;   /* how often paths are looked at whose changes are not reported; 0: 30 s */
        uint64_t room_usec;   /* how often the room below files is measured; 0: 60 s */
        uint64_t settle_usec; /* how long after a change a path is looked at; 0: 100 ms */
};

/* Run the process: serve orders on `fd` (path_wire.h) until that closes. options: NULL for the usual ones.
 * Return an exit status. */
int path_watcher_main(int fd, const struct path_watcher_options *options);
