/* SPDX-License-Identifier: MIT */
/* Work for a request that takes a while and cannot be given away: it is done a piece in each turn of the loop,
 * and the request is suspended meanwhile. It ends early when the client leaves. */
#pragma once

#include "api/http/request.h"

struct turns_kind {
        /* Do a piece. True: there is more to do. False: there is a reply. */
        bool (*piece)(struct request *request, void *work);
        void (*free)(void *work);
};

/* Do `work` for the request, which owns it from now on. On failure there is a reply. */
void turns_begin(struct request *request, const struct turns_kind *kind, void *work);
