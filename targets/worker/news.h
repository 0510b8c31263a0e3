/* SPDX-License-Identifier: MIT */
/* What the queues have put into the region for the supervisor to show. On the main thread. */
#pragma once

#include "targets/worker/chan.h"
#include "targets/worker/queue/shared.h"

struct news {
        uint64_t reported; /* how much of it was sent to the supervisor */
};

/* Send NEWS if there is something new. When that fails it is sent with the next news; another supervisor
 * reads the region when it comes. */
void news_send(struct news *news, const struct shared *shared, struct chan *chan);
