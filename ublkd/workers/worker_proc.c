/* SPDX-License-Identifier: MIT */
/* One worker process: how it is started or found again, what it says, how it ends.
 *
 * Two event sources feed one object: the channel (priority -20) and the pidfd (-10), so that what a worker
 * said before it died is read before its death; when the death is seen the channel is emptied first all the
 * same, because both may become ready within one turn of the loop. The callback may free the object, so it is
 * always the last thing that a handler does.
 *
 * A worker that breaks the protocol is killed: it can be replaced without loss, and what it would do next
 * cannot be known. */
#include "ublkd/workers/worker_proc_internal.h"

#include "ublkd/base/clock.h"
#include "ublkd/offload/close_away.h"
#include "ublkd/workers/worker_peer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

enum {
        PRIORITY_MESSAGE = -20,
        PRIORITY_DEATH = -10,
        /* How long a worker may take to exit after it has reported a failure, or closed its channel. */
        LEAVE_GRACE_USEC = 5 * 1000 * 1000,
};

DEFINE_CLEANUP(struct worker_proc, worker_proc_free);

/* ---- the end ---- */

void worker_proc_kill(struct worker_proc *worker)
{
        if (worker->died_at)
                return;
        worker->stage = WORKER_STAGE_LEAVING;
        (void)pidfd_send_signal(worker->pidfd, SIGKILL, NULL, 0); /* ESRCH: it is dead; on_death() follows */
}

/* Kill the worker for a reason that the sentence about its death names. The first reason counts. */
static _printf_(2, 3) void kill_for(struct worker_proc *worker, const char *format, ...)
{
        va_list arguments;

        if (!worker->fault[0]) {
                va_start(arguments, format);
                vsnprintf(worker->fault, sizeof(worker->fault), format, arguments);
                va_end(arguments);
        }
        worker_proc_kill(worker);
}

void worker_proc_refuse(struct worker_proc *worker, const char *fault)
{
        kill_for(worker, "%s", fault);
}

/* Its pidfd is readable, so it is dead. Its status may still be unknown: an adopted one is not our child, and
 * one that is being debugged is first its debugger's. */
static void note_death(struct worker_proc *worker)
{
        siginfo_t info = {};
        bool known = waitid(P_PIDFD, (id_t)worker->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0;

        worker_death_describe(known ? &info : NULL, worker->fault, worker->adopted, &worker->death);
        worker->died_at = clock_usec(CLOCK_MONOTONIC);
        worker->stage = WORKER_STAGE_LEAVING;
}

/* ---- its messages ---- */

static void close_channel(struct worker_proc *worker)
{
        worker->channel_source = sd_event_source_disable_unref(worker->channel_source);
        worker->channel = close_fd(worker->channel);
}

static int on_grace_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        kill_for(userdata, "it did not leave by itself");
        return 0;
}

/* Expect the worker to exit; kill it at once if the timer cannot be armed. */
static void expect_to_leave(struct worker_proc *worker)
{
        worker->stage = WORKER_STAGE_LEAVING;
        if (!worker->grace_source
                && sd_event_add_time_relative(worker->event, &worker->grace_source, CLOCK_MONOTONIC,
                           LEAVE_GRACE_USEC, 0, on_grace_over, worker)
                           < 0)
                worker_proc_kill(worker);
}

/* `stage` may only rise; it rises past OPENING only once the parameters are known. */
static void raise_stage(struct worker_proc *worker, enum worker_stage stage)
{
        if (stage > worker->stage)
                worker->stage = stage;
}

/* Return whether the worker of this ublkd has sent HELLO before it read CONFIG: it has no uid yet, and its
 * epoch is known. */
static bool is_unconfigured(const struct worker_proc *worker, const struct worker_msg *hello)
{
        return !worker->adopted && hello->hello.uid[0] == '\0';
}

