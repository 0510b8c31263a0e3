/* SPDX-License-Identifier: MIT */
/* Starts worker processes, and keeps spares.
 *
 * A spare is a worker that does not know yet for which device: it holds its end of a socket pair and nothing
 * else of ours, does not listen, and so cannot be adopted. It leaves when that channel closes, hence never
 * outlives this supervisor. It runs as the worker of a device would at that point: nothing is set for a
 * device before its CONFIG is read.
 *
 * Nothing depends on one. A spare that is dead, or was executed from a file that has been replaced since, is not
 * taken, and if there is no other, a process is started as if there had been none. Spares are started and dismissed on
 * a timer that every start postpones, for ten seconds at most, so mostly not in the first second of a recovery: when many
 * workers die at once, as many of the recoveries take a spare as there were. They are started one after the other, with
 * time between them for what else the loop has to do.
 *
 * Spares that die make the next one wait longer (backoff_delay()). Those that die together are one failure: the next
 * failure is that of a spare which was started later. After a failure one spare is tried, and once a spare has waited
 * for a second, the failures are over. */
#include "ublkd/workers/worker_start.h"

#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/plan/backoff.h"
#include "ublkd/offload/proc_spawn.h"
#include "ublkd/workers/worker_log.h"
#include "ublkd/workers/worker_network.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
        CALM_USEC = 1000 * 1000,
        NEXT_USEC = 100 * 1000, /* from one spare to the next, once all is calm */
        WAIT_MAX_USEC = 10 * 1000 * 1000,
        PRIORITY_DEATH = -10,
        PRIORITY_SPARE = 10, /* whatever else there is to do comes first */
};

enum spare_state {
        SPARE_NONE,
        SPARE_WAITS,   /* for its CONFIG */
        SPARE_LEAVING, /* its channel is closed, and it has not died yet */
};

struct spare {
        struct worker_start *start;
        enum spare_state state;
        struct worker_process process; /* unless SPARE_NONE */
        sd_event_source *death;
        struct group_request *request; /* for a group of its own; NULL: none is under way */
        int group;                     /* its own group, open; -1: it has none, as far as is known */
        struct stat file;              /* the program as it was before the spare was started */
        uint64_t born;                 /* now_of() */
};

struct worker_start {
        sd_event *event;
        const char *program;
        struct worker_confinement confinement;
        struct worker_groups *groups; /* NULL: no control groups */
        unsigned workers;
        sd_event_source *timer;
        struct spare spares[WORKER_SPARES_MAX];
        unsigned wanted;   /* of them; a place is free for the next spare when the last one there has died */
        uint64_t planned;  /* now_of() the first call that `timer` waits for; 0: none */
        unsigned failures; /* to keep a spare, in a row */
        uint64_t failed;   /* now_of() the last of them; 0: never */
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

/* Return the group that a process is born in; < 0: that of ublkd. */
static int open_rest(const struct worker_start *start)
{
        return start->groups ? worker_groups_open_rest(start->groups) : -ENOENT;
}

/* config: NULL for a spare. It is sent before anything is started, so that a failure leaves nothing behind. group: that the
 * process is born in; < 0: that of ublkd. */
static int start_process(const struct worker_start *start, const char *name, const struct worker_msg *config,
        const int *fds, int group, struct worker_process *ret)
{
        _cleanup_close_ int ours = -1, theirs = -1, log_end = -1;
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

/* ---- spares ---- */

/* Return the monotonic time at which the event that is handled now was found, µs. */
static uint64_t now_of(const struct worker_start *start)
{
        uint64_t now = 0;

        (void)sd_event_now(start->event, CLOCK_MONOTONIC, &now);
        return now;
}

/* A timer that cannot be set costs spares. */
static void look_after(struct worker_start *start, uint64_t usec)
{
        if (sd_event_source_set_time_relative(start->timer, usec) >= 0)
                (void)sd_event_source_set_enabled(start->timer, SD_EVENT_ONESHOT);
}

/* Looks after the spares when nothing has been for a while, and after ten seconds in any case: workers of one disk that die
 * again and again keep no spares from others. */
static void plan_spares(struct worker_start *start)
{
        uint64_t now = now_of(start), at = now + CALM_USEC, soonest = now + backoff_delay(start->failures);

        if (start->planned == 0)
                start->planned = now;
        if (at > start->planned + WAIT_MAX_USEC)
                at = start->planned + WAIT_MAX_USEC;
        look_after(start, at > soonest ? at - now : soonest - now);
}

/* Not worth a word: the next worker is started without it, and if it has the same trouble, its device says so. */
static void count_failure(struct worker_start *start, const struct spare *spare)
{
        if (spare->born <= start->failed)
                return;
        start->failures++;
        start->failed = now_of(start);
}

/* Return whether a spare shows that the failures are over: it was started after the last one, and lives. */
static bool has_lasted(const struct spare *spare)
{
        return spare->born > spare->start->failed && now_of(spare->start) - spare->born >= CALM_USEC;
}

/* Return whether a spare was executed from this file. */
static bool is_of(const struct spare *spare, const struct stat *now)
{
        const struct stat *then = &spare->file;

        return now->st_dev == then->st_dev && now->st_ino == then->st_ino && now->st_size == then->st_size
               && now->st_ctim.tv_sec == then->st_ctim.tv_sec
               && now->st_ctim.tv_nsec == then->st_ctim.tv_nsec;
}

static void drop_spare(struct spare *spare)
{
        spare->state = SPARE_NONE;
        spare->death = sd_event_source_disable_unref(spare->death);
        spare->process.channel = close_fd(spare->process.channel);
        spare->process.pidfd = close_fd(spare->process.pidfd);
        spare->process.log = worker_log_free(spare->process.log);
        spare->request = group_request_free(spare->request);
        spare->group = close_fd(spare->group);
}

static void dismiss_spare(struct spare *spare)
{
        spare->state = SPARE_LEAVING;
        spare->process.channel = close_fd(spare->process.channel);
}

static int on_spare_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct spare *spare = userdata;
        struct worker_start *start = spare->start;

        (void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){}, WEXITED | WNOHANG);
        if (spare->state == SPARE_WAITS)
                count_failure(start, spare);
        if (start->groups)
                worker_groups_end(start->groups, spare->process.pid);
        drop_spare(spare);
        plan_spares(start);
        return 0;
}

