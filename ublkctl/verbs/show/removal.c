/* SPDX-License-Identifier: MIT */
/* What a removal of a device would do, which also shows who uses its disk now. */
#include "ublkctl/verbs/show/removal.h"

#include "ublkctl/client/url.h"
#include "ublkctl/text/json_path.h"

#include <string.h>

enum exit_status removal_foresee(struct context *context, const char *name, bool quiet, cJSON **ret)
{
        _cleanup_free_ char *path = device_path(name, "?dryRun=true&force=true&drop-last-copy=true");
        struct request request = {.method = "DELETE", .path = path};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status;

        if (!path)
                return STATUS_FAILED;
        status = quiet ? client_ask(context->client, &request, true, &answer)
                       : call(context, &request, name, &answer);
        if (status == STATUS_OK && answer.status >= 400)
                return STATUS_FAILED;
        if (status == STATUS_OK)
                *ret = TAKE_PTR(answer.json);
        return status;
}

bool removal_loses_data(const cJSON *foreseen)
{
        return json_true(foreseen, "lastCopy");
}

const char *removal_users(const cJSON *foreseen)
{
        const char *use = json_text(foreseen, "use"), *users = json_text(foreseen, "users");
        bool used = use && (strcmp(use, "used") == 0 || strcmp(use, "unknown") == 0);

        return !used ? NULL : users ? users : "";
}