static void accept_hello(struct worker_proc *worker, const struct worker_msg *msg)
{
        worker->greeted = true;
        snprintf(worker->version, sizeof(worker->version), "%s", msg->hello.version);
        worker->number = msg->hello.number;
        worker->claimed = msg->hello.stage;
        if (worker->adopted) {
                worker->epoch = msg->hello.epoch;
                worker->restart = msg->hello.restart;
                if (msg->hello.started_at > 0)
                        worker->started_at = msg->hello.started_at;
        }
        if (worker->claimed == WORKER_STAGE_LEAVING)
                worker->stage = WORKER_STAGE_LEAVING;
}

static void on_hello(struct worker_proc *worker, const struct worker_msg *msg)
{
        bool unconfigured = is_unconfigured(worker, msg);

        if (worker->greeted)
                kill_for(worker, "it said HELLO twice");
        else if (msg->hello.protocol != WORKER_PROTOCOL)
                kill_for(worker, "it speaks protocol %d, not %d", msg->hello.protocol, WORKER_PROTOCOL);
        else if (!unconfigured && strcmp(msg->hello.uid, worker->uid) != 0)
                kill_for(worker, "it serves another device");
        else if (msg->hello.pid != worker->pid)
                kill_for(worker, "it says it is another process");
        else if (!worker->adopted && !unconfigured && msg->hello.epoch != worker->epoch)
                kill_for(worker, "it serves epoch %u, not %u", msg->hello.epoch, worker->epoch);
        else if (!worker->adopted && (msg->hello.stage != WORKER_STAGE_OPENING || msg->hello.number != -1))
                kill_for(worker, "it claims to serve before GO");
        else
                accept_hello(worker, msg);
}

static void on_backing(struct worker_proc *worker, const struct worker_msg *msg, int *fd)
{
        if (worker->store.known || worker->params.type == WORKER_MSG_PARAMS)
                kill_for(worker, "it sent BACKING at the wrong time");
        else
                worker_store_read(msg, TAKE_FD(*fd), &worker->store);
}

/* Takes over the message. */
static void on_params(struct worker_proc *worker, struct worker_msg *msg)
{
        const char *fault;

        if (worker->params.type == WORKER_MSG_PARAMS) {
                kill_for(worker, "it sent PARAMS twice");
                return;
        }
        fault = worker_params_fault(&msg->params);
        if (fault) {
                kill_for(worker, "%s", fault);
                return;
        }
        worker->params = *msg;
        *msg = (struct worker_msg){.type = WORKER_MSG_LIVE};
        raise_stage(worker, WORKER_STAGE_OPEN);
        raise_stage(worker, worker->claimed);
}

static void on_ready(struct worker_proc *worker)
{
        if (worker->stage < WORKER_STAGE_FETCHING)
                kill_for(worker, "it said READY before GO");
        else
                raise_stage(worker, WORKER_STAGE_READY);
}

static void on_failed(struct worker_proc *worker, const struct worker_msg *msg)
{
        (void)problem_list_append(
                &worker->problems, &msg->failed.problems); /* on ENOMEM its death shows it */
        worker->holder = msg->failed.holder;
        expect_to_leave(worker);
}

static void on_grown(struct worker_proc *worker, const struct worker_msg *msg)
{
        struct disk_params *params = &worker->params.params;
        const char *fault = worker_growth_answer(&worker->growth, worker_proc_params(worker), msg);

        if (fault) {
                kill_for(worker, "%s", fault);
                return;
        }
        params->size = msg->grown.size;
        params->size_max = msg->grown.size_max;
        backing_claims_resize(&params->claims, params->size);
        if (worker->growth.asked > 0) /* the answer to the last GROW counts */
                return;
        problem_list_clear(&worker->refusal);
        (void)problem_list_append(&worker->refusal, &msg->grown.problems); /* on ENOMEM ublkd asks again */
}

