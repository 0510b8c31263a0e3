/* SPDX-License-Identifier: MIT */
/* A look that can hang (at /proc: behind a process that is stuck), as an event. A process of its own takes
 * it, which is forked for it and dead after it; the loop goes on meanwhile.
 *
 * One that does not end in time is killed, and what it has not written is not known. One that cannot be
 * killed (it hangs in the kernel) is left alone; with several of those there are no more looks until one of
 * them is gone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

enum { APART_STUCK_MAX = 4 }; /* processes that were killed and do not die */

struct apart_options {
        const char *process;    /* its name; 15 bytes at most */
        uint64_t patience_usec; /* for one look */
        /* In the process, which has a copy of all memory and no descriptor but `answer`: looks, and writes
         * there. It may flush what is to be known if it hangs later. */
        void (*look)(void *userdata, FILE *answer);
        /* From the loop, once for each apart_begin() that succeeded: what was written (`size` bytes), valid
         * during the call. `error`: 0: that was all; -ETIMEDOUT: it took too long; other -errno. It may begin
         * again. */
        void (*done)(void *userdata, int error, const void *answer, size_t size);
        /* From the loop, when the last process of this apart has exited. NULL: nothing waits for that. */
        void (*gone)(void *userdata);
        unsigned
                stuck_max; /* processes that may be stuck before there are no more looks; 0: APART_STUCK_MAX */
        void *userdata;
};

struct apart;

/* Create an apart, whose options are copied. Return 0 or -errno. */
int apart_new(sd_event *event, const struct apart_options *options, struct apart **ret);
/* Kill a look under way, and free the apart. NULL is fine. Return NULL. */
struct apart *apart_free(struct apart *apart);

/* Start a look. Return 0; -EBUSY: one is under way; -EDEADLK: several were given up and do not end; other
 * -errno. */
int apart_begin(struct apart *apart);
/* Kill a look under way; `done` is not called for it. */
void apart_cancel(struct apart *apart);
/* Return whether a process of this apart has not exited yet, also one that was killed. */
bool apart_has_process(const struct apart *apart);