/* Open its group now, when no recovery waits for that. */
static void on_prepared(void *userdata, const struct group_result *result)
{
        struct spare *spare = userdata;

        spare->request = group_request_free(spare->request);
        if (result->trouble == GROUP_FINE)
                spare->group = worker_groups_open_own(spare->start->groups, spare->process.pid);
}

static int start_spare(struct spare *spare)
{
        struct worker_start *start = spare->start;
        _cleanup_close_ int group = -1;
        char name[WORKER_NAME_MAX + 1]; /* room for the name of any device, to be shown later */
        int r;

        spare->born = now_of(start);
        snprintf(name, sizeof(name), "%-*s", WORKER_NAME_MAX, WORKER_SPARE_NAME);
        if (stat(start->program, &spare->file) < 0)
                return -errno;
        group = open_rest(start);
        r = start_process(start, name, NULL, NULL, group, &spare->process);
        if (r < 0)
                return r;
        spare->state = SPARE_WAITS;
        if (start->groups)
                (void)worker_groups_prepare(start->groups, spare->process.pid, spare->process.pidfd,
                        on_prepared, spare, &spare->request);
        r = sd_event_add_io(
                start->event, &spare->death, spare->process.pidfd, EPOLLIN, on_spare_death, spare);
        if (r >= 0)
                r = sd_event_source_set_priority(spare->death, PRIORITY_DEATH);
        if (r < 0)
                drop_spare(spare); /* it exits, and the next supervisor reaps it */
        return r;
}

/* NULL: there are as many as there should be, or the places of the others are not free yet. */
static struct spare *find_place(struct worker_start *start)
{
        for (unsigned i = 0; start->workers > 0 && i < start->wanted; i++)
                if (start->spares[i].state == SPARE_NONE)
                        return &start->spares[i];
        return NULL;
}

/* Dismiss the spares that no worker needs, or that were executed from another file than would be executed now. */
static void dismiss_useless(struct worker_start *start)
{
        struct stat now;
        bool is_there = stat(start->program, &now) == 0;

        for (unsigned i = 0; i < WORKER_SPARES_MAX; i++) {
                struct spare *spare = &start->spares[i];

                if (spare->state == SPARE_WAITS && (start->workers == 0 || !is_there || !is_of(spare, &now)))
                        dismiss_spare(spare);
        }
}

static int on_calm(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_start *start = userdata;
        struct spare *place;

        start->planned = 0;
        worker_networks_drop(&start->networks);
        dismiss_useless(start);
        for (unsigned i = 0; i < WORKER_SPARES_MAX; i++)
                if (start->spares[i].state == SPARE_WAITS && has_lasted(&start->spares[i]))
                        start->failures = 0;
        place = find_place(start);
        if (place && start_spare(place) < 0) {
                count_failure(start, place);
                plan_spares(start);
        } else if (place && start->failures > 0) {
                look_after(start, CALM_USEC); /* does it last? */
        } else if (find_place(start)) {
                look_after(start, NEXT_USEC);
        }
        return 0;
}

