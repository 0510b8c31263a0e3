/* SPDX-License-Identifier: MIT */
/* Choose the path of an image. */
#include "api/resources/pool_path.h"

#include "api/http/respond.h"
#include "api/http/server.h"
#include "ublkd/pools/pool_spec.h"

bool pool_path_settle(struct request *request, const struct device_record *record, struct device_spec **spec)
{
        const struct api_config *config = &request->api->config;
        _cleanup_problems_ struct problem_list problems = {};
        int r = pool_spec_resolve(config->rights.policy, record, spec, &problems);

        if (r >= 0 || (r == -EEXIST && request->method == METHOD_POST))
                return true;
        if (r == -EEXIST)
                reply_problems(request, PROBLEM_NOT_POSSIBLE_NOW, &problems);
        else if (r == -EINVAL)
                reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        else
                reply_error(request, r, "Cannot choose the path of the image");
        return false;
}
