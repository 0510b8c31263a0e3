/* SPDX-License-Identifier: MIT */
/* Listening sockets: bound to addresses, or passed by systemd. */
#pragma once

#include "api/http/access.h"
#include "ublkd/base/problem.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct listener {
        int fd;
        bool tcp;
        char *path; /* of the socket file to remove at the end, or NULL */
        dev_t device;
        ino_t inode;
        bool passed;             /* by systemd */
        gid_t passed_group;      /* of the file of a socket that was passed, at the start */
        char *passed_name;       /* of that group; NULL: no file names it */
        sd_event_source *source; /* the server sets and uses it */
};

/* Open a listening socket on ADDRESS: a path, tcp://127.0.0.1:PORT or tcp://[::1]:PORT. group: who may connect to a path,
 * beside root; if it does not exist, every user may. Return 0; -errno with one problem. */
int listener_open(const char *address, const struct api_group *group, struct listener *ret,
        struct problem_list *problems);
/* Take over a listening socket that another process has bound; `fd` is closed on failure. Reads files: call it before
 * the loop runs. Return 0; -errno. */
int listener_adopt(int fd, struct listener *ret, struct problem_list *problems);

/* The file of a Unix socket, as it is now. */
struct socket_file {
        char path[PATH_MAX];
        bool exists;
        gid_t gid;
        mode_t mode; /* the permissions */
        const char
                *group; /* the name; NULL: unknown; belongs to the listener or to the `group` of the call */
};

/* Look at the file of the socket. group: of SocketGroup=. Return false if it has none. */
bool listener_look(const struct listener *listener, const struct api_group *group, struct socket_file *ret);
/* Return whether of all users only root and the group can connect. */
bool socket_file_is_of(const struct socket_file *file, const struct api_group *group);
/* Return true, and the path, if the file of the socket was removed, so that no client can connect. */
bool listener_is_lost(const struct listener *listener, char *path, size_t size);
/* Close the socket, and remove its file if it is still the one that listener_open() made. */
void listener_close(struct listener *listener);
