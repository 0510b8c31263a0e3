/* SPDX-License-Identifier: MIT */
/* One worker process: how it is started or found again, who receives its messages, how its end is seen.
 *
 * Two event sources feed one object: the channel (priority -20) and the pidfd (-10), so that what a worker
 * sent before it died is read before its death; when the death is seen the channel is emptied first all the
 * same, because both may become ready within one turn of the loop. The callback may free the object, so it is
 * always the last thing that a handler does.
 *
 * Whatever a worker sends costs the loop a bounded share: its channel is read at a limited rate, and NEWS gives its
 * device a turn ten times in a second at most. The rules of its messages end a worker that sends on. */
#include "ublkd/workers/worker_proc_internal.h"

#include "ublkd/base/clock.h"
#include "ublkd/offload/close_away.h"
#include "ublkd/workers/worker_mark.h"
#include "ublkd/workers/worker_peer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
        PRIORITY_MESSAGE = -20,
        PRIORITY_DEATH = -10,
        /* A worker that starts or is adopted sends five messages, and NEWS a hundred times in a second at most. */
        READ_INTERVAL_USEC = 100 * 1000,
        READ_BURST = 30,
        NEWS_PAUSE_USEC = 100 * 1000,
        /* That a socket keeps, whatever its buffer: of a dead worker all are read, because FAILED comes last. */
        MESSAGES_KEPT_MAX = 4096,
        MESSAGE_COST = 768, /* bytes, of the buffer of a socket, for the shortest message (SKB_TRUESIZE()) */
        MESSAGES_MARGIN = 10, /* percent */
};

DEFINE_CLEANUP(struct worker_proc, worker_proc_free);

/* Its pidfd is readable, so it is dead. Its status may still be unknown: an adopted one is not our child, and
 * one that is being debugged is first its debugger's. */
static void note_death(struct worker_proc *worker)
{
        siginfo_t info = {};
        bool known = waitid(P_PIDFD, (id_t)worker->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0;

        worker_death_describe(
                known ? &info : NULL, worker->fault, worker->fault_words, worker->adopted, &worker->death);
        worker->died_at = clock_usec(CLOCK_MONOTONIC);
        worker->stage = WORKER_STAGE_LEAVING;
}

/* ---- its messages ---- */

static void close_channel(struct worker_proc *worker)
{
        worker->channel_source = sd_event_source_disable_unref(worker->channel_source);
        worker->channel = close_fd(worker->channel);
}

static int on_pause_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;

        worker->news_at = monotonic_now();
        worker->changed(worker->userdata, worker); /* may free it */
        return 0;
}

static int arm_pause(struct worker_proc *worker, uint64_t at)
{
        int r;

        if (!worker->news_source)
                return sd_event_add_time(
                        worker->event, &worker->news_source, CLOCK_MONOTONIC, at, 1, on_pause_over, worker);
        r = sd_event_source_set_time(worker->news_source, at);
        return r < 0 ? r : sd_event_source_set_enabled(worker->news_source, SD_EVENT_ONESHOT);
}

/* NEWS: return whether to report it now. Else it is reported when the pause after the last one is over. */
static bool is_due(struct worker_proc *worker)
{
        uint64_t now = monotonic_now(), next = worker->news_at + NEWS_PAUSE_USEC;

        worker->has_news = false;
        if (now < next && arm_pause(worker, next) >= 0)
                return false;
        worker->news_at = now;
        return true;
}

/* A HELLO of a worker that this ublkd has started needs no turn: PARAMS or FAILED follows. */
static bool is_reported(struct worker_proc *worker, bool was_greeted, enum worker_stage before)
{
        if (worker->has_news)
                return is_due(worker);
        return worker->stage != before || worker->adopted || was_greeted;
}

static int on_message(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;
        enum worker_stage before = worker->stage;
        bool was_greeted = worker->greeted;
        int r = worker_proc_receive(worker);

        if (r < 0) {
                close_channel(worker);
                worker_proc_lost_channel(worker);
        }
        if (r > 0 ? is_reported(worker, was_greeted, before) : worker->stage != before)
                worker->changed(worker->userdata, worker); /* may free it */
        return 0;
}

