/* SPDX-License-Identifier: MIT */
/* Identify the client, and decide what it may do.
 *
 * On a Unix socket the kernel names the client's user and groups: root, the user that ublkd runs as, and a group of
 * administrators may change devices; another group, or everyone, may read. In a container no user or group has a right
 * of the host's. A tenant, to whom a rule of the policy gives devices of its own, sees and changes these (view.h). A request
 * of another user that changes devices may be one that polkit allows (permission.h). On TCP the kernel names no user, so
 * every request but a public one needs the bearer token. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/model/tenant.h"
#include "ublkd/peers/peer_home.h"
#include "ublkd/policy/policy.h"

#include <stdbool.h>
#include <sys/types.h>

enum { TOKEN_TEXT_SIZE = 65 };

/* A group that a setting names. */
struct api_group {
        bool exists;
        gid_t gid;        /* if it exists */
        const char *name; /* NULL: none was named */
};

/* What clients may do that are neither root nor the user that ublkd runs as. */
struct api_rights {
        bool everyone_reads;
        struct api_group readers;
        struct api_group administrators; /* may do what root may; read as well */
        const struct policy *policy;     /* what tenants may have; NULL: nothing */
        bool asks_polkit;                /* whether another user of a Unix socket may change devices */
};

struct peer {
        bool tcp;
        /* What its user and groups give it. A client in a container has none of these: see peer_home.h. */
        bool is_root, is_administrator, is_reader; /* is_root: also the user that ublkd runs as */
        enum peer_home home;                       /* PEER_HOME_UNASKED: nothing depends on it so far */
        uid_t uid;                                 /* (uid_t)-1 on TCP */
        gid_t gid;
        pid_t pid;                /* 0 on TCP */
        char tenant[TENANT_SIZE]; /* "": it is none, or an administrator */
        uint32_t account; /* the first uid of those that count together: of a tenant more than one may */
        unsigned changes_per_minute; /* of a tenant, by its rule */
};

/* Fill `ret` with the peer of a connected socket. Return 0 or -errno. */
int peer_of_socket(int fd, const struct api_rights *rights, struct peer *ret);

/* Return whether the peer may change devices; on TCP, once its token matches. */
bool peer_may_change(const struct peer *peer);

/* Return whether the peer may read; on TCP, once its token matches. */
bool peer_may_read(const struct peer *peer, const struct api_rights *rights);

/* Read STATE_DIR/api-token, or create it with mode 0600. Return 0; -errno with one problem. */
int token_open(const char *state_dir, char ret_token[static TOKEN_TEXT_SIZE], struct problem_list *problems);

/* Compare the value of an Authorization header (or NULL) with the token, in a time that reveals nothing about
 * the token. */
bool token_matches(const char *token, const char *authorization);
