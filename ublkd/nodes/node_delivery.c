/* SPDX-License-Identifier: MIT */
/* Starts the process that delivers a node, and waits for its report and its end. */
#include "ublkd/nodes/node_delivery.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/offload/proc_spawn.h"

#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PATIENCE_USEC = 10 * 1000 * 1000, RUNNING_MAX = 32, USER_MAX = 2 };

static_assert(
        (int)DELIVERY_LINK_FD == (int)PROC_SPAWN_FIRST_FD, "the link is the first descriptor of the process");

struct node_delivery {
        struct node_deliveries *deliveries;
        void (*done)(void *userdata,
                const struct delivery_report *report); /* NULL: it was called, or is not wanted */
        void *userdata;
        uint32_t account;
        int link, process; /* process: the pidfd of ours, while it is not dead */
        sd_event_source *readable, *death, *deadline;
        TAILQ_ENTRY(node_delivery) entry;
};

struct node_deliveries {
        sd_event *event;
        struct delivery_limits options;
        TAILQ_HEAD(, node_delivery) all; /* whose process is not dead */
};

/* ---- the end ---- */

static void delivery_free(struct node_delivery *delivery)
{
        TAILQ_REMOVE(&delivery->deliveries->all, delivery, entry);
        sd_event_source_disable_unref(delivery->readable);
        sd_event_source_disable_unref(delivery->death);
        sd_event_source_disable_unref(delivery->deadline);
        close_fd(delivery->link);
        close_fd(delivery->process);
        free(delivery);
}

/* The process is left to on_death(). */
static void give_up(struct node_delivery *delivery)
{
        delivery->done = NULL;
        delivery->readable = sd_event_source_disable_unref(delivery->readable);
        delivery->deadline = sd_event_source_disable_unref(delivery->deadline);
        (void)pidfd_send_signal(delivery->process, SIGKILL, NULL, 0);
}

static void finish(struct node_delivery *delivery, const struct delivery_report *report)
{
        void (*done)(void *userdata, const struct delivery_report *report) = delivery->done;

        give_up(delivery);
        if (done)
                done(delivery->userdata, report);
}

static void fail(struct node_delivery *delivery, enum delivery_outcome outcome, int error)
{
        finish(delivery, &(const struct delivery_report){.outcome = outcome, .error = error});
}

/* Return false if there is none yet. */
static bool take_report(struct node_delivery *delivery)
{
        struct delivery_report report;
        ssize_t n = recv(delivery->link, &report, sizeof(report), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n == sizeof(report) && report.outcome < _DELIVERY_OUTCOME_MAX)
                finish(delivery, &report);
        else
                fail(delivery, DELIVERY_NOT_ENTERED, -EPIPE); /* it died, or was killed */
        return true;
}

static int on_readable(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        (void)take_report(userdata);
        return 0;
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        if (!take_report(userdata))
                fail(userdata, DELIVERY_LATE, -ETIMEDOUT);
        return 0;
}

static int on_death(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct node_delivery *delivery = userdata;

        (void)waitid(P_PIDFD, (id_t)fd, &(siginfo_t){}, WEXITED | WNOHANG);
        if (delivery->done && !take_report(delivery))
                fail(delivery, DELIVERY_NOT_ENTERED, -EPIPE);
        delivery_free(delivery);
        return 0;
}

void node_delivery_cancel(struct node_delivery *delivery)
{
        give_up(delivery);
}

/* ---- the begin ---- */

static uint32_t account_of(const struct node_deliveries *deliveries, uid_t user)
{
        const struct delivery_limits *options = &deliveries->options;

        return options->account ? options->account(options->userdata, user) : user;
}

static int check_limits(const struct node_deliveries *deliveries, uint32_t account)
{
        const struct node_delivery *delivery;
        unsigned running = 0, of_account = 0;

        TAILQ_FOREACH (delivery, &deliveries->all, entry) {
                running++;
                of_account += delivery->account == account;
        }
        if (of_account >= deliveries->options.user_max)
                return -EBUSY;
        return running >= deliveries->options.running_max ? -EAGAIN : 0;
}

