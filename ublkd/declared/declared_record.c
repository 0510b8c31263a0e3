/* SPDX-License-Identifier: MIT */
/* What the store has of a device, as the plan sees it. */
#include "ublkd/declared/declared_record.h"

enum declared_record declared_record_kind(const struct device_record *record)
{
        return !record                         ? DECLARED_NO_RECORD
               : record->age != RECORD_CURRENT ? DECLARED_NOT_RECENT
               : record->deleting              ? DECLARED_DELETING
               : record->source                ? DECLARED_OF_FILE
                                               : DECLARED_OF_CLIENT;
}

bool declared_record_is_owner(const void *store, const char *name, const char *path)
{
        const struct device_record *record = device_store_get(store, name);

        return record && device_record_has_source(record, path);
}

bool declared_record_any_gone(const struct device_store *store)
{
        DEVICE_STORE_FOREACH (record, store)
                if (record->source && !record->deleting && record->source_state == SOURCE_GONE)
                        return true;
        return false;
}
