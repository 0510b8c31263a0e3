/* SPDX-License-Identifier: MIT */
/* Starts the process that makes a file system, answers it, and waits for its end. */
#include "ublkd/filesystems/filesystem_job.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/offload/proc_spawn.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PATIENCE_USEC = 120 * 1000 * 1000, RUNNING_MAX = 8, STUCK_FACTOR = 4 };

static_assert((int)FILESYSTEM_LINK_FD == (int)PROC_SPAWN_FIRST_FD, "the link is the first descriptor");

enum job_stage {
        JOB_LOOKS,
        JOB_WORKS,
        JOB_ENDS, /* what came of it is known, and the process, which has the disk open, exits now */
        JOB_OVER  /* its events are over; a process that was killed may still be there */
};

struct filesystem_job {
        struct filesystem_jobs *jobs;
        struct filesystem_job_events events;
        enum job_stage stage;
        bool reported;                   /* JOB_ENDS: there is a report; else there was nothing to do */
        struct filesystem_report report; /* of the process */
        char device[FILESYSTEM_UUID_SIZE], path[FILESYSTEM_PATH_SIZE];
        int link, process; /* process: a pidfd */
        sd_event_source *readable, *death, *deadline;
        TAILQ_ENTRY(filesystem_job) entry;
};

struct filesystem_jobs {
        sd_event *event;
        struct filesystem_limits limits;
        TAILQ_HEAD(, filesystem_job) all; /* whose process is not dead */
};

/* ---- the end ---- */

static void job_free(struct filesystem_job *job)
{
        TAILQ_REMOVE(&job->jobs->all, job, entry);
        sd_event_source_disable_unref(job->readable);
        sd_event_source_disable_unref(job->death);
        sd_event_source_disable_unref(job->deadline);
        close_fd(job->link);
        close_fd(job->process);
        free(job);
}

/* Without the link the process has nothing left to do. */
static void expect_death(struct filesystem_job *job)
{
        job->stage = JOB_ENDS;
        job->readable = sd_event_source_disable_unref(job->readable);
        job->link = close_fd(job->link);
}

static void finish(struct filesystem_job *job, const struct filesystem_report *report)
{
        job->stage = JOB_OVER;
        job->readable = sd_event_source_disable_unref(job->readable);
        job->deadline = sd_event_source_disable_unref(job->deadline);
        job->link = close_fd(job->link);
        job->events.done(job->events.userdata, report);
}

static void kill_process(const struct filesystem_job *job)
{
        (void)pidfd_send_signal(job->process, SIGKILL, NULL, 0);
}

static void fail(struct filesystem_job *job, enum filesystem_outcome outcome, int error)
{
        kill_process(job);
        finish(job, &(const struct filesystem_report){
                            .outcome = outcome, .error = error, .sight = FILESYSTEM_SEES_ERROR});
}

/* ---- messages ---- */

static void answer(struct filesystem_job *job, const struct filesystem_look *look)
{
        struct filesystem_go go = {.task = FILESYSTEM_LEAVES};

        job->events.looked(job->events.userdata, look, &go);
        if (go.task == FILESYSTEM_LEAVES)
                expect_death(job);
        else if (send(job->link, &go, sizeof(go), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(go))
                job->stage = JOB_WORKS;
        else
                fail(job, FILESYSTEM_FAILED, -errno);
}

static void finish_as_reported(struct filesystem_job *job)
{
        finish(job, job->reported ? &job->report : NULL);
}

/* Return false if there is no message yet. A process that ends without one has died, or was killed. */
static bool take_message(struct filesystem_job *job)
{
        union {
                struct filesystem_look look;
                struct filesystem_report report;
        } message;
        ssize_t n = recv(job->link, &message, sizeof(message), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (job->stage == JOB_LOOKS && n == sizeof(message.look)
                && message.look.sight < _FILESYSTEM_SIGHT_MAX)
                answer(job, &message.look);
        else if (job->stage == JOB_WORKS && n == sizeof(message.report)
                 && message.report.outcome < _FILESYSTEM_OUTCOME_MAX
                 && message.report.sight < _FILESYSTEM_SIGHT_MAX) {
                job->report = message.report;
                job->report.text[FILESYSTEM_TEXT_SIZE - 1] = '\0';
                job->reported = true;
                if (job->report.lingers) /* it is counted until it ends */
                        finish_as_reported(job);
                else
                        expect_death(job);
        } else
                fail(job, FILESYSTEM_LATE, -EPIPE);
        return true;
}

static int on_readable(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        (void)take_message(userdata);
        return 0;
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct filesystem_job *job = userdata;

        if (job->stage == JOB_ENDS) {
                kill_process(job);
                finish_as_reported(job);
        } else
                fail(job, FILESYSTEM_LATE, -ETIMEDOUT);
        return 0;
}

static int on_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct filesystem_job *job = userdata;

        (void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){}, WEXITED | WNOHANG);
        while (job->stage < JOB_ENDS)
                (void)take_message(job); /* ends at the latest with the end of the link */
        if (job->stage == JOB_ENDS)
                finish_as_reported(job);
        job_free(job);
        return 0;
}

