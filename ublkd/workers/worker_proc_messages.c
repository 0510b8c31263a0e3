/* SPDX-License-Identifier: MIT */
/* What a worker sends. Nothing of it is trusted: plan/worker_messages.h has the rules, plan/worker_growth.h the
 * sizes. A worker that breaks them is killed: it can be replaced without loss, and what it would do next cannot be
 * known. */
#include "ublkd/workers/worker_proc_internal.h"

#include "ublkd/base/clock.h"
#include "ublkd/offload/close_away.h"
#include "ublkd/workers/worker_network.h"

#include <stdio.h>
#include <string.h>

#define break_off(worker, ...) worker_proc_kill_for((worker), WORKER_FAULT_PROTOCOL, __VA_ARGS__)

void worker_proc_raise_stage(struct worker_proc *worker, enum worker_stage stage)
{
        if (stage <= worker->stage)
                return;
        worker->stage = stage;
        if (stage == WORKER_STAGE_SERVING) /* no wall comes after that */
                worker->network = worker_network_open(worker->pidfd);
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
        worker->acts = msg->hello.acts;
        worker->leaves = msg->hello.leaves;
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

        if (msg->hello.protocol != WORKER_PROTOCOL)
                break_off(worker, "it speaks protocol %d, not %d", msg->hello.protocol, WORKER_PROTOCOL);
        else if (!unconfigured && strcmp(msg->hello.uid, worker->uid) != 0)
                break_off(worker, "it serves another device");
        else if (msg->hello.pid != worker->pid)
                break_off(worker, "it claims to be another process");
        else if (!worker->adopted && !unconfigured && msg->hello.epoch != worker->epoch)
                break_off(worker, "it serves epoch %u, not %u", msg->hello.epoch, worker->epoch);
        else if (!worker->adopted && (msg->hello.stage != WORKER_STAGE_OPENING || msg->hello.number != -1))
                break_off(worker, "it claims to serve before GO");
        else
                accept_hello(worker, msg);
}

/* What an adopted worker was given is not known here: its device compares with what is written down. */
static void on_backing(struct worker_proc *worker, const struct worker_msg *msg, int *fds)
{
        int r;

        if (!worker->adopted && msg->backing.stores.count != worker->listed) {
                break_off(worker, "it sent %u stores in a list, and was given %u", msg->backing.stores.count,
                        worker->listed);
                return;
        }
        worker_stores_clear(&worker->stores);
        r = worker_stores_read(msg, fds, &worker->stores);
        if (r < 0
                && worker->adopted) /* ublkd may be out of descriptors, and the worker serves: none is taken */
                return;
        if (r == -EBADMSG)
                break_off(worker, "it sent other descriptors than those of its list");
        else if (r < 0)
                break_off(worker, "its stores cannot be kept: %s", strerror(-r));
        worker->lacks_store = false;
        for (unsigned i = 0; i < worker->stores.count; i++)
                worker->lacks_store = worker->lacks_store || worker->stores.items[i].fd < 0;
}

/* A disk over several stores has all of them, or it is not served. One that serves already goes on: its device takes none of them. */
static bool lacks_store(const struct worker_proc *worker)
{
        return worker->listed > 0 && worker->lacks_store;
}

/* Takes over the message. */
static void on_params(struct worker_proc *worker, struct worker_msg *msg)
{
        const char *fault = worker_params_fault(&msg->params);

        if (!fault && lacks_store(worker))
                fault = "it sent PARAMS without a descriptor of each store";
        if (fault) {
                break_off(worker, "%s", fault);
                return;
        }
        worker->params = *msg;
        *msg = (struct worker_msg){.type = WORKER_MSG_LIVE};
        worker_proc_raise_stage(worker, WORKER_STAGE_OPEN);
        worker_proc_raise_stage(worker, worker->claimed);
}

static void on_failed(struct worker_proc *worker, const struct worker_msg *msg)
{
        (void)problem_list_append(
                &worker->problems, &msg->failed.problems); /* on ENOMEM its death shows it */
        worker->holder = msg->failed.holder;
        worker_proc_expect_exit(worker);
}

static void on_grown(struct worker_proc *worker, const struct worker_msg *msg)
{
        struct disk_params *params = &worker->params.params;
        const char *fault = worker_growth_answer(&worker->growth, worker_proc_params(worker), msg);

        if (fault) {
                break_off(worker, "%s", fault);
                return;
        }
        params->size = msg->grown.size;
        params->size_max = msg->grown.size_max;
        if (!worker_proc_has_list(worker)) /* else the claims reach as far as the tree can grow */
                backing_claims_resize(&params->claims, params->size);
        if (worker->growth.asked > 0) /* the answer to the last GROW counts */
                return;
        problem_list_clear(&worker->refusal);
        (void)problem_list_append(&worker->refusal, &msg->grown.problems); /* on ENOMEM ublkd asks again */
}

/* Keep the notice until the device takes it; the list counts those that are too many. Each makes an event, of which ublkd
 * keeps a limited number for all devices. */
static void on_notice(struct worker_proc *worker, const struct worker_msg *msg)
{
        if (msg->notice.count != 1 || msg->notice.dropped > 0) {
                break_off(worker, "it sent a NOTICE that is not about one thing");
                return;
        }
        (void)problem_list_append(
                &worker->notices, &msg->notice); /* on ENOMEM the log of the worker has it */
}

/* fds: the descriptors beside the message, and then -1; those that are taken over become -1. */
static void handle_message(struct worker_proc *worker, struct worker_msg *msg, int fds[static STORE_LIST_MAX])
{
        const char *fault =
                worker_messages_fault(&worker->messages, msg->type, worker->stage, monotonic_now());

        if (fault) {
                break_off(worker, "%s", fault);
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
                worker_proc_raise_stage(worker, WORKER_STAGE_READY);
                break;
        case WORKER_MSG_FAILED:
                on_failed(worker, msg);
                break;
        case WORKER_MSG_GROWN:
                on_grown(worker, msg);
                break;
        case WORKER_MSG_BACKING:
                on_backing(worker, msg, fds);
                break;
        case WORKER_MSG_NOTICE:
                on_notice(worker, msg);
                break;
        case WORKER_MSG_NEWS: /* its device gets a turn, which reads the region */
                worker->has_news = true;
                break;
        default: /* worker_messages_fault() refuses these */
                break;
        }
}

/* Return how many descriptors are taken: those of the stores, while they are unknown. The kernel closes all others. */
static unsigned fds_expected(const struct worker_proc *worker)
{
        if (worker->stores.count > 0 || worker->params.type == WORKER_MSG_PARAMS)
                return 0;
        if (worker->adopted)
                return STORE_LIST_MAX;
        return worker->listed > 0 ? worker->listed : 1;
}

int worker_proc_receive(struct worker_proc *worker)
{
        _cleanup_worker_msg_ struct worker_msg msg = {};
        int fds[STORE_LIST_MAX] = {[0 ... STORE_LIST_MAX - 1] = -1}, r;

        r = worker_report_receive(worker->channel, &msg, fds, fds_expected(worker));
        if (r == -EAGAIN)
                return 0;
        if (r == -EBADMSG)
                break_off(worker, "it sent an invalid message");
        if (r <= 0)
                return r < 0 ? r : -EPIPE;
        handle_message(worker, &msg, fds);
        for (unsigned i = 0; i < STORE_LIST_MAX; i++)
                if (fds[i] >= 0)
                        close_away(fds[i]);
        return worker->fault != WORKER_FAULT_NONE
                       ? -EBADMSG
                       : 1; /* read nothing more from a worker that will be killed */
}
