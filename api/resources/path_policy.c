/* SPDX-License-Identifier: MIT */
/* Check the path of a spec against the policy of this ublkd. */
#include "api/resources/path_policy.h"

#include "api/http/respond.h"
#include "api/http/server.h"
#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"

#include <string.h>

const char *path_policy_to_string(bool refuse)
{
        return refuse ? "refuse" : "warn";
}

static void refuse(struct request *request, const struct device_spec *spec, unsigned number)
{
        const char *path = device_spec_store_path(spec, number);
        char pointer[TARGET_POINTER_SIZE + 8];
        _cleanup_problems_ struct problem_list problems = {};
        int r;

        device_spec_store_pointer(spec, number, pointer);
        strcat(pointer, "/path");
        r = problem_add(&problems, EINVAL, pointer, "UnstablePath",
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
        int r;

        if (!request->api->config.refuse_unstable_paths)
                return true;
        r = device_spec_path_is_unstable(record, spec);
        if (r == 0)
                return true;
        if (r < 0)
                reply_error(request, r, "Cannot read the spec");
        else
                refuse(request, spec, (unsigned)r - 1);
        return false;
}
