/* SPDX-License-Identifier: MIT */
/* Calls that may hang behind another process, in a thread that is left behind when one does. */
#pragma once

#include <stdint.h>

/* The first member of what a call needs. While the thread has it, the caller touches nothing of it. */
struct aside_job {
        void (*run)(struct aside_job *job);  /* in the thread; touches nothing but the job */
        void (*free)(struct aside_job *job); /* in the thread, after a call that was given up */
};

struct aside;

/* Run a job in *aside, a thread that is started if it is NULL. Return 0: it has run, and is the caller's again; -ETIME:
 * it has been blocked for `usec` or a little longer, the thread owns it, and *aside is NULL; other -errno: it was not
 * started. A thread that only waits for the CPU is waited for. */
int aside_run(struct aside **aside, struct aside_job *job, uint64_t usec);

/* End the thread. `aside` may be NULL. Return NULL. */
struct aside *aside_free(struct aside *aside);
