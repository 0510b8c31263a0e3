/* SPDX-License-Identifier: MIT */
/* A control group for each worker.
 *
 * A process is moved, and groups are removed, only while no worker starts or dies: no recovery waits for it, or shares
 * its CPU with it. On a machine where workers keep dying, both wait for ten seconds at most. Processes that a dead
 * worker has left in its group are killed after a tenth of a second: they may keep the disk from being recovered.
 *
 * A job opens the directory of all groups, and does one thing. It keeps nothing for the next job: the unit may be
 * started or stopped in between. A sweep kills the processes that a job could not kill: a process that waits for a
 * disk dies only when the disk answers. The sweep runs when no worker starts or dies, then once a minute until its
 * list is empty. */
#include "ublkd/cgroups/worker_groups.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/cgroups/group_place.h"
#include "ublkd/cgroups/group_start.h"
#include "ublkd/cgroups/group_tree.h"
#include "ublkd/cgroups/group_write.h"
#include "ublkd/offload/job_thread.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

enum {
        PRIORITY_LATE = 10, /* whatever else there is to do comes first */
        CALM_USEC = 1000 * 1000,
        WAIT_MAX_USEC = 10 * 1000 * 1000,
        END_USEC = 100 * 1000, /* a recovery takes less */
        SOON_USEC = 1000 * 1000,
        SWEEP_USEC = 60 * 1000 * 1000,
        PREPARED_MAX = 64, /* waiting moves; beyond that, only moves that a caller needs are added */
        UID_SIZE = 64,
};

struct worker_groups {
        struct job_thread *thread;
        sd_event_source *sweep, *calm, *ending;
        uint64_t sweep_at;             /* CLOCK_MONOTONIC; 0: none is planned */
        TAILQ_HEAD(, group_job) holds; /* that wait for a calm moment */
        unsigned waiting;              /* the number of `holds` */
        TAILQ_HEAD(, group_job) ends;  /* that wait for `ending` */
        bool ends_planned;             /* `ending` is armed */
        TAILQ_HEAD(, group_job) drops; /* of start groups, that the next sweep tries again */
        bool holding;                  /* the thread has a job of `holds` */
        uint64_t calm_at;              /* CLOCK_MONOTONIC */
        struct group_sources sources;
        int place_error; /* 0, or -errno: there is no place; the next job looks again */
        struct group_place place;
};

struct group_request {
        struct group_job *job; /* NULL: it is done */
        void (*done)(void *userdata, const struct group_result *result);
        void *userdata;
};

/* What the thread does. */
struct group_job {
        struct thread_job job; /* first */
        struct worker_groups *groups;
        struct group_request *request; /* NULL: no caller waits for it (any more) */
        struct group_sources sources;
        int place_error;
        struct group_place place; /* a copy */
        pid_t pid;
        int pidfd;            /* of HOLD, owned; -1 */
        char start[UID_SIZE]; /* of the device whose start group gets the limits, or is removed; "" */
        struct group_limits limits;
        struct group_result result;
        int left;           /* groups that could not be ended yet */
        uint64_t queued_at; /* of HOLD, CLOCK_MONOTONIC */
        bool waits;         /* it is in `holds` */
        TAILQ_ENTRY(group_job) in_list;
};

DEFINE_CLEANUP(struct worker_groups, worker_groups_free);

/* ---- in the thread ---- */

/* Find the place again if it was missing: it may have been mounted meanwhile. */
static int open_tree(struct group_job *job, bool make, struct group_tree *ret)
{
        if (job->place_error < 0)
                job->place_error = group_place_find(&job->sources, &job->place);
        return job->place_error < 0 ? job->place_error
                                    : group_tree_open(&job->place, make && !job->place.delegated, ret);
}

static enum group_trouble trouble_of(const struct group_job *job, int error)
{
        if (error >= 0)
                return GROUP_FINE;
        if (job->place_error < 0)
                return job->place_error == -EXDEV ? GROUP_NOT_VISIBLE : GROUP_NO_HIERARCHY;
        if (error == -EBUSY)
                return GROUP_HAS_REMAINS;
        if (error == -EACCES || error == -EPERM || error == -EROFS)
                return GROUP_NOT_WRITABLE;
        return error == -ENOENT && job->place.delegated ? GROUP_NO_UNIT : GROUP_FAILED;
}

static bool is_alive(int pidfd)
{
        return poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) == 0;
}

/* The kernel moves a process by its pid, which another process may have once the worker is dead and reaped. If the
 * worker is alive after the move, the kernel has moved the worker. */
