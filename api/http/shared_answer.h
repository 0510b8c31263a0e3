/* SPDX-License-Identifier: MIT */
/* The text of an answer that several replies have. Private to api/. */
#pragma once

#include <stdint.h>

/* Its references own it. */
struct shared_answer {
        unsigned references;
        uint64_t made; /* CLOCK_MONOTONIC, microseconds */
        char *key;     /* route and query (sharing.c) */
        const char *content_type;
        char *body;
        char etag[64];
        struct shared_answer *next; /* the next older one in api->shared */
};

/* Add or drop a reference. `answer` may be NULL. _unref() returns NULL. */
struct shared_answer *shared_answer_ref(struct shared_answer *answer);
struct shared_answer *shared_answer_unref(struct shared_answer *answer);
