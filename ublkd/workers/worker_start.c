/* SPDX-License-Identifier: MIT */
/* Starts worker processes, and keeps a spare.
 *
 * A spare is a worker that does not know yet for which device: it holds its end of a socket pair and nothing
 * else of ours, does not listen, and so cannot be adopted. It leaves when that channel closes, hence never
 * outlives this supervisor. It runs as the worker of a device would at that point: nothing is set for a
 * device before its CONFIG is read.
 *
 * Nothing depends on it. One that is dead, or was executed from a file that has been replaced since, is let
 * go, and a process is started as if there had been none. It is started on a timer that every start pushes
 * on, so never in the middle of a recovery, and when many workers die at once only for the first of them. */
#include "ublkd/workers/worker_start.h"

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/plan/backoff.h"
#include "ublkd/offload/proc_spawn.h"
#include "ublkd/workers/worker_log.h"
#include "ublkd/workers/worker_network.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
        CALM_USEC = 1000 * 1000,
        PRIORITY_DEATH = -10,
        PRIORITY_SPARE = 10, /* whatever else there is to do comes first */
};

enum spare_state {
        SPARE_NONE,
        SPARE_WAITS,   /* for its CONFIG */
        SPARE_LEAVING, /* its channel is closed, and it has not died yet */
};

struct worker_start {
        sd_event *event;
        const char *program;
        struct worker_confinement confinement;
        struct worker_groups *groups; /* NULL: no control groups */
        unsigned workers;
        sd_event_source *timer;
        enum spare_state state;
        struct worker_process spare; /* unless SPARE_NONE */
        sd_event_source *spare_death;
        struct stat spare_file; /* the program as it was before the spare was started */
        unsigned failures;      /* to keep one, in a row */
        struct worker_networks networks;
};

DEFINE_CLEANUP(struct worker_log, worker_log_free);
DEFINE_CLEANUP(struct worker_start, worker_start_free);

/* ---- processes ---- */

