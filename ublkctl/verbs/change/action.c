/* SPDX-License-Identifier: MIT */
/* action: start what takes its time, follow it, cancel it, list it. It goes on without ublkctl, and over a restart of
 * ublkd. */
#include "ublkctl/client/call.h"
#include "ublkctl/spec/assignments.h"
#include "ublkctl/text/amounts.h"
#include "ublkctl/text/bars.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/json_safe.h"
#include "ublkctl/text/table.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include "ublkd/base/clock.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_util.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
        LOOK_MS = 500,
        BAR_WIDTH = 30,
};

#define ABSENCE_USEC (UINT64_C(60) * 1000 * 1000) /* that long a ublkd may be away, to be restarted */

static bool has_ended(const cJSON *action)
{
        const char *state = json_text(action, "state");

        return state && strcmp(state, "Pending") != 0 && strcmp(state, "Running") != 0;
}

static char *action_path(const char *name, const char *rest)
{
        _cleanup_free_ char *below = NULL;

        if (asprintf(&below, "/actions%s%s", *rest ? "/" : "", rest) < 0) {
                below = NULL;
                return NULL;
        }
        return device_path(name, below);
}

static char *path_of(const char *name, const cJSON *action)
{
        char id[32];

        snprintf(id, sizeof(id), "%.0f", json_number(action, "id", 0));
        return action_path(name, id);
}

/* ---- what it looks like ---- */

static double share_of(const cJSON *action)
{
        double done = json_number(action, "progress.done", 0),
               total = json_number(action, "progress.total", 0);

        return total > 0 ? done / total : 0;
}

static void show_progress(const char *name, const cJSON *action)
{
        char bar[BAR_SIZE], done[AMOUNT_TEXT_SIZE], total[AMOUNT_TEXT_SIZE];
        const char *verb = json_text(action, "verb");
        _cleanup_free_ char *line = NULL;

        format_bytes(json_number(action, "progress.done", 0), done);
        format_bytes(json_number(action, "progress.total", 0), total);
        bar_draw(share_of(action), BAR_WIDTH, bars_have_blocks(), bar);
        if (asprintf(&line, "%s: %s %3.0f%% (%s of %s) %s", name, verb ? verb : "", 100 * share_of(action),
                    done, total, bar)
                < 0) {
                line = NULL;
                return;
        }
        progress_show(line);
}

/* Print how it has ended. Also one that has found something unreadable is a failure, for scripts. */
static enum exit_status report_end(const char *name, const cJSON *action)
{
        const char *state = json_text(action, "state"), *message = json_text(action, "message");
        const cJSON *result = json_find(action, "result");
        bool good = state && strcmp(state, "Succeeded") == 0;
        _cleanup_free_ char *text = cJSON_IsObject(result) ? json_print_indented(result) : NULL;

        if (!good)
                complain(name, "%s", message ? message : "The action failed.");
        if (text)
                json_print_safely(stdout, text);
        else if (good) {
                print_safely(stdout, message ? message : "");
                putchar('\n');
        }
        return good && json_number(result, "unreadable.count", 0) <= 0 ? STATUS_OK : STATUS_FAILED;
}

static enum exit_status print_list(struct context *context, const cJSON *list)
{
        static const char *const headings[] = {">ID", "ACTION", "STATE", ">DONE", "MESSAGE", NULL};
        const cJSON *action, *items = json_find(list, "items");
        _cleanup_table_ struct table *table = NULL;

        if (output_is_data(context->settings->output)) {
                _cleanup_free_ char *text = json_print_indented(items);

                json_print_safely(stdout, text ? text : "");
                return text ? STATUS_OK : STATUS_FAILED;
        }
        table = table_new(headings);
        if (!table)
                return STATUS_FAILED;
        cJSON_ArrayForEach (action, items) {
                table_add_format(table, "%.0f", json_number(action, "id", 0));
                table_add(table, json_text(action, "verb"));
                table_add(table, json_text(action, "state"));
                table_add_format(table, "%.0f%%", 100 * share_of(action));
                table_add(table, json_text(action, "message"));
        }
        return table_print(table, stdout, context->colours, 0, 0) < 0 ? STATUS_FAILED : STATUS_OK;
}

/* ---- what it does ---- */

static enum exit_status ask(struct context *context, const char *method, const char *name, const char *path,
        const cJSON *body, struct answer *ret)
{
        const struct request request = {.method = method, .path = path, .body = body};

        return path ? call(context, &request, name, ret) : STATUS_FAILED;
}

/* A ublkd that is being restarted is away, and so is one whose new socket does not have its owner and mode yet. */
static bool is_away(enum exit_status status, const struct answer *answer)
{
        return status == STATUS_NO_DAEMON || status == STATUS_TIMED_OUT || status == STATUS_NOT_ALLOWED
               || (status == STATUS_OK && answer->status == 503);
}

