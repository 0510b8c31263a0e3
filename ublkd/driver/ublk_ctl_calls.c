/* SPDX-License-Identifier: MIT */
/* Calls in flight, and the helpers that carry them.
 *
 * A helper is ACTIVE (one at most: it gets the new calls), RETIRED (one of its calls passed its deadline; it
 * is kept while others of its calls may still be answered), or DYING (killed, not dead yet; a process that
 * hangs in the driver may stay so for ever, which costs a slot).
 *
 * So that one device costs one slot, however often it is tried: what was given up and could still take effect
 * is remembered with its helper, and until that is dead no other command that changes the device is sent. So
 * that many such devices cost the others nothing: the helper in the last slot is not given up because a
 * command hangs, but only when it answers nothing at all. Without any slot, new calls fail at once.
 *
 * Finished calls are delivered one by one from an event source of their own, so that a callback may do what
 * it likes, even free everything. */
#include "ublkd/driver/ublk_ctl_calls.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/offload/proc_spawn.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
        PRIORITY_ANSWER = -10,
        REPLIES_PER_TURN = 64,
        GOODBYE_MSEC = 1000, /* how long the end of ublkd may wait for helpers that were killed */
        DEADLINE_ACCURACY_USEC = 10 * 1000,
};

TAILQ_HEAD(call_list, ctl_call);

/* What is left of a call that was given up. */
struct given_up {
        LIST_ENTRY(given_up) link;
        uint64_t sequence;
        uint32_t number;
};

enum helper_state { HELPER_NONE, HELPER_ACTIVE, HELPER_RETIRED, HELPER_DYING, _HELPER_STATE_MAX };

struct ctl_helper {
        struct ctl_calls *calls;
        enum helper_state state;
        pid_t pid;
        int pidfd, channel;
        sd_event_source *channel_source, *pidfd_source;
        struct call_list waiting, sent;
        LIST_HEAD(, given_up) given_up;
        bool guards;     /* it has greeted so */
        unsigned misses; /* deadlines that have passed since it answered anything */
};

struct ctl_calls {
        sd_event *event;
        char *helper_path;
        const struct ctl_calls_handlers *handlers;
        void *owner;
        uint64_t sequence;
        struct ctl_helper helpers[CTL_RETIRED_MAX + 1];
        struct call_list finished;
        sd_event_source *delivery;
};

DEFINE_CLEANUP(struct ctl_calls, ctl_calls_free);

/* ---- calls ---- */

static void call_unlink(struct ctl_call *call)
{
        switch (call->state) {
        case CTL_CALL_WAITING:
                TAILQ_REMOVE(&call->helper->waiting, call, link);
                break;
        case CTL_CALL_SENT:
                TAILQ_REMOVE(&call->helper->sent, call, link);
                break;
        case CTL_CALL_FINISHED:
                TAILQ_REMOVE(&call->calls->finished, call, link);
                break;
        default:
                break;
        }
        call->state = CTL_CALL_NEW;
}

static void call_free(struct ctl_call *call)
{
        call_unlink(call);
        sd_event_source_disable_unref(call->deadline);
        free(call);
}

static void helper_kill_if_useless(struct ctl_helper *helper);

/* Hands the call to the delivery source. `answer` may be NULL. */
static void call_finish(struct ctl_call *call, int result, const union ctl_payload *answer)
{
        struct ctl_calls *calls = call->calls;
        struct ctl_helper *helper = call->helper;

        if (call->cancelled)
                call_free(call);
        else {
                call_unlink(call);
                call->deadline = sd_event_source_disable_unref(call->deadline);
                call->result = result;
                if (answer)
                        call->answer = *answer;
                call->helper = NULL;
                call->state = CTL_CALL_FINISHED;
                TAILQ_INSERT_TAIL(&calls->finished, call, link);
                (void)sd_event_source_set_enabled(calls->delivery, SD_EVENT_ON);
        }
        if (helper)
                helper_kill_if_useless(helper);
}

static int on_delivery(sd_event_source *source, void *userdata)
{
        struct ctl_calls *calls = userdata;
        struct ctl_call *call = TAILQ_FIRST(&calls->finished);

        if (!call)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        call_unlink(call);
        calls->handlers->deliver(calls->owner, call); /* may free calls */
        return 0;
}

/* ---- calls that were given up ---- */

static bool has_given_up(const struct ctl_calls *calls, uint32_t number)
{
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++) {
                const struct given_up *given_up;

                LIST_FOREACH (given_up, &calls->helpers[i].given_up, link)
                        if (given_up->number == number)
                                return true;
        }
        return false;
}

