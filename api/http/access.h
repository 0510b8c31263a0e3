/* SPDX-License-Identifier: MIT */
/* Identify the client, and decide what it may do.
 *
 * On a Unix socket the kernel names the client's user and groups: root and the user that ublkd runs as may change
 * devices; a group, or everyone, may read. On TCP the kernel names no user, so every request needs the bearer
 * token. */
#pragma once

#include "ublkd/base/problem.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TOKEN_TEXT_SIZE = 65 };

/* Who may read, beside clients that may change devices. */
struct api_readers {
        bool everyone;
        bool has_group;
        gid_t group;      /* if has_group */
        const char *name; /* of the group, which need not exist; NULL: none was named */
};

struct peer {
        bool tcp;
        bool in_group; /* of the readers */
        uid_t uid;     /* (uid_t)-1 on TCP */
        gid_t gid;
        pid_t pid; /* 0 on TCP */
};

/* Fill `ret` with the peer of a connected socket. Return 0 or -errno. */
int peer_of_socket(int fd, const struct api_readers *readers, struct peer *ret);

/* Return whether the peer may change devices; on TCP, once its token matches. */
bool peer_may_change(const struct peer *peer);

/* Return whether the peer may read; on TCP, once its token matches. */
bool peer_may_read(const struct peer *peer, const struct api_readers *readers);

/* Read STATE_DIR/api-token, or create it with mode 0600. Return 0; -errno with one problem. */
int token_open(const char *state_dir, char ret_token[static TOKEN_TEXT_SIZE], struct problem_list *problems);

/* Compare the value of an Authorization header (or NULL) with the token, in a time that reveals nothing about
 * the token. */
bool token_matches(const char *token, const char *authorization);