static int on_death(sd_event_source *source, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;

        for (unsigned i = 0; i < MESSAGES_KEPT_MAX; i++)
                if (worker->channel < 0 || worker_proc_receive(worker) <= 0)
                        break;
        note_death(worker);
        close_channel(worker);
        worker->log = worker_log_free(worker->log);
        worker_start_keep_network(worker->starter, TAKE_FD(worker->network));
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        worker->grace_source = sd_event_source_disable_unref(worker->grace_source);
        worker->closed_source = sd_event_source_disable_unref(worker->closed_source);
        worker->news_source = sd_event_source_disable_unref(worker->news_source);
        (void)runtime_dir_remove_worker(worker->dir, worker->uid); /* a stale file only costs a connect() */
        worker->changed(worker->userdata, worker);                 /* may free it */
        return 0;
}

/* ---- the beginning ---- */

static int new_worker(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const char *name, const char *uid, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret)
{
        struct worker_proc *worker = calloc(1, sizeof(*worker));

        if (!worker)
                return -ENOMEM;
        *worker = (struct worker_proc){
                .event = sd_event_ref(event),
                .dir = dir,
                .starter = starter,
                .name = strdup(name),
                .uid = strdup(uid),
                .changed = changed,
                .userdata = userdata,
                .pidfd = -1,
                .network = -1,
                .channel = -1,
                .number = -1,
                .params = {.type = WORKER_MSG_LIVE},
        };
        worker_start_count(starter, 1);
        if (!worker->name || !worker->uid) {
                worker_proc_free(worker);
                return -ENOMEM;
        }
        *ret = worker;
        return 0;
}

/* The kernel gives both ends of a connection the same buffer, and so does worker_start.c. */
static unsigned messages_kept(int channel)
{
        int size = 0;
        unsigned count;

        if (getsockopt(channel, SOL_SOCKET, SO_SNDBUF, &size, &(socklen_t){sizeof(size)}) < 0 || size < 0)
                return 0;
        count = (unsigned)size / MESSAGE_COST * (100 + MESSAGES_MARGIN) / 100;
        return count < MESSAGES_KEPT_MAX ? count : MESSAGES_KEPT_MAX;
}

static int watch_channel(struct worker_proc *worker)
{
        int r;

        if (worker->channel < 0) /* it is unreachable */
                return 0;
        worker->messages.kept = messages_kept(worker->channel);
        r = sd_event_add_io(
                worker->event, &worker->channel_source, worker->channel, EPOLLIN, on_message, worker);
        if (r >= 0)
                r = sd_event_source_set_priority(worker->channel_source, PRIORITY_MESSAGE);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(worker->channel_source, READ_INTERVAL_USEC, READ_BURST);
        return r;
}

static int watch(struct worker_proc *worker)
{
        int r = watch_channel(worker);

        if (r >= 0)
                r = sd_event_add_io(
                        worker->event, &worker->pidfd_source, worker->pidfd, EPOLLIN, on_death, worker);
        if (r >= 0)
                r = sd_event_source_set_priority(worker->pidfd_source, PRIORITY_DEATH);
        return r < 0 ? r : 0;
}

static int start(struct worker_proc *worker, const struct worker_msg *config, const int *stores,
        const struct group_limits *limits)
{
        int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1};
        _cleanup_close_ int listener = -1, region = -1;
        struct worker_process process;
        int r;

        region = runtime_dir_ensure_region(worker->dir, worker->uid,
                &(struct device_region_key){.queues = config->config.queues, .epoch = config->config.epoch});
        if (region < 0)
                return region;
        listener = runtime_dir_bind_worker(worker->dir, worker->uid);
        if (listener < 0)
                return listener;
        fds[CONFIG_FD_LISTENER] = listener;
        fds[CONFIG_FD_REGION] = region;
        if (stores)
                memcpy(&fds[CONFIG_FD_STORE], stores, STORE_LIST_MAX * sizeof(stores[0]));
        r = worker_start_run(worker->starter, config, fds, limits, &process);
        if (r < 0) {
                (void)runtime_dir_remove_worker(worker->dir, worker->uid);
                return r;
        }
        worker->pid = process.pid;
        worker->pidfd = process.pidfd;
        worker->channel = process.channel;
        worker->log = process.log;
        (void)worker_mark_write(
                worker->dir, worker->uid, worker->pid, worker->pidfd); /* as in find_by_socket() */
        return 0;
}

