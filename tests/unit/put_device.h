/* SPDX-License-Identifier: MIT */
/* Store a device as a client does with PUT, for tests. */
#pragma once

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"
#include "ublkd/store/device_store.h"

#include <errno.h>

/* Create a device of a tenant (NULL: of the administrators), or replace its spec. text: the spec, which must be valid.
 * Return the result of device_store_put(). */
static inline int put_device_of(struct device_store *store, const char *text, const char *tenant)
{
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE, .tenant = tenant};
        _cleanup_problems_ struct problem_list problems = {};
        const struct device_record *record = NULL;
        struct device_spec *spec = spec_of(text);
        enum put_outcome outcome;
        int r;

        if (!spec)
                return -EINVAL;
        r = device_store_put(store, spec, &condition, &record, &outcome, &problems);
        if (r < 0)
                device_spec_free(spec);
        else
                CHECK(record && record->spec);
        return r;
}

static inline int put_device(struct device_store *store, const char *text)
{
        return put_device_of(store, text, NULL);
}

/* Put a null disk of 1 MiB. more: further fields of the spec (",\"id\":3"), or "". */
static inline int put_null_disk(struct device_store *store, const char *name, const char *more)
{
        char text[256];
        int n = snprintf(text, sizeof(text),
                "{\"name\":\"%s\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"%s}", name, more);

        CHECK(n > 0 && n < (int)sizeof(text));
        return put_device(store, text);
}
