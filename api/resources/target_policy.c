/* SPDX-License-Identifier: MIT */
/* Refuse targets that are for tests, unless a setting of ublkd allows them. */
#include "api/resources/target_policy.h"

#include "api/http/respond.h"
#include "api/http/server.h"

#include <string.h>

bool targets_are_allowed(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        _cleanup_problems_ struct problem_list problems = {};
        char pointer[TARGET_POINTER_SIZE + 8];
        int node = target_tree_new_for_tests(spec->tree, record && record->spec ? record->spec->tree : NULL);
        int r;

        if (node < 0 || request->api->config.allow_fault_target)
                return true;
        target_tree_pointer(spec->tree, (unsigned)node, pointer);
        strcat(pointer, "/type");
        r = problem_add(&problems, EINVAL, pointer, reason_to_string(REASON_TEST_TARGET_NOT_ALLOWED),
                "The target %s is for tests, and this ublkd refuses it (--allow-fault-target no); give "
                "another target.",
                spec->tree->nodes[node].desc->name);
        if (r < 0)
                reply_error(request, r, "Cannot read the spec");
        else
                reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        return false;
}