/* Return the spare that has waited longest, and so is ready; NULL: none waits. file: only those that were executed from
 * it; NULL: all. grouped: only those that have a group. */
static struct spare *find_spare(struct worker_start *start, const struct stat *file, bool grouped)
{
        struct spare *found = NULL;

        for (unsigned i = 0; i < WORKER_SPARES_MAX; i++) {
                struct spare *spare = &start->spares[i];

                if (spare->state == SPARE_WAITS && (!file || is_of(spare, file))
                        && (!grouped || spare->group >= 0) && (!found || spare->born < found->born))
                        found = spare;
        }
        return found;
}

/* Return 0, or -EPIPE: it has died, and is not reaped yet; other -errno: CONFIG cannot be sent. */
static int send_config(const struct spare *spare, const struct worker_msg *config, const int *fds)
{
        /* CONFIG can be long: it is not written for a process that is dead. */
        if (poll(&(struct pollfd){.fd = spare->process.pidfd, .events = POLLIN}, 1, 0) > 0)
                return -EPIPE;
        return worker_msg_send_fds(spare->process.channel, config, fds);
}

/* The device has the process from now on. */
static struct worker_process give_spare(struct spare *spare, const char *name)
{
        struct worker_process process = spare->process;

        if (has_lasted(spare))
                spare->start->failures = 0;
        worker_log_set_device(process.log, name);
        spare->process = (struct worker_process){.pidfd = -1, .channel = -1};
        drop_spare(spare);
        return process;
}

/* limits: only a spare that these hold; NULL: any. Return 0; -EPIPE: there is none that can be used; other -errno: CONFIG
 * cannot be sent. */
static int take_spare(struct worker_start *start, const struct worker_msg *config, const int *fds,
        const struct group_limits *limits, struct worker_process *ret)
{
        struct spare *spare;
        struct stat file;
        int r;

        if (!find_spare(start, NULL, limits) || stat(start->program, &file) < 0)
                return -EPIPE;
        while ((spare = find_spare(start, &file, limits))) {
                if (limits && !worker_groups_bound(spare->group, limits))
                        return -EPIPE;
                r = send_config(spare, config, fds);
                if (r == -EPIPE)
                        count_failure(start, spare);
                if (r == -EPIPE || (r < 0 && limits)) /* which are not those of the next device */
                        dismiss_spare(spare);
                if (r >= 0)
                        *ret = give_spare(spare, config->config.name);
                if (r != -EPIPE)
                        return r;
        }
        return -EPIPE;
}

/* ---- what others call ---- */

/* With limits, in this order: a spare that they hold, a process that is born with them, and where neither can be had, what
 * there is: then nothing can hold it to them. */
int worker_start_run(struct worker_start *start, const struct worker_msg *config,
        const int fds[static _CONFIG_FD_MAX], const struct group_limits *limits, struct worker_process *ret)
{
        /* A preflight shows what a new process can have; a spare may have a wall that none can have any more. */
        bool preflight = config->config.lock == WORKER_LOCK_NEVER;
        bool bounded = start->groups && limits && group_limits_bound(limits);
        _cleanup_close_ int group = -1;
        int r = -EPIPE;

        if (bounded && !preflight)
                r = take_spare(start, config, fds, limits, ret);
        if (bounded && r == -EPIPE)
                group = worker_groups_open_start(start->groups, config->config.uid, limits);
        if (group < 0 && r == -EPIPE && !preflight)
                r = take_spare(start, config, fds, NULL, ret);
        if (start->groups)
                worker_groups_postpone(start->groups);
        plan_spares(start);
        if (r != -EPIPE)
                return r;
        if (group < 0)
                group = open_rest(start);
        return start_process(start, config->config.name, config, fds, group, ret);
}

void worker_start_count(struct worker_start *start, int change)
{
        start->workers += (unsigned)change;
        plan_spares(start);
}

void worker_start_keep_network(struct worker_start *start, int fd)
{
        worker_networks_keep(&start->networks, fd);
        plan_spares(start);
}

void worker_start_keep_spares(struct worker_start *start, unsigned count)
{
        assert(count <= WORKER_SPARES_MAX);
        start->wanted = count;
        plan_spares(start);
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
                .wanted = 1,
        };
        for (unsigned i = 0; i < WORKER_SPARES_MAX; i++)
                start->spares[i] = (struct spare){
                        .start = start, .process = {.pidfd = -1, .channel = -1},
                             .group = -1
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
        for (unsigned i = 0; i < WORKER_SPARES_MAX; i++)
                drop_spare(&start->spares[i]);
        worker_networks_drop(&start->networks);
        sd_event_source_disable_unref(start->timer);
        sd_event_unref(start->event);
        free(start);
        return NULL;
}
