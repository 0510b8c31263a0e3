/* SPDX-License-Identifier: MIT */
/* How the supervisor ends a worker. */
#include "ublkd/workers/worker_proc_internal.h"

#include "ublkd/workers/worker_threads.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/pidfd.h>

enum {
        /* How long a worker may take to exit after it has reported a failure, or has closed its channel before it
         * serves. */
        LEAVE_GRACE_USEC = 5 * 1000 * 1000,
        /* How long a worker that serves may live on without its channel. */
        CLOSED_GRACE_USEC = 2 * 1000 * 1000,
};

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

bool worker_proc_is_refused(const struct worker_proc *worker)
{
        return worker->fault == WORKER_FAULT_PROTOCOL;
}

bool worker_proc_is_exiting(const struct worker_proc *worker)
{
        return worker_process_exiting("/proc", worker->pid) != 0;
}

static int set_timer(sd_event_source *source, uint64_t usec)
{
        int r = sd_event_source_set_time_relative(source, usec);

        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* One that is exiting has done its part, and the kernel may wait for its I/O without end. */
static int on_grace_over(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;

        if (worker_proc_is_exiting(worker) && set_timer(source, LEAVE_GRACE_USEC) >= 0)
                return 0;
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

static int await_exit(struct worker_proc *worker);

/* The main thread of a worker that exits closes the channel, and a queue may still wait for the store. Only a worker that
 * runs on has closed the channel on purpose. */
static int on_closed_grace_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;

        if (worker->stage == WORKER_STAGE_LEAVING)
                return 0;
        if (!worker_proc_is_exiting(worker))
                worker->left_channel = true;
        else if (await_exit(worker) >= 0)
                return 0;
        worker->changed(worker->userdata, worker); /* may free it */
        return 0;
}

/* Return 0; -errno: it was killed instead. */
static int await_exit(struct worker_proc *worker)
{
        int r = worker->closed_source
                        ? set_timer(worker->closed_source, CLOSED_GRACE_USEC)
                        : sd_event_add_time_relative(worker->event, &worker->closed_source, CLOCK_MONOTONIC,
                                  CLOSED_GRACE_USEC, 0, on_closed_grace_over, worker);

        if (r < 0)
                worker_proc_kill(worker);
        return r;
}

bool worker_proc_left_channel(const struct worker_proc *worker)
{
        return worker->left_channel && worker->stage == WORKER_STAGE_SERVING && !worker->died_at;
}

void worker_proc_lost_channel(struct worker_proc *worker)
{
        if (worker->stage == WORKER_STAGE_SERVING)
                (void)await_exit(worker);
        else
                worker_proc_expect_exit(worker);
}