static int make_order(const struct delivery_request *request, struct delivery_order *ret)
{
        size_t length = strlen(request->path);

        if (*request->path != '/' || request->path[length - 1] == '/')
                return -EINVAL;
        if (length >= sizeof(ret->path))
                return -ENAMETOOLONG;
        if (request->group_count > DELIVERY_GROUPS_MAX)
                return -E2BIG;
        *ret = (struct delivery_order){
                .pid = request->pid,
                .uid = request->uid,
                .gid = request->gid,
                .group_count = (uint32_t)request->group_count,
        };
        if (request->group_count > 0)
                memcpy(ret->groups, request->groups, request->group_count * sizeof(ret->groups[0]));
        memcpy(ret->path, request->path, length + 1);
        if (!request->mount)
                return 0;
        ret->read_only = request->read_only;
        ret->no_exec = request->no_exec;
        if (strlen(request->mount) >= sizeof(ret->mount) || strlen(request->number) >= sizeof(ret->number))
                return -ENAMETOOLONG;
        memcpy(ret->mount, request->mount, strlen(request->mount) + 1);
        memcpy(ret->number, request->number, strlen(request->number) + 1);
        return 0;
}

/* Return the end of the link that is ours. The process waits for its order. */
static int spawn(const char *program, const struct delivery_request *request, int *ret_process)
{
        static const char *const arguments[] = {"ublkd", NODE_DELIVERY_OPTION, NULL};
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
                        .fds = {theirs, request->pidfd, request->tree},
                        .fd_count = request->mount ? 2 : 3,
        },
                &pid, ret_process);
        return r < 0 ? r : TAKE_FD(ours);
}

static int watch(struct node_delivery *delivery)
{
        sd_event *event = delivery->deliveries->event;
        int r = sd_event_add_io(event, &delivery->readable, delivery->link, EPOLLIN, on_readable, delivery);

        if (r >= 0)
                r = sd_event_add_time_relative(event, &delivery->deadline, CLOCK_MONOTONIC,
                        delivery->deliveries->options.patience_usec, 0, on_deadline, delivery);
        if (r >= 0)
                r = sd_event_add_io(event, &delivery->death, delivery->process, EPOLLIN, on_death, delivery);
        return r;
}

static int send_order(const struct node_delivery *delivery, const struct delivery_order *order)
{
        return send(delivery->link, order, sizeof(*order), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*order)
                       ? 0
                       : -errno;
}

int node_delivery_begin(struct node_deliveries *deliveries, const struct delivery_request *request,
        void (*done)(void *userdata, const struct delivery_report *report), void *userdata,
        struct node_delivery **ret)
{
        struct node_delivery *delivery;
        struct delivery_order order;
        int r = make_order(request, &order);

        if (r >= 0)
                r = check_limits(deliveries, account_of(deliveries, request->account));
        if (r < 0)
                return r;
        delivery = calloc(1, sizeof(*delivery));
        if (!delivery)
                return -ENOMEM;
        *delivery = (struct node_delivery){.deliveries = deliveries,
                .done = done,
                .userdata = userdata,
                .account = account_of(deliveries, request->account),
                .link = -1,
                .process = -1};
        TAILQ_INSERT_TAIL(&deliveries->all, delivery, entry);
        r = spawn(deliveries->options.program, request, &delivery->process);
        if (r >= 0) {
                delivery->link = r;
                r = watch(delivery);
        }
        if (r >= 0)
                r = send_order(delivery, &order);
        if (r < 0) { /* without an order it has asked no file system for anything, so it ends at once */
                if (delivery->process >= 0 && pidfd_send_signal(delivery->process, SIGKILL, NULL, 0) >= 0)
                        (void)waitid(P_PIDFD, (id_t)delivery->process, NULL, WEXITED);
                delivery_free(delivery);
                return r;
        }
        *ret = delivery;
        return 0;
}

/* ---- the whole ---- */

int node_deliveries_new(sd_event *event, const struct delivery_limits *options, struct node_deliveries **ret)
{
        struct node_deliveries *deliveries = calloc(1, sizeof(*deliveries));

        if (!deliveries)
                return -ENOMEM;
        if (options)
                deliveries->options = *options;
        if (deliveries->options.patience_usec == 0)
                deliveries->options.patience_usec = PATIENCE_USEC;
        if (deliveries->options.running_max == 0)
                deliveries->options.running_max = RUNNING_MAX;
        if (deliveries->options.user_max == 0)
                deliveries->options.user_max = USER_MAX;
        deliveries->event = sd_event_ref(event);
        TAILQ_INIT(&deliveries->all);
        *ret = deliveries;
        return 0;
}

struct node_deliveries *node_deliveries_free(struct node_deliveries *deliveries)
{
        struct node_delivery *delivery;

        if (!deliveries)
                return NULL;
        while ((delivery = TAILQ_FIRST(&deliveries->all))) {
                (void)pidfd_send_signal(delivery->process, SIGKILL, NULL, 0); /* init, or our end, reaps it */
                delivery_free(delivery);
        }
        sd_event_unref(deliveries->event);
        free(deliveries);
        return NULL;
}