static enum exit_status give_up(const char *name, enum exit_status status)
{
        complain(name, "The action cannot be followed any more; it goes on if its worker does, and 'ublkctl "
                       "action NAME' lists it.");
        return status == STATUS_OK ? STATUS_FAILED : status;
}

/* Look once. While ublkd is away there is nothing new, and *ret is empty. Every other status than STATUS_OK has its
 * sentence on stderr. */
static enum exit_status look(
        struct context *context, const char *name, const char *path, uint64_t *away_since, struct answer *ret)
{
        const struct request request = {.method = "GET", .path = path};
        const uint64_t now = monotonic_now();
        const bool is_last = *away_since != 0 && now - *away_since >= ABSENCE_USEC;
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status;

        if (is_last)
                progress_end();
        status = client_ask(context->client, &request, !is_last, &answer);
        if (!is_last && is_away(status, &answer)) {
                *away_since = *away_since == 0 ? now : *away_since;
                return STATUS_OK;
        }
        *away_since = 0;
        if (status == STATUS_OK && answer.status >= 400)
                return report_problem(&request, name, &answer);
        if (status != STATUS_OK || !json_text(answer.json, "state"))
                return give_up(name, status);
        *ret = answer;
        answer = (struct answer){};
        return STATUS_OK;
}

static enum exit_status follow(struct context *context, const char *name, const cJSON *started)
{
        _cleanup_free_ char *path = path_of(name, started);
        uint64_t away_since = 0;

        if (!path)
                return STATUS_FAILED;
        for (;;) {
                _cleanup_answer_ struct answer answer = {};
                enum exit_status status = look(context, name, path, &away_since, &answer);

                if (status != STATUS_OK || has_ended(answer.json)) {
                        progress_end();
                        return status == STATUS_OK ? report_end(name, answer.json) : status;
                }
                if (context->progress && answer.json)
                        show_progress(name, answer.json);
                (void)poll(NULL, 0, LOOK_MS);
        }
}

static bool is_word(const char *text)
{
        return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

static enum exit_status start(
        struct context *context, const char *name, const char *verb, int argc, char *argv[])
{
        _cleanup_free_ char *path = action_path(name, verb);
        _cleanup_json_ cJSON *body = cJSON_CreateObject();
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status;

        if (!is_word(verb)) {
                complain(NULL, "action: the name of an action is of a-z, 0-9 and -; 'ublkctl targets -o "
                               "json' lists them.");
                return STATUS_USAGE;
        }
        status = body ? assignments_add(body, argc, argv) : STATUS_FAILED;
        if (status == STATUS_OK)
                status = ask(context, "POST", name, path, body, &answer);
        if (status != STATUS_OK)
                return status;
        if (!context->settings->no_wait)
                return follow(context, name, answer.json);
        printf("%.0f\n", json_number(answer.json, "id", 0));
        return STATUS_OK;
}

static enum exit_status cancel(struct context *context, const char *name, const cJSON *list)
{
        const cJSON *action, *current = NULL, *items = json_find(list, "items");
        _cleanup_answer_ struct answer answer = {};
        _cleanup_free_ char *path = NULL;
        enum exit_status status;

        cJSON_ArrayForEach (action, items)
                if (!has_ended(action))
                        current = action;
        if (!current) {
                complain(name, "No action is under way.");
                return STATUS_REFUSED;
        }
        path = path_of(name, current);
        status = ask(context, "DELETE", name, path, NULL, &answer);
        if (status != STATUS_OK)
                return status;
        if (has_ended(answer.json)) {
                complain(name, "The action has ended meanwhile.");
                return STATUS_REFUSED;
        }
        print_safely(stdout, json_text(current, "verb") ? json_text(current, "verb") : "");
        puts(" is being cancelled");
        return STATUS_OK;
}

enum exit_status verb_action(struct context *context, int argc, char *argv[])
{
        _cleanup_answer_ struct answer answer = {};
        _cleanup_free_ char *path = NULL;
        enum exit_status status;

        if (argc > 1 && context->settings->cancel) {
                complain(NULL, "action: --cancel takes the name of a device alone.");
                return STATUS_USAGE;
        }
        if (argc > 1)
                return start(context, argv[0], argv[1], argc - 2, argv + 2);
        path = action_path(argv[0], "");
        status = ask(context, "GET", argv[0], path, NULL, &answer);
        if (status != STATUS_OK)
                return status;
        return context->settings->cancel ? cancel(context, argv[0], answer.json)
                                         : print_list(context, answer.json);
}