int worker_proc_spawn(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const struct worker_msg *config, const int *stores, const struct group_limits *limits,
        worker_proc_changed changed, void *userdata, struct worker_proc **ret)
{
        _cleanup_(worker_proc_free_pointer) struct worker_proc *worker = NULL;
        struct worker_msg msg = *config; /* its strings are borrowed */
        int r = new_worker(
                event, dir, starter, config->config.name, config->config.uid, changed, userdata, &worker);

        if (r < 0)
                return r;
        msg.config.started_at = clock_usec(CLOCK_REALTIME);
        worker->epoch = msg.config.epoch;
        worker->restart = msg.config.restart;
        worker->listed = msg.config.stores.count;
        for (unsigned i = 0; i < worker->listed; i++)
                worker->lacks_store = worker->lacks_store || !msg.config.stores.items[i].has_fd;
        worker->started_at = msg.config.started_at;
        r = start(worker, &msg, stores, limits);
        if (r < 0)
                return r;
        r = watch(worker);
        if (r < 0) {
                worker_proc_kill(worker);
                return r;
        }
        *ret = TAKE_PTR(worker);
        return 0;
}

/* Whether the process that listens at the socket is the worker, as far as is known: a worker that was taken over could have
 * left the socket to a process that it has forked. An older ublkd wrote no note. */
static bool may_be_worker(struct worker_proc *worker)
{
        struct worker_groups *groups = worker_start_groups(worker->starter);

        return worker_mark_compare(worker->dir, worker->uid, worker->pid, worker->pidfd) != 0
               || (groups && worker_groups_has(groups, worker->pid));
}

static int find_by_socket(struct worker_proc *worker)
{
        worker->pidfd = worker_peer_find(worker->channel, &worker->pid);
        if (worker->pidfd < 0)
                return worker->pidfd;
        if (!may_be_worker(worker)) {
                worker->pidfd = close_fd(worker->pidfd);
                return -ENOENT;
        }
        /* On failure a worker that closes its socket is not found by the next ublkd. */
        (void)worker_mark_write(worker->dir, worker->uid, worker->pid, worker->pidfd);
        return 0;
}

static int find_by_mark(struct worker_proc *worker)
{
        worker->channel = close_fd(worker->channel);
        worker->pidfd = worker_mark_find(
                worker->dir, worker_start_groups(worker->starter), worker->uid, &worker->pid);
        worker->unreachable = worker->pidfd >= 0;
        if (worker->pidfd != -ENOENT)
                return worker->pidfd;
        (void)runtime_dir_remove_worker(worker->dir, worker->uid); /* it died while no ublkd ran */
        return -ENOENT;
}

/* A worker cannot remove the name of its socket. Where the name is missing, it was removed on the host, and the worker
 * may serve well: it is not looked for. */
static int find_worker(struct worker_proc *worker)
{
        int r;

        worker->channel = runtime_dir_connect_worker(worker->dir, worker->uid);
        if (worker->channel == -ECONNREFUSED)
                return find_by_mark(worker);
        r = worker->channel < 0 ? worker->channel : find_by_socket(worker);
        return worker->channel >= 0 && r == -ENOENT ? find_by_mark(worker) : r;
}