/* Keep the notice until the device takes it; the list counts those that are too many. */
static void on_notice(struct worker_proc *worker, const struct worker_msg *msg)
{
        (void)problem_list_append(
                &worker->notices, &msg->notice); /* on ENOMEM the log of the worker has it */
}

/* fd: the descriptor beside the message, or -1; set to -1 if it is taken over. */
static void handle_message(struct worker_proc *worker, struct worker_msg *msg, int *fd)
{
        if (!worker->greeted && msg->type != WORKER_MSG_HELLO) {
                kill_for(worker, "it did not say HELLO first");
                return;
        }
        switch (msg->type) {
        case WORKER_MSG_HELLO:
                on_hello(worker, msg);
                break;
        case WORKER_MSG_PARAMS:
                on_params(worker, msg);
                break;
        case WORKER_MSG_READY:
                on_ready(worker);
                break;
        case WORKER_MSG_FAILED:
                on_failed(worker, msg);
                break;
        case WORKER_MSG_GROWN:
                on_grown(worker, msg);
                break;
        case WORKER_MSG_BACKING:
                on_backing(worker, msg, fd);
                break;
        case WORKER_MSG_NOTICE:
                on_notice(worker, msg);
                break;
        case WORKER_MSG_NEWS: /* its device gets a turn, which reads the region */
                break;
        default:
                kill_for(worker, "it sent a message that only ublkd may send");
        }
}

static bool expects_store(const struct worker_proc *worker)
{
        return !worker->store.known && worker->params.type != WORKER_MSG_PARAMS;
}

/* Receive and handle one message. Return 1: there may be more; 0: none for now; -errno: the channel is
 * broken. */
static int receive_next(struct worker_proc *worker)
{
        _cleanup_worker_msg_ struct worker_msg msg = {};
        int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1}, r;

        /* Take descriptors only while the store is unknown: the kernel drops those of later messages. */
        r = expects_store(worker) ? worker_msg_receive_fds(worker->channel, &msg, fds)
                                  : worker_msg_receive(worker->channel, &msg);
        if (r == -EAGAIN)
                return 0;
        if (r == -EBADMSG)
                kill_for(worker, "it sent an invalid message");
        if (r <= 0)
                return r < 0 ? r : -EPIPE;
        handle_message(worker, &msg, &fds[0]);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                close_away(fds[i]);
        return worker->fault[0] ? -EBADMSG : 1; /* read nothing more from a worker that will be killed */
}

/* A HELLO of a worker that this ublkd has started needs no turn: PARAMS or FAILED follows. */
static bool is_news(const struct worker_proc *worker, bool was_greeted, enum worker_stage before)
{
        return worker->stage != before || worker->adopted || was_greeted || worker->notices.count > 0;
}

static int on_message(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;
        enum worker_stage before = worker->stage;
        bool was_greeted = worker->greeted;
        int r = receive_next(worker);

        if (r < 0) {
                close_channel(worker);
                if (worker->stage != WORKER_STAGE_SERVING) /* a serving worker needs no further messages */
                        expect_to_leave(worker);
        }
        if (r > 0 ? is_news(worker, was_greeted, before) : worker->stage != before)
                worker->changed(worker->userdata, worker); /* may free it */
        return 0;
}

static int on_death(sd_event_source *source, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct worker_proc *worker = userdata;

        while (worker->channel >= 0 && receive_next(worker) > 0)
                continue;
        note_death(worker);
        close_channel(worker);
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        worker->grace_source = sd_event_source_disable_unref(worker->grace_source);
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
                .channel = -1,
                .number = -1,
                .params = {.type = WORKER_MSG_LIVE},
                .store = {.fd = -1},
        };
        worker_start_count(starter, 1);
        if (!worker->name || !worker->uid) {
                worker_proc_free(worker);
                return -ENOMEM;
        }
        *ret = worker;
        return 0;
}

