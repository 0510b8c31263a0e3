/* SPDX-License-Identifier: MIT */
/* What supervisors send, and what the worker does for each message at the stage that it has reached. */
#include "targets/worker/worker.h"
#include "ublkd/base/log.h"

#include <string.h>

static void grow(struct worker *worker, uint64_t size)
{
        struct worker_msg answer = {.type = WORKER_MSG_GROWN};

        (void)disk_grow(
                &worker->disk, size, &answer.grown.problems); /* on ENOMEM the supervisor asks again */
        worker_latch_cut(worker);
        news_send(&worker->news, &worker->shared, &worker->chan);
        answer.grown.size = worker->disk.params.size;
        answer.grown.size_max = worker->disk.params.size_max;
        (void)report(worker, &answer);
        worker_msg_clear(&answer);
}

static bool can_serve(const struct worker *worker, const struct data_route *route)
{
        return route->path != DATA_PATH_ZERO_COPY
               || (worker->disk.device.target->desc->flags & TARGET_REGISTERED_BUFFERS);
}

static enum exit_status go(struct worker *worker, const struct worker_msg *msg)
{
        if (!can_serve(worker, &msg->go.route))
                return fail_with(worker, -EOPNOTSUPP, "DataPathUnsupported",
                        "The target needs to see the bytes, which zero copy does not show");
        worker->queue_cpus = msg->go.queue_cpus ? strdup(msg->go.queue_cpus) : NULL;
        worker->walls.user = msg->go.user;
        worker_begin_fetching(worker, msg->go.number, &msg->go.route);
        return worker_go_on(worker);
}

/* Begin to leave, once. Return whether the message has its place at this stage. */
static bool leave(struct worker *worker)
{
        if (worker->stage < WORKER_STAGE_READY)
                return false;
        if (worker->stage != WORKER_STAGE_LEAVING)
                queue_threads_leave(worker->threads);
        worker->stage = WORKER_STAGE_LEAVING;
        return true;
}

/* Sets those descriptors to -1 that it takes over. */
static enum exit_status handle(struct worker *worker, const struct worker_msg *msg, int *fds)
{
        switch (msg->type) {
        case WORKER_MSG_CONFIG:
                if (worker->stage == WORKER_STAGE_OPENING && !worker->config.uid)
                        return worker_open(worker, msg, fds);
                break;
        case WORKER_MSG_GO:
                if (worker->stage == WORKER_STAGE_OPEN)
                        return go(worker, msg);
                if (worker->stage > WORKER_STAGE_OPEN && msg->go.number == worker->number)
                        return STAY; /* a supervisor that did not know */
                break;
        case WORKER_MSG_GROW:
                if (worker->stage >= WORKER_STAGE_OPEN && worker->stage < WORKER_STAGE_LEAVING) {
                        grow(worker, msg->grow.size);
                        return STAY;
                }
                break;
        case WORKER_MSG_ACTION:
                if (worker->stage >= WORKER_STAGE_READY && worker->stage < WORKER_STAGE_LEAVING) {
                        take_action(worker, msg);
                        return STAY;
                }
                break;
        case WORKER_MSG_LIVE:
                if (worker->stage == WORKER_STAGE_READY)
                        worker->stage = WORKER_STAGE_SERVING;
                return STAY;
        case WORKER_MSG_LEAVE:
                if (leave(worker))
                        return STAY;
                break;
        default:
                break;
        }
        log_warning(worker->name, "The supervisor sent a message that has no place at stage \"%s\"; ignored.",
                worker_stage_to_string(worker->stage));
        return STAY;
}

static enum exit_status hung_up(struct worker *worker, int error)
{
        chan_hang_up(&worker->chan);
        if (error < 0)
                log_warning(worker->name, "The connection to the supervisor is broken: %s; %s.",
                        strerror(-error),
                        worker->stage < WORKER_STAGE_FETCHING ? "leaving"
                                                              : "serving on, and waiting for the next");
        return worker->stage < WORKER_STAGE_FETCHING ? EXIT_LEFT : STAY;
}

enum exit_status worker_read_messages(struct worker *worker)
{
        while (worker->chan.connection >= 0) {
                int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1};
                struct worker_msg msg = {};
                enum exit_status status;
                int r;

                r = worker_msg_receive_fds(worker->chan.connection, &msg, fds);
                if (r == -EAGAIN)
                        return STAY;
                if (r <= 0)
                        return hung_up(worker, r);
                status = handle(worker, &msg, fds);
                worker_msg_clear(&msg);
                for (size_t i = 0; i < _CONFIG_FD_MAX; i++)
                        close_fd(fds[i]);
                if (status != STAY)
                        return status;
        }
        /* It broke while a message was sent. */
        return hung_up(worker, 0);
}

enum exit_status worker_take_call(struct worker *worker)
{
        int r = chan_accept(&worker->chan);

        if (r > 0)
                report_all(worker);
        else if (r < 0)
                log_warning(worker->name, "A call of a supervisor failed: %s; waiting for the next.",
                        strerror(-r));
        return STAY;
}
