/* delete: all removals are asked for before the first one is waited for. */
#include "ublkctl/remove.h"

#include "ublkctl/await.h"
#include "ublkctl/terminal.h"
#include "ublkctl/verbs.h"

#include <stdio.h>

enum exit_status request_removal(
        struct context *context, const char *name, bool quiet_missing, bool *ret_missing)
{
        _cleanup_free_ char *path = device_path(name, context->settings->force ? "?force=true" : "");
        struct request request = {.method = "DELETE", .path = path};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status =
                path ? client_ask(context->client, &request, false, &answer) : STATUS_FAILED;

        bool missing = quiet_missing && status == STATUS_OK && is_problem(&answer, "no-such-device");

        if (ret_missing)
                *ret_missing = missing;
        if (status != STATUS_OK || answer.status < 400 || missing)
                return status;
        return report_problem(&request, name, &answer);
}

struct removal {
        enum exit_status status; /* of asking for it */
        bool missing;            /* there was nothing to remove */
};

enum exit_status remove_devices(struct context *context, size_t count, const char *const *names)
{
        uint64_t deadline = now_usec() + context->settings->timeout;
        _cleanup_free_ struct removal *asked = calloc(count, sizeof(*asked));
        enum exit_status status = STATUS_OK;

        for (size_t i = 0; asked && i < count; i++) {
                asked[i].status = request_removal(
                        context, names[i], context->settings->ignore_missing, &asked[i].missing);
                status = exit_status_merge(status, asked[i].status);
                if (asked[i].status == STATUS_NO_DAEMON)
                        return status;
        }
        for (size_t i = 0; asked && i < count; i++) {
                enum exit_status one = STATUS_OK;

                if (asked[i].status != STATUS_OK)
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