static int watch(struct worker_proc *worker)
{
        int r = sd_event_add_io(
                worker->event, &worker->channel_source, worker->channel, EPOLLIN, on_message, worker);

        if (r >= 0)
                r = sd_event_source_set_priority(worker->channel_source, PRIORITY_MESSAGE);
        if (r >= 0)
                r = sd_event_add_io(
                        worker->event, &worker->pidfd_source, worker->pidfd, EPOLLIN, on_death, worker);
        if (r >= 0)
                r = sd_event_source_set_priority(worker->pidfd_source, PRIORITY_DEATH);
        return r < 0 ? r : 0;
}

static int start(struct worker_proc *worker, const struct worker_msg *config, int store)
{
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
        r = worker_start_run(worker->starter, config,
                (const int[]){[CONFIG_FD_LISTENER] = listener,
                        [CONFIG_FD_REGION] = region,
                        [CONFIG_FD_STORE] = store},
                &process);
        if (r < 0) {
                (void)runtime_dir_remove_worker(worker->dir, worker->uid);
                return r;
        }
        worker->pid = process.pid;
        worker->pidfd = process.pidfd;
        worker->channel = process.channel;
        return 0;
}

int worker_proc_spawn(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const struct worker_msg *config, int store, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret)
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
        worker->started_at = msg.config.started_at;
        r = start(worker, &msg, store);
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

int worker_proc_adopt(sd_event *event, struct runtime_dir *dir, struct worker_start *starter,
        const char *name, const char *uid, worker_proc_changed changed, void *userdata,
        struct worker_proc **ret)
{
        _cleanup_(worker_proc_free_pointer) struct worker_proc *worker = NULL;
        int r = new_worker(event, dir, starter, name, uid, changed, userdata, &worker);

        if (r < 0)
                return r;
        worker->adopted = true;
        worker->channel = runtime_dir_connect_worker(dir, uid);
        if (worker->channel == -ENOENT)
                (void)runtime_dir_remove_worker(dir, uid); /* it died while no ublkd ran */
        if (worker->channel < 0)
                return worker->channel;
        worker->pidfd = worker_peer_find(worker->channel, &worker->pid);
        if (worker->pidfd < 0)
                return worker->pidfd;
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
        sd_event_source_disable_unref(worker->channel_source);
        sd_event_source_disable_unref(worker->pidfd_source);
        if (worker->pidfd >= 0 && !worker->died_at)
                (void)waitid(P_PIDFD, (id_t)worker->pidfd, &(siginfo_t){},
                        WEXITED | WNOHANG); /* if it just died */
        close_fd(worker->channel);
        close_fd(worker->pidfd);
        worker_start_count(worker->starter, -1);
        worker_msg_clear(&worker->params);
        problem_list_clear(&worker->problems);
        problem_list_clear(&worker->refusal);
        problem_list_clear(&worker->notices);
        close_away(worker->store.fd);
        sd_event_unref(worker->event);
        free(worker->name);
        free(worker->uid);
        free(worker);
        return NULL;
}

/* ---- orders ---- */

/* stage: that the worker reaches with this message. */
static int tell(struct worker_proc *worker, const struct worker_msg *msg, enum worker_stage stage)
{
        int r = worker->channel < 0 ? -EPIPE : worker_msg_send(worker->channel, msg);

        if (r >= 0)
                raise_stage(worker, stage);
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
                r = tell(
                        worker, &(struct worker_msg){.type = WORKER_MSG_GROW, .grow = {size}}, worker->stage);
        if (r >= 0)
                worker->growth = growth;
        return r;
}

void worker_proc_forget_refusal(struct worker_proc *worker)
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
                r = tell(worker, &go, WORKER_STAGE_FETCHING);
        if (r >= 0)
                worker->number = number;
        return r;
}

int worker_proc_live(struct worker_proc *worker)
{
        return tell(worker, &(struct worker_msg){.type = WORKER_MSG_LIVE}, WORKER_STAGE_SERVING);
}
