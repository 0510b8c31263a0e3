/* SPDX-License-Identifier: MIT */
/* Suspend a request until a node, or a mounted file system, is delivered. */
#include "api/held/delivery_check.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"

#include <string.h>

struct delivery_check {
        struct hold hold;               /* first member */
        struct node_delivery *delivery; /* NULL: there is a report, or it did not begin */
        bool answered;
        struct delivery_report report;
};

static struct hold *delivery_check_free(struct hold *hold)
{
        struct delivery_check *check = (struct delivery_check *)hold;

        if (!check)
                return NULL;
        if (check->delivery)
                check->hold.request->api->config.cancel_delivery(check->delivery);
        hold_release(hold);
        free(check);
        return NULL;
}

static const struct hold_kind delivery_check_kind = {.free = delivery_check_free};

static void on_report(void *userdata, const struct delivery_report *report)
{
        struct delivery_check *check = userdata;

        check->delivery = NULL;
        check->answered = true;
        check->report = *report;
        hold_end(&check->hold);
}

static int begin(
        struct request *request, const struct device_record *record, const struct delivery_wish *wish)
{
        const struct api_config *config = &request->api->config;
        struct delivery_check *check;
        int r;

        if (!config->deliver)
                return -ENOENT;
        check = calloc(1, sizeof(*check));
        if (!check)
                return -ENOMEM;
        check->hold.request = request;
        r = config->deliver(
                config->userdata, request->client->fd, record, wish, on_report, check, &check->delivery);
        if (r >= 0)
                r = hold_attach(&check->hold, &delivery_check_kind, request);
        if (r >= 0)
                hold_suspend(&check->hold);
        else
                (void)delivery_check_free(&check->hold);
        return r;
}

static void reply_not_begun(struct request *request, const struct device_record *record,
        const struct delivery_wish *wish, int error)
{
        if (error == -EINVAL || error == -ENAMETOOLONG)
                reply_problem(request, PROBLEM_INVALID_REQUEST,
                        "The path is invalid: %s; give an absolute path of a file that does not exist.",
                        strerror(-error));
        else if (error == -ENOENT)
                reply_device_problem(request, PROBLEM_NOT_POSSIBLE_NOW, record,
                        "The device has no private node; wait until the disk is Live.");
        else if (error == -EOPNOTSUPP)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The connection does not show in which container the client is; use the Unix "
                        "socket.");
        else if (error == -ESRCH && wish->pid)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "No process has this pid; name one that runs in the container.");
        else if (error == -ESRCH)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The client has ended; keep the process that asks until the answer comes.");
        else if (error == -E2BIG)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The client is in more than %d groups; ask as a process with fewer.",
                        DELIVERY_GROUPS_MAX);
        else if (error == -EBUSY || error == -EAGAIN)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "Too many deliveries are under way; repeat the request when one has ended.");
        else
                reply_error(request, error, "Cannot begin the delivery");
}

bool delivery_is_over(const struct request *request)
{
        const struct delivery_check *check = (const struct delivery_check *)request->hold;

        return check && check->hold.kind == &delivery_check_kind && check->answered;
}

const struct delivery_report *delivery_check(
        struct request *request, const struct device_record *record, const struct delivery_wish *wish)
{
        const struct delivery_check *check = (const struct delivery_check *)request->hold;
        int r;

        if (request->suspended)
                return NULL;
        if (delivery_is_over(request))
                return &check->report;
        r = begin(request, record, wish);
        if (r < 0)
                reply_not_begun(request, record, wish, r);
        return NULL;
}