static int hold(struct group_job *job, const struct group_tree *tree)
{
        int r;

        group_tree_enable(tree, &job->limits, !job->place.delegated);
        if (!is_alive(job->pidfd))
                return -ESRCH;
        r = group_tree_hold(tree, job->pid);
        if (r <= 0 || is_alive(job->pidfd))
                return r;
        group_tree_undo(tree, job->pid);
        return -ESRCH;
}

/* On failure the start of the next worker tries again. */
static void prepare_start(const struct group_tree *tree, const char *uid, const struct group_limits *limits)
{
        _cleanup_close_ int group = group_start_make(tree, uid);
        int results[_GROUP_LIMIT_MAX];

        (void)group_write_limits(group, limits, results);
}

static void run_hold(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};
        int r = open_tree(job, true, &tree);

        if (r >= 0)
                r = hold(job, &tree);
        if (r >= 0)
                job->result.leftover = group_tree_limit(&tree, job->pid, &job->limits, job->result.limits);
        if (r >= 0 && *job->start)
                prepare_start(&tree, job->start, &job->limits);
        job->result.trouble = trouble_of(job, r);
        job->result.error = r < 0 ? r : 0;
}

static void run_end(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};

        job->left = open_tree(job, false, &tree) >= 0 && group_tree_kill(&tree, job->pid) != 0 ? 1 : 0;
}

static void run_sweep(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};

        job->left = open_tree(job, false, &tree) < 0 ? 0 : group_tree_sweep(&tree);
}

/* The one at the start of ublkd: nothing says of what is left there whether its device has limits. */
static void run_first_sweep(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};

        run_sweep(base);
        if (open_tree(job, false, &tree) >= 0)
                group_start_sweep(&tree);
}

static void run_drop(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};

        job->left = open_tree(job, false, &tree) >= 0 && group_start_remove(&tree, job->start) < 0 ? 1 : 0;
}

/* ---- jobs ---- */

static void drop(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;

        close_fd(job->pidfd);
        free(job);
}

/* Keep the place that a job has found. */
static void take_place(struct worker_groups *groups, const struct group_job *job)
{
        if (groups->place_error >= 0)
                return;
        groups->place_error = job->place_error;
        groups->place = job->place;
}

static bool set_timer(sd_event_source *timer, uint64_t at)
{
        return sd_event_source_set_time(timer, at) >= 0
               && sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT) >= 0;
}

static void plan_sweep(struct worker_groups *groups, uint64_t delay)
{
        uint64_t at = monotonic_now() + delay;

        if (groups->sweep_at > 0 && groups->sweep_at <= at)
                return;
        if (set_timer(groups->sweep, at))
                groups->sweep_at = at;
}

/* Return when something may be done that was due at `at` and that recoveries would wait for. */
static uint64_t calm_time(const struct worker_groups *groups, uint64_t at)
{
        return at + WAIT_MAX_USEC < groups->calm_at ? at + WAIT_MAX_USEC : groups->calm_at;
}

static void leave_holds(struct worker_groups *groups, struct group_job *job)
{
        TAILQ_REMOVE(&groups->holds, job, in_list);
        job->waits = false;
        groups->waiting--;
}

/* Hand the next move to the thread, if the moment is calm; else try again when it is. */
static void hold_next(struct worker_groups *groups)
{
        struct group_job *job = TAILQ_FIRST(&groups->holds);
        uint64_t due;

        if (!job || groups->holding)
                return;
        due = calm_time(groups, job->queued_at);
        if (monotonic_now() < due && set_timer(groups->calm, due))
                return;
        leave_holds(groups, job);
        groups->holding = true;
        job_thread_add(groups->thread, &job->job);
}

static int on_calm(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        hold_next(userdata);
        return 0;
}

static void queue_hold(struct worker_groups *groups, struct group_job *job)
{
        job->queued_at = monotonic_now();
        TAILQ_INSERT_TAIL(&groups->holds, job, in_list);
        job->waits = true;
        groups->waiting++;
        hold_next(groups);
}

/* The group of a dead worker is removed soon. A process that a sweep has left waits for a disk. */
static void on_ended(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;

        take_place(job->groups, job);
        if (job->left > 0)
                plan_sweep(job->groups, job->pid > 0 ? SOON_USEC : SWEEP_USEC);
        drop(base);
}

static void on_dropped(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;

        take_place(job->groups, job);
        if (job->left == 0) {
                drop(base);
                return;
        }
        TAILQ_INSERT_TAIL(&job->groups->drops, job, in_list);
        plan_sweep(job->groups, SWEEP_USEC);
}

/* Preflight workers end unseen: each group is followed by a sweep. */
static void on_held(struct thread_job *base)
{
        struct group_job *job = (struct group_job *)base;
        struct group_request *request = job->request;
        struct group_result result = job->result;

        take_place(job->groups, job);
        job->groups->holding = false;
        plan_sweep(job->groups, SWEEP_USEC);
        hold_next(job->groups);
        drop(base);
        if (!request)
                return;
        request->job = NULL;
        request->done(request->userdata, &result); /* frees the request */
}

