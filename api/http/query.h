/* SPDX-License-Identifier: MIT */
/* Query parameters (what follows the '?') and percent-encoding. A parameter that a route does not know is a
 * fault. */
#pragma once

#include "ublkd/base/problem.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

enum query_parameter {
        QUERY_WAIT_READY = 1 << 0, /* wait, wait=ready */
        QUERY_WAIT_GONE = 1 << 1,  /* wait, wait=gone, wait=ready */
        QUERY_TIMEOUT = 1 << 2,
        QUERY_FORCE = 1 << 3,
        QUERY_LABEL = 1 << 4,
        QUERY_LIMIT = 1 << 5,
        QUERY_CONTINUE = 1 << 6,
        QUERY_DEVICE = 1 << 7,
        QUERY_AFTER = 1 << 8, /* a revision */
        QUERY_DRY_RUN = 1 << 9,
        QUERY_ACCEPT_BACKING = 1 << 10, /* an identity */
        QUERY_ACCEPT_WRITE_ERRORS = 1 << 11,
        QUERY_DROP_LAST_COPY = 1 << 12,
        QUERY_STORE = 1 << 13, /* the pointer of a target */
};

enum {
        QUERY_LABELS_MAX = 16,
        QUERY_LIMIT_MAX = 1000,
        QUERY_TIMEOUT_SECONDS = 30,
        QUERY_TIMEOUT_SECONDS_MAX = 600
};

/* What the client wants done with data that only the disk holds (drop-last-copy). */
enum last_copy_wish { LAST_COPY_UNSAID, LAST_COPY_KEEP, LAST_COPY_DROP };

struct query_label {
        char *key; /* owned; `value` lies in the same block */
        const char *value;
};

struct query {
        bool wait, force, dry_run, accept_any_write_error;
        enum last_copy_wish last_copy;
        uint64_t timeout; /* microseconds */
        unsigned limit;
        char *continue_after;      /* a name, or a number; or NULL */
        char *device;              /* a name, or NULL */
        char *accept_backing;      /* an identity, or NULL */
        char *store;               /* the pointer of a target, or NULL */
        char *accept_write_errors; /* a token, or NULL */
        uint64_t after;
        struct query_label labels[QUERY_LABELS_MAX];
        size_t label_count;
        unsigned given; /* enum query_parameter */
};

/* Set defaults, then read the query parameters of `connection`; `allowed` (enum query_parameter) are
 * permitted. Return 0; -EINVAL with problems (without pointers); -ENOMEM. The caller clears `ret` in any
 * case. */
int query_parse(struct MHD_Connection *connection, unsigned allowed, struct query *ret,
        struct problem_list *problems);
/* Parse a revision of the store, in decimal digits. Return 0 or -EINVAL. */
int query_parse_revision(const char *text, uint64_t *ret);
/* Print the parameters that select what a GET returns; two queries that select the same, in another order or with other
 * digits, have the same text. Return NULL on ENOMEM. The caller frees it. */
char *query_to_text(const struct query *query);
void query_clear(struct query *query);

/* Decode %XX in the `size` bytes of `text` into `ret`, with a NUL at the end. Return 0; -EINVAL: a bad
 * escape, or a NUL in the result; -ENOBUFS. */
int percent_decode(const char *text, size_t size, char *ret, size_t ret_size);
