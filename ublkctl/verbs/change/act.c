/* SPDX-License-Identifier: MIT */
/* recover and restart: act on the worker of a device. */
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/client/url.h"
#include "ublkctl/verbs.h"

#include <stdio.h>
#include <string.h>

static void print_done(const char *name, const char *done)
{
        print_safely(stdout, name);
        printf(" %s\n", done);
}

/* Return the path of the request, which the caller frees; NULL on ENOMEM. */
static char *recover_path(const struct context *context, const char *name)
{
        char *path = device_path(name, "/recover");

        if (path && context->settings->accept_backing)
                path = url_add_parameter(path, "accept-backing", context->settings->accept_backing);
        if (path && context->settings->store)
                path = url_add_parameter(path, "store", context->settings->store);
        return path && context->settings->force ? url_add_parameter(path, "force", "true") : path;
}

/* The device of the answer to the request: a disk that is served needs no worker. */
static bool needs_none(const struct answer *answer)
{
        const char *phase = json_text(answer->json, "status.phase");

        return phase && strcmp(phase, "Live") == 0;
}

static enum exit_status recover_one(struct context *context, const char *name)
{
        _cleanup_free_ char *path = recover_path(context, name);
        struct request request = {.method = "POST", .path = path};
        _cleanup_answer_ struct answer answer = {};
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        enum exit_status status = path ? call(context, &request, name, &answer) : STATUS_FAILED;

        if (status == STATUS_OK && !context->settings->no_wait)
                status = await_live(context, name, deadline);
        if (status == STATUS_OK && needs_none(&answer))
                print_done(name, "is Live already, and keeps its worker; 'ublkctl restart' replaces it");
        else if (status == STATUS_OK)
                print_done(name, context->settings->no_wait ? "is being recovered" : "is Live");
        return status;
}

static enum exit_status restart_one(struct context *context, const char *name)
{
        struct watch watch = {
                .context = context, .name = name, .goal = "Live again", .began = monotonic_now()};
        bool wait = !context->settings->no_wait;
        _cleanup_answer_ struct answer answer = {};
        _cleanup_free_ char *path = NULL, *rest = NULL;
        struct request request = {.method = "POST"};
        char query[WAIT_QUERY_SIZE];
        enum exit_status status;

        wait_query(context, wait, "wait=ready", query);
        if (asprintf(&rest, "/restart%s", query) < 0)
                rest = NULL;
        path = rest ? device_path(name, rest) : NULL;
        if (path && context->settings->accept_write_errors)
                path = url_add_parameter(path, "accept-write-errors", context->settings->accept_write_errors);
        if (path && context->settings->drop_last_copy)
                path = url_add_parameter(path, "drop-last-copy", "true");
        if (!path)
                return STATUS_FAILED;
        request.path = path;
        request.patience = wait ? context->settings->timeout : 0;
        request.tick = wait ? watch_or_end : NULL;
        request.userdata = &watch;
        status = call(context, &request, name, &answer);
        progress_end();
        if (watch.host_down)
                print_in_force(name);
        if (status == STATUS_OK)
                print_done(name, wait ? "restarted" : "is being restarted");
        return status;
}

enum exit_status verb_recover(struct context *context, int argc, char *argv[])
{
        if (context->settings->accept_backing && argc > 1) {
                complain(NULL, "--accept-backing applies to one device only; name one.");
                return STATUS_USAGE;
        }
        return for_each_name(context, argc, argv, recover_one);
}

enum exit_status verb_restart(struct context *context, int argc, char *argv[])
{
        if (context->settings->accept_write_errors && argc > 1) {
                complain(NULL, "--accept-write-errors applies to one device only; name one.");
                return STATUS_USAGE;
        }
        return for_each_name(context, argc, argv, restart_one);
}
