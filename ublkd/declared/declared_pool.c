/* SPDX-License-Identifier: MIT */
/* The path of an image, for the spec of a file that names a pool. */
#include "ublkd/declared/declared_pool.h"

#include "ublkd/base/sentence.h"

#include <errno.h>
#include <string.h>

int declared_pool_resolve(const struct policy *policy, const struct device_record *record,
        const struct device_spec *spec, struct device_spec **ret, char **ret_why)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *copy = NULL;
        _cleanup_free_ char *why = NULL;
        int r = device_spec_parse(spec->document, NULL, &copy, &problems);

        if (r < 0)
                return -ENOMEM; /* it was valid before */
        r = pool_spec_resolve(policy, record, &copy, &problems);
        if (r < 0) {
                why = sentence_print("%s.", problems.count > 0 ? problems.items[0].detail : strerror(-r));
                if (!why)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(copy);
        *ret_why = TAKE_PTR(why);
        return 0;
}