static int on_ends(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_groups *groups = userdata;
        struct group_job *job;

        groups->ends_planned = false;
        while ((job = TAILQ_FIRST(&groups->ends))) {
                TAILQ_REMOVE(&groups->ends, job, in_list);
                job_thread_add(groups->thread, &job->job);
        }
        return 0;
}

static void queue_end(struct worker_groups *groups, struct group_job *job)
{
        TAILQ_INSERT_TAIL(&groups->ends, job, in_list);
        if (groups->ends_planned)
                return;
        groups->ends_planned = set_timer(groups->ending, monotonic_now() + END_USEC);
        if (!groups->ends_planned)
                (void)on_ends(NULL, 0, groups);
}

static struct group_job *new_job(struct worker_groups *groups, void (*run)(struct thread_job *job), pid_t pid)
{
        struct group_job *job = calloc(1, sizeof(*job));

        if (!job)
                return NULL;
        *job = (struct group_job){
                .job = {.run = run, .done = on_ended, .drop = drop},
                .groups = groups,
                .sources = groups->sources,
                .place_error = groups->place_error,
                .place = groups->place,
                .pid = pid,
                .pidfd = -1,
        };
        return job;
}

static struct group_job *new_hold(struct worker_groups *groups, pid_t pid, int pidfd, const char *start,
        const struct group_limits *limits)
{
        struct group_job *job = new_job(groups, run_hold, pid);

        if (!job)
                return NULL;
        job->job.done = on_held;
        job->limits = *limits;
        snprintf(job->start, sizeof(job->start), "%s", start ? start : "");
        job->pidfd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
        if (job->pidfd < 0) {
                free(job);
                return NULL;
        }
        return job;
}

/* ---- what others call ---- */

struct group_request *group_request_free(struct group_request *request)
{
        if (!request)
                return NULL;
        if (request->job && request->job->waits) {
                leave_holds(request->job->groups, request->job);
                drop(&request->job->job);
        } else if (request->job)
                request->job->request = NULL;
        free(request);
        return NULL;
}

/* The device has limits again. A removal that the thread has begun is followed by the hold, which makes the group again. */
static void cancel_drops(struct worker_groups *groups, const char *uid)
{
        struct group_job *job, *next;

        for (job = TAILQ_FIRST(&groups->drops); job; job = next) {
                next = TAILQ_NEXT(job, in_list);
                if (strcmp(job->start, uid) != 0)
                        continue;
                TAILQ_REMOVE(&groups->drops, job, in_list);
                drop(&job->job);
        }
}

int worker_groups_hold(struct worker_groups *groups, pid_t pid, int pidfd, const char *start,
        const struct group_limits *limits, void (*done)(void *userdata, const struct group_result *result),
        void *userdata, struct group_request **ret)
{
        struct group_request *request = calloc(1, sizeof(*request));

        if (!request)
                return -ENOMEM;
        *request = (struct group_request){
                .job = new_hold(groups, pid, pidfd, start, limits),
                .done = done,
                .userdata = userdata,
        };
        if (!request->job) {
                free(request);
                return -ENOMEM;
        }
        if (start)
                cancel_drops(groups, start);
        request->job->request = request;
        *ret = request;
        queue_hold(groups, request->job);
        return 0;
}

/* On failure, or while the thread hangs in the kernel, the process gets its group when it serves a disk. */
int worker_groups_prepare(struct worker_groups *groups, pid_t pid, int pidfd,
        void (*done)(void *userdata, const struct group_result *result), void *userdata,
        struct group_request **ret)
{
        if (groups->waiting >= PREPARED_MAX)
                return -EAGAIN;
        return worker_groups_hold(
                groups, pid, pidfd, NULL, &(const struct group_limits){}, done, userdata, ret);
}

int worker_groups_open_rest(const struct worker_groups *groups)
{
        return groups->place_error < 0 ? groups->place_error : group_tree_open_rest(&groups->place);
}

int worker_groups_open_own(const struct worker_groups *groups, pid_t pid)
{
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};
        int r = groups->place_error < 0 ? groups->place_error : group_tree_open_path(&groups->place, &tree);

        return r < 0 ? r : group_tree_open_own(&tree, pid);
}

bool worker_groups_bound(int group, const struct group_limits *limits)
{
        return group_write_bounds(group, limits) > 0;
}

int worker_groups_open_start(
        const struct worker_groups *groups, const char *uid, const struct group_limits *limits)
{
        return groups->place_error < 0 ? groups->place_error
                                       : group_start_open_bounded(&groups->place, uid, limits);
}

