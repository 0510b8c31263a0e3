/* SPDX-License-Identifier: MIT */
/* What a record keeps of its backing stores where its spec changes. */
#include "ublkd/store/store_carry.h"

#include "ublkd/model/device_spec_store.h"

#include <stdio.h>

int store_carry_list(
        const struct device_record *record, const struct device_spec *spec, struct record_stores **ret)
{
        _cleanup_record_stores_ struct record_stores *known = NULL;
        const char *path = record->spec ? device_spec_path(record->spec) : NULL;
        int r;

        if (!device_spec_has_list(spec)) {
                *ret = NULL;
                return 0;
        }
        if (!path || device_spec_has_list(record->spec) || backing_identity_is_empty(&record->backing))
                return record_stores_carry(record->stores, record->spec, spec, ret);
        r = record_stores_with(NULL, 0, path, &record->backing, record->backing_boot, &known);
        return r < 0 ? r : record_stores_carry(known, record->spec, spec, ret);
}

void store_carry_single(
        const struct device_record *record, const struct device_spec *spec, struct device_record *changed)
{
        bool was_listed = record->spec && device_spec_has_list(record->spec);
        const char *path = was_listed && !device_spec_has_list(spec) ? device_spec_path(spec) : NULL;
        const struct record_store *store = path ? record_stores_find(record->stores, path) : NULL;

        changed->backing = store ? store->identity : (struct backing_identity){};
        snprintf(changed->backing_boot, sizeof(changed->backing_boot), "%s", store ? store->boot : "");
}
