/* SPDX-License-Identifier: MIT */
/* Who asks, and what they may do.
 *
 * On a Unix socket the caller is who the kernel says it is: root and the user that ublkd runs as may change
 * things, everybody may read. On TCP nobody is known, so a bearer token is needed for everything. */
#pragma once

#include "ublkd/base/problem.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TOKEN_TEXT_SIZE = 65 };

struct peer {
        bool tcp;
        uid_t uid; /* (uid_t)-1 on TCP */
        gid_t gid;
        pid_t pid; /* 0 on TCP */
};

/* 0 or -errno. */
int peer_of_socket(int fd, struct peer *ret);

/* True when the peer may change things (on TCP: once its token is good). */
bool peer_may_change(const struct peer *peer);

/* Reads STATE_DIR/api-token, or makes it (mode 0600). 0; -errno with one problem. */
int token_open(const char *state_dir, char ret_token[static TOKEN_TEXT_SIZE], struct problem_list *problems);

/* Compares the value of an Authorization header (or NULL) in a time that tells nothing about the token. */
bool token_matches(const char *token, const char *authorization);
