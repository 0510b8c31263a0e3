/* SPDX-License-Identifier: MIT */
/* Ends what a coroutine of the background waits for. */
#include "targets/worker/wait/scope.h"

bool scope_stop(struct io_loop *loop, struct co_scope *scope)
{
        scope->stopping = true;
        while (scope->first) {
                struct scope_wait *wait = scope->first;

                if (!wait->cancel(loop, wait))
                        return false;
                scope_wait_end(wait); /* once: its coroutine may need some rounds to continue */
        }
        return true;
}