/* On ENOMEM it is not remembered, which may cost another helper. */
static void give_up(struct ctl_helper *helper, const struct ctl_call *call)
{
        struct given_up *given_up = call->changes ? malloc(sizeof(*given_up)) : NULL;

        if (!given_up)
                return;
        *given_up = (struct given_up){.sequence = call->request.sequence, .number = call->request.number};
        LIST_INSERT_HEAD(&helper->given_up, given_up, link);
}

static void given_up_release(struct ctl_helper *helper, struct given_up *given_up)
{
        uint32_t number = given_up->number;

        LIST_REMOVE(given_up, link);
        free(given_up);
        helper->calls->handlers->released(helper->calls->owner, number);
}

/* An answer that no caller waits for any more. */
static void on_late_reply(struct ctl_helper *helper, uint64_t sequence)
{
        struct given_up *given_up;

        LIST_FOREACH (given_up, &helper->given_up, link)
                if (given_up->sequence == sequence) {
                        given_up_release(helper, given_up);
                        return;
                }
}

static void given_up_drop(struct ctl_helper *helper)
{
        struct given_up *given_up;

        while ((given_up = LIST_FIRST(&helper->given_up))) {
                LIST_REMOVE(given_up, link);
                free(given_up);
        }
}

/* ---- helpers ---- */

/* Nothing of it is kept but the pidfd, until it is seen dead. */
static void helper_kill(struct ctl_helper *helper)
{
        helper->state = HELPER_DYING;
        helper->channel_source = sd_event_source_disable_unref(helper->channel_source);
        helper->channel = close_fd(helper->channel);
        (void)pidfd_send_signal(helper->pidfd, SIGKILL, NULL, 0);
}

static void helper_kill_if_useless(struct ctl_helper *helper)
{
        if (helper->state == HELPER_RETIRED && TAILQ_EMPTY(&helper->waiting) && TAILQ_EMPTY(&helper->sent))
                helper_kill(helper);
}

/* Its channel broke, or it died: the state of its commands is unknown. */
static void helper_lost(struct ctl_helper *helper)
{
        struct ctl_call *call;

        if (helper->state == HELPER_DYING)
                return;
        helper->state = HELPER_ACTIVE; /* so that the last of its calls does not kill it within the loop */
        while ((call = TAILQ_FIRST(&helper->sent)) || (call = TAILQ_FIRST(&helper->waiting)))
                call_finish(call, -ECONNRESET, NULL);
        helper_kill(helper);
        helper->calls->handlers->greeted(helper->calls->owner, NULL);
}

static void helper_release(struct ctl_helper *helper)
{
        given_up_drop(helper);
        sd_event_source_disable_unref(helper->channel_source);
        sd_event_source_disable_unref(helper->pidfd_source);
        close_fd(helper->channel);
        close_fd(helper->pidfd);
        *helper = (struct ctl_helper){.calls = helper->calls, .pidfd = -1, .channel = -1};
        TAILQ_INIT(&helper->waiting);
        TAILQ_INIT(&helper->sent);
}

/* Its pidfd is readable, so it is dead, whether it can be reaped now or a debugger still holds it. */
static int on_helper_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct ctl_helper *helper = userdata;
        struct given_up *given_up;

        (void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){}, WEXITED | WNOHANG);
        helper_lost(helper);
        while ((given_up = LIST_FIRST(&helper->given_up)))
                given_up_release(helper, given_up);
        helper_release(helper);
        return 0;
}

/* 0: nothing more fits for now, or nothing is left; -errno: the channel is broken. */
static int helper_send_waiting(struct ctl_helper *helper)
{
        struct ctl_call *call;

        while ((call = TAILQ_FIRST(&helper->waiting))) {
                if (send(helper->channel, &call->request, sizeof(call->request), MSG_DONTWAIT | MSG_NOSIGNAL)
                        < 0)
                        return errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
                call_unlink(call);
                call->state = CTL_CALL_SENT;
                TAILQ_INSERT_TAIL(&helper->sent, call, link);
        }
        return 0;
}

