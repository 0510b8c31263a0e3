/* SPDX-License-Identifier: MIT */
/* stop and start: take a disk down until the next boot, and create it again. The spec does not change. */
#include "ublkctl/verbs/change/stop.h"

#include "ublkctl/verbs/show/await.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_AGAIN_MS = 500 }; /* each look may cost ublkd a search of all processes */

static void print_done(const char *name, const char *done)
{
        print_safely(stdout, name);
        printf(" %s\n", done);
}

/* Return the path of the request, which the caller frees; NULL on ENOMEM. */
static char *stop_path(const struct context *context, const char *name, uint64_t left)
{
        char rest[WAIT_QUERY_SIZE + 64];

        snprintf(rest, sizeof(rest), "/stop?drop-last-copy=%s",
                context->settings->drop_last_copy ? "true" : "false");
        if (!context->settings->no_wait)
                snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest),
                        "&wait=ready&timeout=%" PRIu64 "ms", wait_limit(left) / 1000);
        return device_path(name, rest);
}

static enum exit_status judge(const struct context *context, const struct request *request, const char *name,
        enum exit_status status, const struct answer *answer)
{
        if (status != STATUS_OK || answer->status < 400
                || (context->settings->ignore_missing && is_problem(answer, "no-such-device")))
                return status;
        return report_problem(request, name, answer);
}

/* Ask until the disk is unused, if the options say so. */
static enum exit_status ask_to_stop(struct context *context, struct request *request, const char *name,
        uint64_t deadline, struct answer *ret)
{
        for (;;) {
                uint64_t now = monotonic_now(), left = deadline > now ? deadline - now : 1;
                _cleanup_free_ char *path = stop_path(context, name, left);
                enum exit_status status;

                request->path = path;
                request->patience = context->settings->no_wait ? 0 : left;
                status = path ? client_ask(context->client, request, false, ret) : STATUS_FAILED;
                if (status != STATUS_OK || !context->settings->when_unused || now >= deadline
                        || !is_problem(ret, "in-use"))
                        return judge(context, request, name, status, ret);
                answer_clear(ret);
                (void)poll(NULL, 0, LOOK_AGAIN_MS);
        }
}

static enum exit_status stop_one(struct context *context, const char *name)
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        struct request request = {.method = "POST"};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = ask_to_stop(context, &request, name, deadline, &answer);

        if (status != STATUS_OK)
                return status;
        print_done(name, answer.status == 404         ? "does not exist"
                         : context->settings->no_wait ? "is being stopped"
                                                      : "stopped");
        return status;
}

enum exit_status start_device(struct context *context, const char *name)
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        _cleanup_free_ char *path = device_path(name, "/start");
        struct request request = {.method = "POST", .path = path};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = path ? call(context, &request, name, &answer) : STATUS_FAILED;

        if (status == STATUS_OK && !context->settings->no_wait)
                status = await_live(context, name, deadline);
        if (status == STATUS_OK)
                print_done(name, context->settings->no_wait ? "is being started" : "is Live");
        return status;
}

enum exit_status verb_stop(struct context *context, int argc, char *argv[])
{
        return for_each_name(context, argc, argv, stop_one);
}

enum exit_status verb_start(struct context *context, int argc, char *argv[])
{
        return for_each_name(context, argc, argv, start_device);
}
