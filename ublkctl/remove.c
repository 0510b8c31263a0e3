/* delete: all removals are asked for before the first one is waited for. */
#include "ublkctl/remove.h"

#include "ublkctl/await.h"
#include "ublkctl/terminal.h"
#include "ublkctl/verbs.h"

#include <stdio.h>

static void judge(const struct request *request, const char *name, const struct answer *answer,
        bool quiet_missing, struct removal *removal)
{
        if (removal->status != STATUS_OK || answer->status < 400)
                return;
        removal->missing = quiet_missing && is_problem(answer, "no-such-device");
        if (!removal->missing)
                removal->status = report_problem(request, name, answer);
}

static bool make_requests(const struct context *context, size_t count, const char *const *names,
        struct request *requests, char **paths)
{
        for (size_t i = 0; i < count; i++) {
                paths[i] = device_path(names[i], context->settings->force ? "?force=true" : "");
                if (!paths[i])
                        return false;
                requests[i] = (struct request){.method = "DELETE", .path = paths[i]};
        }
        return true;
}

struct removal *request_removals(
        struct context *context, size_t count, const char *const *names, bool quiet_missing)
{
        _cleanup_free_ struct request *requests = calloc(count + 1, sizeof(*requests));
        _cleanup_free_ struct answer *answers = calloc(count + 1, sizeof(*answers));
        _cleanup_free_ enum exit_status *statuses = calloc(count + 1, sizeof(*statuses));
        _cleanup_free_ char **paths = calloc(count + 1, sizeof(*paths));
        struct removal *removals = calloc(count + 1, sizeof(*removals));
        bool good = requests && answers && statuses && paths && removals
                    && make_requests(context, count, names, requests, paths);

        if (good)
                client_ask_all(context->client, requests, count, statuses, answers);
        for (size_t i = 0; paths && i < count; i++) {
                if (good) {
                        removals[i].status = statuses[i];
                        judge(&requests[i], names[i], &answers[i], quiet_missing, &removals[i]);
                        answer_clear(&answers[i]);
                }
                free(paths[i]);
        }
        if (good)
                return removals;
        free(removals);
        return NULL;
}

enum exit_status remove_devices(struct context *context, size_t count, const char *const *names)
{
        uint64_t deadline = now_usec() + context->settings->timeout;
        _cleanup_free_ struct removal *asked =
                request_removals(context, count, names, context->settings->ignore_missing);
        enum exit_status status = STATUS_OK;

        for (size_t i = 0; asked && i < count; i++) {
                enum exit_status one = asked[i].status;

                status = exit_status_merge(status, one);
                if (one != STATUS_OK)
                        continue;
                if (!context->settings->no_wait && !asked[i].missing)
                        one = await_device(context, names[i], WAIT_FOR_GONE, deadline);
                if (one == STATUS_OK) {
                        print_safely(stdout, names[i]);
                        puts(asked[i].missing                ? " is not there"
                                : context->settings->no_wait ? " is being removed"
                                                             : " removed");
                }
                status = exit_status_merge(status, one);
        }
        return asked ? status : STATUS_FAILED;
}

enum exit_status verb_delete(struct context *context, int argc, char *argv[])
{
        return remove_devices(context, (size_t)argc, (const char *const *)argv);
}
