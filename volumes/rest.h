/* SPDX-License-Identifier: MIT */
/* A request to ublkd over its Unix socket. It waits for the answer; each thread may send one. */
#pragma once

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stddef.h>

enum { REST_ERROR_SIZE = 1024 };

struct rest_answer {
        long status;
        cJSON *json; /* NULL: no body */
};

struct rest_request {
        const char *socket; /* of ublkd */
        const char *method, *path;
        const cJSON *body;        /* NULL: none */
        long timeout_msec;        /* for the answer */
        const atomic_bool *ended; /* true: the caller does not wait any more; NULL: it does */
};

/* Call once, before the first thread. Return 0 or -errno. */
int rest_prepare(void);
/* Send a request. Return 0 with an answer of any status, whose JSON the caller frees; -EIO with a sentence: no answer. */
int rest_ask(const struct rest_request *request, struct rest_answer *ret, char error[static REST_ERROR_SIZE]);
/* Copy the sentence of an answer that is a problem. */
void rest_problem(const struct rest_answer *answer, char error[static REST_ERROR_SIZE]);