/* ---- the begin ---- */

/* A process that was killed may still be in the kernel, and use its disk: an unmount does not wait for that. */
static int check_limits(const struct filesystem_jobs *jobs, const struct filesystem_order *order)
{
        const struct filesystem_job *job;
        unsigned running = 0, all = 0;

        TAILQ_FOREACH (job, &jobs->all, entry) {
                all++;
                if (job->stage != JOB_OVER)
                        running++;
                if ((*order->path && strcmp(job->path, order->path) == 0)
                        || (job->stage != JOB_OVER && strcmp(job->device, order->device) == 0))
                        return -EBUSY;
        }
        return running >= jobs->limits.running_max || all >= STUCK_FACTOR * jobs->limits.running_max ? -EAGAIN
                                                                                                     : 0;
}

/* Return the end of the link that is ours. The process waits for its order. */
static int spawn(const char *program, int *ret_process)
{
        static const char *const arguments[] = {"ublkd", FILESYSTEM_PROCESS_OPTION, NULL};
        _cleanup_close_ int ours = -1, theirs = -1;
        pid_t pid;
        int fds[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];
        r = proc_spawn(
                &(const struct proc_spawn){
                        .program = program,
                        .argv = arguments,
                        .fds = {theirs},
                        .fd_count = 1,
                },
                &pid, ret_process);
        return r < 0 ? r : TAKE_FD(ours);
}

static int watch(struct filesystem_job *job)
{
        sd_event *event = job->jobs->event;
        int r = sd_event_add_io(event, &job->readable, job->link, EPOLLIN, on_readable, job);

        if (r >= 0)
                r = sd_event_add_time_relative(event, &job->deadline, CLOCK_MONOTONIC,
                        job->jobs->limits.patience_usec, 0, on_deadline, job);
        if (r >= 0)
                r = sd_event_add_io(event, &job->death, job->process, EPOLLIN, on_death, job);
        return r;
}

static int send_order(const struct filesystem_job *job, const struct filesystem_order *order)
{
        return send(job->link, order, sizeof(*order), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*order) ? 0
                                                                                                     : -errno;
}

unsigned filesystem_jobs_running_max(const struct filesystem_jobs *jobs)
{
        return jobs->limits.running_max;
}

int filesystem_job_begin(struct filesystem_jobs *jobs, const struct filesystem_order *order,
        const struct filesystem_job_events *events)
{
        struct filesystem_job *job;
        int r = check_limits(jobs, order);

        if (r < 0)
                return r;
        job = calloc(1, sizeof(*job));
        if (!job)
                return -ENOMEM;
        *job = (struct filesystem_job){.jobs = jobs, .events = *events, .link = -1, .process = -1};
        strcpy(job->device, order->device);
        strcpy(job->path, order->path);
        TAILQ_INSERT_TAIL(&jobs->all, job, entry);
        r = spawn(jobs->limits.program, &job->process);
        if (r >= 0) {
                job->link = r;
                r = watch(job);
        }
        if (r >= 0)
                r = send_order(job, order);
        if (r < 0) { /* without an order it has asked no disk for anything, so it ends at once */
                if (job->process >= 0 && pidfd_send_signal(job->process, SIGKILL, NULL, 0) >= 0)
                        (void)waitid(P_PIDFD, (id_t)job->process, &(siginfo_t){}, WEXITED);
                job_free(job);
        }
        return r < 0 ? r : 0;
}

/* ---- the whole ---- */

int filesystem_jobs_new(sd_event *event, const struct filesystem_limits *limits, struct filesystem_jobs **ret)
{
        struct filesystem_jobs *jobs = calloc(1, sizeof(*jobs));

        if (!jobs)
                return -ENOMEM;
        if (limits)
                jobs->limits = *limits;
        if (jobs->limits.patience_usec == 0)
                jobs->limits.patience_usec = PATIENCE_USEC;
        if (jobs->limits.running_max == 0)
                jobs->limits.running_max = RUNNING_MAX;
        jobs->event = sd_event_ref(event);
        TAILQ_INIT(&jobs->all);
        *ret = jobs;
        return 0;
}

struct filesystem_jobs *filesystem_jobs_free(struct filesystem_jobs *jobs)
{
        struct filesystem_job *job;

        if (!jobs)
                return NULL;
        while ((job = TAILQ_FIRST(&jobs->all))) {
                kill_process(job); /* init, or our end, reaps it */
                job_free(job);
        }
        sd_event_unref(jobs->event);
        free(jobs);
        return NULL;
}
