/* SPDX-License-Identifier: MIT */
/* The spec of a device from its text, for tests. */
#pragma once

#include "tests/unit/check.h"
#include "ublkd/model/device_spec.h"

/* Return the spec that `text` says, which must be valid; the caller frees it. NULL after a failed check: it is not. */
static inline struct device_spec *spec_of(const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = NULL;
        cJSON *document = cJSON_Parse(text);

        if (!CHECK(document) || !CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0))
                fprintf(stderr, "in: %s: %s\n", text,
                        problems.count > 0 ? problems.items[0].detail : "not JSON");
        cJSON_Delete(document);
        return spec;
}