/* Waits for room only while there is something to send. */
static int helper_pump(struct ctl_helper *helper)
{
        int r = helper_send_waiting(helper);

        if (r < 0)
                return r;
        return sd_event_source_set_io_events(
                helper->channel_source, TAILQ_EMPTY(&helper->waiting) ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

static struct ctl_call *helper_find(struct ctl_helper *helper, uint64_t sequence)
{
        struct ctl_call *call = TAILQ_FIRST(&helper->sent);

        while (call && call->request.sequence != sequence)
                call = TAILQ_NEXT(call, link);
        return call;
}

static int call_post(struct ctl_calls *calls, struct ctl_call *call);

static void on_reply(struct ctl_helper *helper, const struct ctl_reply *reply)
{
        struct ctl_calls *calls = helper->calls;
        struct ctl_call *call = helper_find(helper, reply->sequence);
        int r;

        helper->misses = 0;
        if (!call) { /* it was timed out */
                on_late_reply(helper, reply->sequence);
                return;
        }
        if (call->cancelled || !calls->handlers->reconsider(calls->owner, call, reply->result)) {
                call_finish(call, reply->result, &reply->payload);
                return;
        }
        call_unlink(call);
        helper_kill_if_useless(helper);
        r = call_post(calls, call);
        if (r < 0) {
                call->helper = NULL;
                call_finish(call, r, NULL);
        }
}

/* 1: there may be more; 0: none for now; -errno: the channel is broken. */
static int helper_receive(struct ctl_helper *helper)
{
        struct ctl_reply reply;
        ssize_t size = recv(helper->channel, &reply, sizeof(reply), MSG_DONTWAIT);

        if (size < 0)
                return errno == EAGAIN ? 0 : -errno;
        if (size != sizeof(reply))
                return -EPIPE;
        if (reply.sequence > 0) {
                on_reply(helper, &reply);
        } else {
                helper->guards = reply.payload.greeting.guards == CTL_GUARDS;
                helper->calls->handlers->greeted(helper->calls->owner, &reply);
                if (reply.result < 0)
                        return reply.result;
        }
        return helper->channel >= 0 ? 1 : 0; /* that reply may have been the last one waited for */
}

static int on_channel(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct ctl_helper *helper = userdata;
        int r = 1;

        for (unsigned i = 0; r > 0 && i < REPLIES_PER_TURN; i++)
                r = helper_receive(helper);
        if (r >= 0 && helper->state != HELPER_DYING)
                r = helper_pump(helper);
        if (r < 0)
                helper_lost(helper);
        return 0;
}

static int helper_watch(struct ctl_helper *helper)
{
        sd_event *event = helper->calls->event;
        int r = sd_event_add_io(event, &helper->channel_source, helper->channel, EPOLLIN, on_channel, helper);

        if (r >= 0)
                r = sd_event_source_set_priority(helper->channel_source, PRIORITY_ANSWER);
        if (r >= 0)
                r = sd_event_add_io(
                        event, &helper->pidfd_source, helper->pidfd, EPOLLIN, on_helper_death, helper);
        if (r >= 0)
                r = sd_event_source_set_priority(helper->pidfd_source, PRIORITY_ANSWER);
        return r < 0 ? r : 0;
}

static struct ctl_helper *find_helper(struct ctl_calls *calls, enum helper_state state)
{
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++)
                if (calls->helpers[i].state == state)
                        return &calls->helpers[i];
        return NULL;
}

bool ctl_calls_guard(const struct ctl_calls *calls)
{
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++)
                if (calls->helpers[i].state == HELPER_ACTIVE)
                        return calls->helpers[i].guards;
        return false;
}

static int helper_start(struct ctl_calls *calls, struct ctl_helper **ret)
{
        struct ctl_helper *helper = find_helper(calls, HELPER_NONE);
        _cleanup_close_ int theirs = -1;
        int pair[2], r;

        if (!helper)
                return -EAGAIN;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        helper->channel = pair[0];
        theirs = pair[1];
        r = proc_spawn(
                &(struct proc_spawn){
                        .program = calls->helper_path,
                        .argv = (const char *[]){"ublkd", "--control-helper", NULL},
                        .fds = {theirs},
                        .fd_count = 1,
                        .block_signals = true,
        },
                &helper->pid, &helper->pidfd);
        if (r < 0) {
                helper_release(helper);
                return r;
        }
        helper->state = HELPER_ACTIVE;
        r = helper_watch(helper);
        if (r < 0) {
                helper_kill(helper); /* without its pidfd source it keeps the slot until ctl_calls is freed */
                return r;
        }
        *ret = helper;
        return 0;
}

/* While there is a slot for another, a helper is given up with the first of its commands that hangs: that
 * interrupts the command, if anything can. */
static bool is_to_retire(struct ctl_helper *helper)
{
        return helper->state == HELPER_ACTIVE
               && (find_helper(helper->calls, HELPER_NONE) || ++helper->misses >= CTL_LAST_MISSES_MAX);
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct ctl_call *call = userdata;

        if (call->state == CTL_CALL_SENT)
                give_up(call->helper, call);
        if (is_to_retire(call->helper))
                call->helper->state = HELPER_RETIRED;
        call_finish(call, -ETIMEDOUT, NULL);
        return 0;
}

/* Sends it through the active helper. Its deadline is set, or not yet. */
static int call_post(struct ctl_calls *calls, struct ctl_call *call)
{
        struct ctl_helper *helper = find_helper(calls, HELPER_ACTIVE);
        int r = helper ? 0 : helper_start(calls, &helper);

        if (r < 0)
                return r;
        call->calls = calls;
        call->helper = helper;
        call->request.sequence = ++calls->sequence;
        call->state = CTL_CALL_WAITING;
        TAILQ_INSERT_TAIL(&helper->waiting, call, link);
        if (helper_pump(helper) < 0) /* it is dying: on_channel() will find out, and fail all of its calls */
                (void)sd_event_source_set_io_events(helper->channel_source, EPOLLIN | EPOLLOUT);
        return 0;
}

