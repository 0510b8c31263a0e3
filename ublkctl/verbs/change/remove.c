/* SPDX-License-Identifier: MIT */
/* delete: send all removals before waiting for the first. */
#include "ublkctl/verbs/change/remove.h"

#include "ublkctl/verbs/show/await.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include <stdio.h>
#include <string.h>

static void judge(const struct request *request, struct answer *answer, const struct removal_mode *mode,
        struct removal *removal)
{
        if (removal->status != STATUS_OK)
                return;
        if (answer->status < 400) {
                removal->foreseen = mode->dry_run ? TAKE_PTR(answer->json) : NULL;
                return;
        }
        removal->missing = mode->quiet_missing && is_problem(answer, "no-such-device");
        if (removal->missing)
                return;
        removal->status = report_problem(request, removal->name, answer);
        removal->in_use = is_problem(answer, "in-use");
}

/* Print the advice once for all, after what the user should try first. */
static void advise_force(const struct removal *removals, size_t count, const struct removal_mode *mode)
{
        bool in_use = false;

        for (size_t i = 0; i < count; i++)
                in_use = in_use || removals[i].in_use;
        if (in_use && mode->force_sentence)
                complain(NULL, "%s", mode->force_sentence);
}

static const char *query_of(const struct removal *removal, const struct removal_mode *mode)
{
        static const char *const queries[2][2][2] = {
                {{"?drop-last-copy=false", "?drop-last-copy=false&force=true"},
                 {"?drop-last-copy=true", "?drop-last-copy=true&force=true"}                        },
                {{"?dryRun=true&drop-last-copy=false", "?dryRun=true&drop-last-copy=false&force=true"},
                 {"?dryRun=true&drop-last-copy=true", "?dryRun=true&drop-last-copy=true&force=true"}},
        };

        return queries[mode->dry_run][mode->drop_last_copy][removal->force];
}

static bool make_requests(const struct removal *removals, size_t count, const struct removal_mode *mode,
        struct request *requests, char **paths)
{
        for (size_t i = 0; i < count; i++) {
                paths[i] = device_path(removals[i].name, query_of(&removals[i], mode));
                if (!paths[i])
                        return false;
                requests[i] =
                        (struct request){.method = "DELETE", .path = paths[i], .if_match = removals[i].etag};
        }
        return true;
}

enum exit_status request_removals(
        struct context *context, size_t count, struct removal *removals, const struct removal_mode *mode)
{
        _cleanup_free_ struct request *requests = calloc(count + 1, sizeof(*requests));
        _cleanup_free_ struct answer *answers = calloc(count + 1, sizeof(*answers));
        _cleanup_free_ enum exit_status *statuses = calloc(count + 1, sizeof(*statuses));
        _cleanup_free_ char **paths = calloc(count + 1, sizeof(*paths));
        bool good = requests && answers && statuses && paths
                    && make_requests(removals, count, mode, requests, paths);

        if (good)
                client_ask_all(context->client, requests, count, statuses, answers);
        for (size_t i = 0; paths && i < count; i++) {
                if (good) {
                        removals[i].status = statuses[i];
                        judge(&requests[i], &answers[i], mode, &removals[i]);
                        answer_clear(&answers[i]);
                }
                free(paths[i]);
        }
        if (good)
                advise_force(removals, count, mode);
        return good ? STATUS_OK : STATUS_FAILED;
}

/* After an accepted removal: wait if the options say so, and print the result. */
static enum exit_status finish_one(struct context *context, const struct removal *removal, uint64_t deadline)
{
        bool no_wait = context->settings->no_wait;
        enum exit_status status = STATUS_OK;

        if (!no_wait && !removal->missing)
                status = await_device(context, removal->name, WAIT_FOR_GONE, deadline);
        if (status != STATUS_OK)
                return status;
        print_safely(stdout, removal->name);
        puts(removal->missing ? " does not exist" : no_wait ? " is being removed" : " removed");
        return STATUS_OK;
}

enum exit_status remove_devices(struct context *context, size_t count, const char *const *names)
{
        const struct removal_mode mode = {.quiet_missing = context->settings->ignore_missing,
                .drop_last_copy = context->settings->drop_last_copy,
                .force_sentence = "If that is impossible, --force removes the disk anyway: its users get "
                                  "I/O errors and lose unwritten data."};
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        _cleanup_free_ struct removal *removals = calloc(count + 1, sizeof(*removals));
        enum exit_status status = removals ? STATUS_OK : STATUS_FAILED;

        for (size_t i = 0; removals && i < count; i++)
                removals[i] = (struct removal){.name = names[i], .force = context->settings->force};
        if (removals)
                status = request_removals(context, count, removals, &mode);
        if (status != STATUS_OK)
                return status;
        for (size_t i = 0; i < count; i++)
                status = exit_status_merge(status, removals[i].status != STATUS_OK
                                                           ? removals[i].status
                                                           : finish_one(context, &removals[i], deadline));
        return status;
}

enum exit_status verb_delete(struct context *context, int argc, char *argv[])
{
        return remove_devices(context, (size_t)argc, (const char *const *)argv);
}
