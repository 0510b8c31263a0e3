/* SPDX-License-Identifier: MIT */
/* Check the path of a spec against the policy of this ublkd. */
#include "api/resources/path_policy.h"

#include "api/http/respond.h"
#include "api/http/server.h"
#include "ublkd/kernel/kernel_name.h"
#include "ublkd/values/path_text.h"

#include <string.h>

const char *path_policy_to_string(bool refuse)
{
        return refuse ? "refuse" : "warn";
}

const char *spec_path(const struct device_spec *spec)
{
        const cJSON *target = spec ? cJSON_GetObjectItemCaseSensitive(spec->document, "target") : NULL;

        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(target, "path"));
}

static bool is_kept(const struct device_record *record, const char *path)
{
        const char *before = record ? spec_path(record->spec) : NULL;

        return before && strcmp(before, path) == 0;
}

static void refuse(struct request *request, const char *path)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = problem_add(&problems, EINVAL, "/target/path", "UnstablePath",
                "%s is a name that the kernel may give to another disk after a reboot, and this ublkd "
                "refuses such names (--unstable-paths); give one that stays, such as a link in "
                "/dev/disk/by-id or /dev/mapper: 'udevadm info --query=symlink %s' lists them.",
                path, path);

        if (r < 0)
                reply_error(request, r, "Cannot read the spec");
        else
                reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
}

bool path_is_allowed(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        const char *path = spec_path(spec);
        _cleanup_free_ char *clean = NULL;
        int r;

        if (!request->api->config.refuse_unstable_paths || !path || is_kept(record, path))
                return true;
        r = path_make_absolute("/", path, &clean);
        if (r >= 0 && !kernel_name_may_change(clean))
                return true;
        if (r < 0)
                reply_error(request, r, "Cannot read the spec");
        else
                refuse(request, path);
        return false;
}
