/* SPDX-License-Identifier: MIT */
/* Work for a request that takes long and must run on the loop. Each turn of the loop runs a piece of it, and
 * the request is suspended meanwhile. The work ends early when the client leaves. */
#pragma once

#include "api/http/request.h"

struct turns_kind {
        /* Do a piece. Return true if more is to do; false if there is a reply. */
        bool (*piece)(struct request *request, void *work);
        void (*free)(void *work);
};

/* Do `work` for the request, which owns it from now on; `kind->free` frees it. On failure there is a
 * reply. */
void turns_begin(struct request *request, const struct turns_kind *kind, void *work);
