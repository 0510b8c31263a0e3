/* SPDX-License-Identifier: MIT */
/* Listening sockets: made from addresses, or passed by systemd. */
#pragma once

#include "ublkd/base/problem.h"

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct listener {
        int fd;
        bool tcp;
        char *path; /* of a socket file that is ours to remove, or NULL */
        dev_t device;
        ino_t inode;
        sd_event_source *source; /* the server's */
};

/* ADDRESS: a path, or tcp://127.0.0.1:PORT, tcp://[::1]:PORT. 0; -errno with one problem. */
int listener_open(const char *address, struct listener *ret, struct problem_list *problems);
/* A socket that somebody else has bound; taken over, also on failure. */
int listener_adopt(int fd, struct listener *ret, struct problem_list *problems);
/* Removes the socket file if it is still the one that was made. */
void listener_close(struct listener *listener);
