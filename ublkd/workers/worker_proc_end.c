/* SPDX-License-Identifier: MIT */
/* How the supervisor ends a worker. */
#include "ublkd/workers/worker_proc_internal.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/pidfd.h>

/* How long a worker may take to exit after it has reported a failure, or closed its channel. */
enum { LEAVE_GRACE_USEC = 5 * 1000 * 1000 };

void worker_proc_kill(struct worker_proc *worker)
{
        if (worker->died_at)
                return;
        worker->stage = WORKER_STAGE_LEAVING;
        (void)pidfd_send_signal(worker->pidfd, SIGKILL, NULL, 0); /* ESRCH: it is dead; on_death() follows */
}

void worker_proc_kill_for(struct worker_proc *worker, enum worker_fault fault, const char *format, ...)
{
        va_list arguments;

        if (worker->fault == WORKER_FAULT_NONE) {
                worker->fault = fault;
                va_start(arguments, format);
                vsnprintf(worker->fault_words, sizeof(worker->fault_words), format, arguments);
                va_end(arguments);
        }
        worker_proc_kill(worker);
}

void worker_proc_refuse(struct worker_proc *worker, const char *fault)
{
        worker_proc_kill_for(worker, WORKER_FAULT_PROTOCOL, "%s", fault);
}

static int on_grace_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;

        worker_proc_kill_for(worker, worker->unreachable ? WORKER_FAULT_PROTOCOL : WORKER_FAULT_STAYED,
                "it did not leave by itself");
        return 0;
}

void worker_proc_expect_exit(struct worker_proc *worker)
{
        worker->stage = WORKER_STAGE_LEAVING;
        if (!worker->grace_source
                && sd_event_add_time_relative(worker->event, &worker->grace_source, CLOCK_MONOTONIC,
                           LEAVE_GRACE_USEC, 0, on_grace_over, worker)
                           < 0)
                worker_proc_kill(worker);
}