/* A channel whose buffer takes the largest message, whatever the machine's default is. */
static int make_channel(int ret[2])
{
        static const int size = 2 * WORKER_MSG_SIZE_MAX;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) < 0)
                return -errno;
        for (unsigned i = 0; i < 2; i++)
                if (setsockopt(ret[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
                        (void)setsockopt(ret[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        return 0;
}

/* config: NULL for a spare. It is sent before anything is started, so that a failure leaves nothing behind.
 */
static int start_process(const struct worker_start *start, const char *name, const struct worker_msg *config,
        const int *fds, struct worker_process *ret)
{
        _cleanup_close_ int ours = -1, theirs = -1, log_end = -1, group = -1;
        _cleanup_(worker_log_free_pointer) struct worker_log *log = NULL;
        bool is_hidden = config && config->config.hide_name;
        const char *const argv[] = {"ublkd-worker", is_hidden ? WORKER_HIDDEN_NAME : name,
                start->confinement.best_effort ? WORKER_BEST_EFFORT : NULL, NULL};
        struct worker_process process;
        int pair[2];
        int r = make_channel(pair);

        if (r < 0)
                return r;
        ours = pair[0];
        theirs = pair[1];
        r = worker_log_new(start->event, &log, &log_end);
        if (r >= 0 && config)
                r = worker_msg_send_fds(ours, config, fds);
        if (start->groups)
                group = worker_groups_open_rest(start->groups);
        if (r >= 0)
                r = proc_spawn(
                        &(struct proc_spawn){
                                .program = start->program,
                                .argv = argv,
                                .fds = {theirs, log_end},
                                .fd_count = 2,
                                .group = group,
                },
                        &process.pid, &process.pidfd);
        if (r < 0)
                return r;
        worker_log_set_pid(log, process.pid);
        if (config)
                worker_log_set_device(log, name);
        process.channel = TAKE_FD(ours);
        process.log = TAKE_PTR(log);
        *ret = process;
        return 0;
}

/* ---- the spare ---- */

/* Looks after the spare when nothing has been for a while. A timer that cannot be set costs a spare. */
static void plan_spare(struct worker_start *start)
{
        uint64_t delay = backoff_delay(start->failures);

        if (sd_event_source_set_time_relative(start->timer, delay > CALM_USEC ? delay : CALM_USEC) >= 0)
                (void)sd_event_source_set_enabled(start->timer, SD_EVENT_ONESHOT);
}

/* What it was executed from is what would be executed now. */
static bool is_current(const struct worker_start *start)
{
        const struct stat *then = &start->spare_file;
        struct stat now;

        return stat(start->program, &now) == 0 && now.st_dev == then->st_dev && now.st_ino == then->st_ino
               && now.st_size == then->st_size && now.st_ctim.tv_sec == then->st_ctim.tv_sec
               && now.st_ctim.tv_nsec == then->st_ctim.tv_nsec;
}

static void drop_spare(struct worker_start *start)
{
        start->state = SPARE_NONE;
        start->spare_death = sd_event_source_disable_unref(start->spare_death);
        start->spare.channel = close_fd(start->spare.channel);
        start->spare.pidfd = close_fd(start->spare.pidfd);
        start->spare.log = worker_log_free(start->spare.log);
}

static void dismiss_spare(struct worker_start *start)
{
        start->state = SPARE_LEAVING;
        start->spare.channel = close_fd(start->spare.channel);
}

static int on_spare_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct worker_start *start = userdata;

        (void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){}, WEXITED | WNOHANG);
        if (start->state == SPARE_WAITS)
                start->failures++; /* not worth a word: the next worker is started without it */
        if (start->groups)
                worker_groups_end(start->groups, start->spare.pid);
        drop_spare(start);
        plan_spare(start);
        return 0;
}

static int start_spare(struct worker_start *start)
{
        char name[WORKER_NAME_MAX + 1]; /* room for the name of any device, to be shown later */
        int r;

        snprintf(name, sizeof(name), "%-*s", WORKER_NAME_MAX, WORKER_SPARE_NAME);
        if (stat(start->program, &start->spare_file) < 0)
                return -errno;
        r = start_process(start, name, NULL, NULL, &start->spare);
        if (r < 0)
                return r;
        start->state = SPARE_WAITS;
        if (start->groups)
                worker_groups_prepare(start->groups, start->spare.pid, start->spare.pidfd);
        r = sd_event_add_io(
                start->event, &start->spare_death, start->spare.pidfd, EPOLLIN, on_spare_death, start);
        if (r >= 0)
                r = sd_event_source_set_priority(start->spare_death, PRIORITY_DEATH);
        if (r < 0)
                drop_spare(start); /* it exits, and the next supervisor reaps it */
        return r;
}

static int on_calm(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_start *start = userdata;

        worker_networks_drop(&start->networks);
        if (start->state == SPARE_WAITS && (start->workers == 0 || !is_current(start)))
                dismiss_spare(start);
        if (start->state == SPARE_NONE && start->workers > 0 && start_spare(start) < 0) {
                start->failures++; /* the next worker has the same trouble, and its device says so */
                plan_spare(start);
        }
        return 0;
}

/* 0; -EPIPE: there is none that can be used; other -errno: CONFIG cannot be sent. */
static int take_spare(struct worker_start *start, const struct worker_msg *config, const int *fds,
        struct worker_process *ret)
{
        int r;

        if (start->state == SPARE_WAITS && !is_current(start))
                dismiss_spare(start);
        if (start->state != SPARE_WAITS)
                return -EPIPE;
        r = worker_msg_send_fds(start->spare.channel, config, fds);
        if (r < 0)
                return r;
        start->failures = 0;
        worker_log_set_device(start->spare.log, config->config.name);
        *ret = start->spare;
        start->spare = (struct worker_process){.pidfd = -1, .channel = -1};
        drop_spare(start);
        return 0;
}

/* ---- what others call ---- */

int worker_start_run(struct worker_start *start, const struct worker_msg *config,
        const int fds[static _CONFIG_FD_MAX], struct worker_process *ret)
{
        /* A preflight shows what a new process can have; the spare may have a wall that none can have any more. */
        bool preflight = config->config.lock == WORKER_LOCK_NEVER;
        int r = preflight ? -EPIPE : take_spare(start, config, fds, ret);

        if (start->groups)
                worker_groups_postpone(start->groups);
        plan_spare(start);
        return r == -EPIPE ? start_process(start, config->config.name, config, fds, ret) : r;
}

void worker_start_count(struct worker_start *start, int change)
{
        start->workers += (unsigned)change;
        plan_spare(start);
}

void worker_start_keep_network(struct worker_start *start, int fd)
{
        worker_networks_keep(&start->networks, fd);
        plan_spare(start);
}

void worker_start_use_groups(struct worker_start *start, struct worker_groups *groups)
{
        start->groups = groups;
}

struct worker_groups *worker_start_groups(const struct worker_start *start)
{
        return start->groups;
}

int worker_start_user(const struct worker_start *start, int number, uint32_t *ret)
{
        const struct worker_confinement *confinement = &start->confinement;

        if (confinement->users > 0 && (uint32_t)number >= confinement->users)
                return -ERANGE;
        *ret = confinement->users > 0 ? confinement->first_user + (uint32_t)number : 0;
        return 0;
}

const char *worker_start_program(const struct worker_start *start)
{
        return start->program;
}

int worker_start_new(sd_event *event, const char *program, const struct worker_confinement *confinement,
        struct worker_start **ret)
{
        _cleanup_(worker_start_free_pointer) struct worker_start *start = calloc(1, sizeof(*start));
        int r;

        if (!start)
                return -ENOMEM;
        *start = (struct worker_start){
                .event = sd_event_ref(event),
                .program = program,
                .confinement = confinement ? *confinement : (struct worker_confinement){},
                .spare = {.pidfd = -1, .channel = -1},
        };
        r = sd_event_add_time(event, &start->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_calm, start);
        if (r >= 0)
                r = sd_event_source_set_priority(start->timer, PRIORITY_SPARE);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(start);
        return 0;
}

struct worker_start *worker_start_free(struct worker_start *start)
{
        if (!start)
                return NULL;
        drop_spare(start);
        worker_networks_drop(&start->networks);
        sd_event_source_disable_unref(start->timer);
        sd_event_unref(start->event);
        free(start);
        return NULL;
}