int worker_proc_adopt(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const char *name, const char *uid, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret)
{
        _cleanup_(worker_proc_free_pointer) struct worker_proc *worker = NULL;
        int r = new_worker(event, dir, starter, name, uid, changed, userdata, &worker);

        if (r < 0)
                return r;
        worker->adopted = true;
        r = find_worker(worker);
        if (r >= 0)
                r = watch(worker);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(worker);
        return 0;
}

struct worker_proc *worker_proc_free(struct worker_proc *worker)
{
        if (!worker)
                return NULL;
        sd_event_source_disable_unref(worker->grace_source);
        sd_event_source_disable_unref(worker->closed_source);
        sd_event_source_disable_unref(worker->news_source);
        sd_event_source_disable_unref(worker->channel_source);
        sd_event_source_disable_unref(worker->pidfd_source);
        if (worker->pidfd >= 0 && !worker->died_at)
                (void)waitid(P_PIDFD, (id_t)worker->pidfd, &(siginfo_t){},
                        WEXITED | WNOHANG); /* if it just died */
        worker_log_free(worker->log);
        close_fd(worker->channel);
        close_fd(worker->network);
        close_fd(worker->pidfd);
        worker_start_count(worker->starter, -1);
        worker_msg_clear(&worker->params);
        problem_list_clear(&worker->problems);
        problem_list_clear(&worker->refusal);
        problem_list_clear(&worker->notices);
        worker_stores_clear(&worker->stores);
        sd_event_unref(worker->event);
        free(worker->name);
        free(worker->uid);
        free(worker);
        return NULL;
}

/* ---- orders ---- */

/* stage: that the worker reaches with this message. */
static int send_and_note(struct worker_proc *worker, const struct worker_msg *msg, enum worker_stage stage)
{
        int r = worker->channel < 0 ? -EPIPE : worker_msg_send(worker->channel, msg);

        if (r >= 0)
                worker_proc_raise_stage(worker, stage);
        return r;
}

int worker_proc_grow(struct worker_proc *worker, uint64_t size)
{
        const struct disk_params *params = worker_proc_params(worker);
        struct worker_growth growth = worker->growth;
        int r;

        if (!params || params->size_max == 0)
                return -EOPNOTSUPP;
        r = worker_growth_ask(&growth, params, size);
        if (r >= 0)
                r = send_and_note(
                        worker, &(struct worker_msg){.type = WORKER_MSG_GROW, .grow = {size}}, worker->stage);
        if (r >= 0)
                worker->growth = growth;
        return r;
}

int worker_proc_leave(struct worker_proc *worker)
{
        if (!worker->leaves)
                return -EOPNOTSUPP;
        return send_and_note(worker, &(struct worker_msg){.type = WORKER_MSG_LEAVE}, WORKER_STAGE_LEAVING);
}

int worker_proc_act(struct worker_proc *worker, uint64_t id, const char *verb, const char *arguments)
{
        if (!worker->acts)
                return -EOPNOTSUPP;
        return send_and_note(worker,
                &(struct worker_msg){
                        .type = WORKER_MSG_ACTION,
                        .action = {.id = id, .verb = (char *)verb, .arguments = (char *)arguments}
        },
                worker->stage);
}

void worker_proc_drop_refusal(struct worker_proc *worker)
{
        problem_list_clear(&worker->refusal);
}

const struct problem_list *worker_proc_refusal(const struct worker_proc *worker)
{
        return &worker->refusal;
}

int worker_proc_go(struct worker_proc *worker, int number, const struct data_route *route, const char *cpus)
{
        struct worker_msg go = {
                .type = WORKER_MSG_GO, .go = {.number = number, .route = *route, .queue_cpus = (char *)cpus}
        };
        int r = worker_start_user(worker->starter, number, &go.go.user);

        if (r >= 0)
                r = send_and_note(worker, &go, WORKER_STAGE_FETCHING);
        if (r >= 0)
                worker->number = number;
        return r;
}

int worker_proc_live(struct worker_proc *worker)
{
        return send_and_note(worker, &(struct worker_msg){.type = WORKER_MSG_LIVE}, WORKER_STAGE_SERVING);
}