/* ---- for the owner ---- */

int ctl_calls_submit(struct ctl_calls *calls, struct ctl_call *call, uint64_t deadline_usec)
{
        int r;

        if (call->changes && has_given_up(calls, call->request.number))
                return -EALREADY;
        /* From now, not from when this turn of the loop began: a delay of ublkd is not the helper's fault. */
        r = sd_event_add_time(calls->event, &call->deadline, CLOCK_MONOTONIC,
                clock_usec(CLOCK_MONOTONIC) + deadline_usec, DEADLINE_ACCURACY_USEC, on_deadline, call);
        if (r >= 0)
                r = call_post(calls, call);
        if (r < 0)
                call->deadline = sd_event_source_disable_unref(call->deadline);
        return r < 0 ? r : 0;
}

void ctl_call_cancel(struct ctl_call *call)
{
        struct ctl_helper *helper = call->helper;

        call->cancelled = true;
        if (call->state == CTL_CALL_SENT) /* its deadline still shows whether the helper hangs */
                return;
        call_free(call);
        if (helper)
                helper_kill_if_useless(helper);
}

int ctl_calls_new(sd_event *event, const char *helper_path, const struct ctl_calls_handlers *handlers,
        void *owner, struct ctl_calls **ret)
{
        _cleanup_(ctl_calls_free_pointer) struct ctl_calls *calls = calloc(1, sizeof(*calls));
        int r;

        if (!calls)
                return -ENOMEM;
        calls->event = sd_event_ref(event);
        calls->handlers = handlers;
        calls->owner = owner;
        TAILQ_INIT(&calls->finished);
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++) {
                calls->helpers[i] = (struct ctl_helper){.calls = calls, .pidfd = -1, .channel = -1};
                TAILQ_INIT(&calls->helpers[i].waiting);
                TAILQ_INIT(&calls->helpers[i].sent);
        }
        calls->helper_path = strdup(helper_path);
        if (!calls->helper_path)
                return -ENOMEM;
        r = sd_event_add_defer(event, &calls->delivery, on_delivery, calls);
        if (r >= 0)
                r = sd_event_source_set_priority(calls->delivery, PRIORITY_ANSWER);
        if (r >= 0)
                r = sd_event_source_set_enabled(calls->delivery, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(calls);
        return 0;
}

static void free_calls(struct call_list *list)
{
        struct ctl_call *call;

        while ((call = TAILQ_FIRST(list)))
                call_free(call);
}

/* The helper was killed. One that is stuck in the driver is left to init. */
static void helper_bury(struct ctl_helper *helper, int64_t patience_ends)
{
        struct pollfd dead = {.fd = helper->pidfd, .events = POLLIN};
        int64_t left = patience_ends - clock_msec(CLOCK_MONOTONIC);

        if (poll(&dead, 1, left > 0 ? (int)left : 0) > 0)
                (void)waitid(P_PIDFD, (id_t)helper->pidfd, &(siginfo_t){}, WEXITED | WNOHANG);
        helper_release(helper);
}

struct ctl_calls *ctl_calls_free(struct ctl_calls *calls)
{
        int64_t patience_ends = clock_msec(CLOCK_MONOTONIC) + GOODBYE_MSEC;

        if (!calls)
                return NULL;
        free_calls(&calls->finished);
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++) {
                free_calls(&calls->helpers[i].waiting);
                free_calls(&calls->helpers[i].sent);
                if (calls->helpers[i].state != HELPER_NONE)
                        helper_kill(&calls->helpers[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++)
                if (calls->helpers[i].state != HELPER_NONE)
                        helper_bury(&calls->helpers[i], patience_ends);
        sd_event_source_disable_unref(calls->delivery);
        sd_event_unref(calls->event);
        free(calls->helper_path);
        free(calls);
        return NULL;
}

int ctl_calls_start(struct ctl_calls *calls)
{
        struct ctl_helper *helper;

        return helper_start(calls, &helper);
}

void ctl_calls_stop(struct ctl_calls *calls)
{
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++)
                if (calls->helpers[i].state != HELPER_NONE)
                        helper_lost(&calls->helpers[i]);
}

bool ctl_calls_are_idle(const struct ctl_calls *calls)
{
        for (size_t i = 0; i < ARRAY_SIZE(calls->helpers); i++)
                if (calls->helpers[i].pidfd_source) /* without one its end could not be seen */
                        return false;
        return true;
}