int worker_groups_open_start_events(const struct worker_groups *groups, const char *uid)
{
        return groups->place_error < 0 ? groups->place_error : group_start_open_events(&groups->place, uid);
}

/* On ENOMEM the next ublkd removes the group. */
void worker_groups_drop_start(struct worker_groups *groups, const char *uid)
{
        struct group_job *job = new_job(groups, run_drop, 0);

        if (!job)
                return;
        job->job.done = on_dropped;
        snprintf(job->start, sizeof(job->start), "%s", uid);
        queue_end(groups, job);
}

void worker_groups_postpone(struct worker_groups *groups)
{
        groups->calm_at = monotonic_now() + CALM_USEC;
}

bool worker_groups_has(const struct worker_groups *groups, pid_t pid)
{
        return groups->place_error >= 0 && group_tree_has(&groups->place, pid) > 0;
}

int worker_groups_open_events(const struct worker_groups *groups, pid_t pid)
{
        return groups->place_error < 0 ? groups->place_error : group_tree_open_events(&groups->place, pid);
}

int worker_groups_oom_kills(int events)
{
        uint64_t kills;
        int r = events < 0 ? events : group_tree_oom_kills(events, &kills);

        return r < 0 ? r : kills < INT_MAX ? (int)kills : INT_MAX;
}

/* On ENOMEM the next sweep removes the group. */
void worker_groups_end(struct worker_groups *groups, pid_t pid)
{
        struct group_job *job = new_job(groups, run_end, pid);

        worker_groups_postpone(groups);
        if (job)
                queue_end(groups, job);
        else
                plan_sweep(groups, SWEEP_USEC);
}

static void sweep_now(struct worker_groups *groups, void (*run)(struct thread_job *job))
{
        struct group_job *job = new_job(groups, run, 0), *again;

        while ((again = TAILQ_FIRST(&groups->drops))) {
                TAILQ_REMOVE(&groups->drops, again, in_list);
                job_thread_add(groups->thread, &again->job);
        }
        if (job)
                job_thread_add(groups->thread, &job->job);
        else
                plan_sweep(groups, SWEEP_USEC);
}

static int on_sweep(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_groups *groups = userdata;
        uint64_t due = calm_time(groups, groups->sweep_at);

        if (monotonic_now() < due && set_timer(groups->sweep, due))
                return 0;
        groups->sweep_at = 0;
        sweep_now(groups, run_sweep);
        return 0;
}

static int add_timers(struct worker_groups *groups, sd_event *event)
{
        int r = sd_event_add_time(event, &groups->sweep, CLOCK_MONOTONIC, UINT64_MAX, 0, on_sweep, groups);

        if (r >= 0)
                r = sd_event_source_set_priority(groups->sweep, PRIORITY_LATE);
        if (r >= 0)
                r = sd_event_add_time(event, &groups->calm, CLOCK_MONOTONIC, UINT64_MAX, 0, on_calm, groups);
        if (r >= 0)
                r = sd_event_source_set_priority(groups->calm, PRIORITY_LATE);
        return r < 0 ? r
                     : sd_event_add_time(
                               event, &groups->ending, CLOCK_MONOTONIC, UINT64_MAX, 0, on_ends, groups);
}

int worker_groups_new(sd_event *event, const struct group_sources *sources, struct worker_groups **ret)
{
        _cleanup_(worker_groups_free_pointer) struct worker_groups *groups = calloc(1, sizeof(*groups));
        int r;

        if (!groups)
                return -ENOMEM;
        TAILQ_INIT(&groups->holds);
        TAILQ_INIT(&groups->ends);
        TAILQ_INIT(&groups->drops);
        groups->sources = *sources;
        groups->place_error = group_place_find(sources, &groups->place);
        r = job_thread_new(event, &groups->thread);
        if (r >= 0)
                r = add_timers(groups, event);
        if (r < 0)
                return r;
        sweep_now(groups, run_first_sweep);
        *ret = TAKE_PTR(groups);
        return 0;
}

struct worker_groups *worker_groups_free(struct worker_groups *groups)
{
        struct group_job *job;

        if (!groups)
                return NULL;
        job_thread_free(groups->thread);
        while ((job = TAILQ_FIRST(&groups->holds))) {
                leave_holds(groups, job);
                drop(&job->job);
        }
        TAILQ_CONCAT(&groups->ends, &groups->drops, in_list);
        while ((job = TAILQ_FIRST(&groups->ends))) { /* the sweep of the next ublkd ends them */
                TAILQ_REMOVE(&groups->ends, job, in_list);
                drop(&job->job);
        }
        sd_event_source_disable_unref(groups->ending);
        sd_event_source_disable_unref(groups->sweep);
        sd_event_source_disable_unref(groups->calm);
        free(groups);
        return NULL;
}
