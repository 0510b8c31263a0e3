/* SPDX-License-Identifier: MIT */
/* What a change of a device would do to its disk. */
#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"

#include "ublkd/kernel/kernel_name.h"
#include "ublkd/values/path_text.h"

#include <string.h>

enum device_change device_change_of(
        const struct device_record *record, const struct device_spec *spec, struct disk_change *ret)
{
        const struct disk_now disk = device_record_disk(record);
        struct disk_change change = {.field = "target"};

        if (record->spec && record->spec->options.enabled && !spec->options.enabled)
                return CHANGE_DISABLES;
        if (record->spec && !device_spec_needs_new_disk(record->spec, spec, &disk, &change))
                return CHANGE_IN_PLACE;
        if (ret)
                *ret = change;
        return CHANGE_REPLACES_DISK;
}

bool device_change_must_wait(const struct device_record *record, const struct device_spec *spec)
{
        const struct disk_now disk = device_record_disk(record);
        struct disk_change change;

        return record->status.reason == REASON_RESTARTING && record->spec
               && device_spec_needs_new_disk(record->spec, spec, &disk, &change);
}

int device_disk_number(const struct device_record *record)
{
        bool known = record->spec && record->status.phase != PHASE_PENDING
                     && record->status.phase != PHASE_UNKNOWN && record->age == RECORD_CURRENT;

        return known && !record->status.disk ? -1 : record->number;
}

static const cJSON *target_member(const struct device_spec *spec, const char *name)
{
        const cJSON *target = spec ? cJSON_GetObjectItemCaseSensitive(spec->document, "target") : NULL;

        return cJSON_GetObjectItemCaseSensitive(target, name);
}

const char *device_spec_pool(const struct device_spec *spec)
{
        return cJSON_GetStringValue(target_member(spec, "pool"));
}

/* Of the key of a tenant that this ublkd does not know. No file belongs to it: 2^32 - 1 stands for none in the kernel. */
enum { NO_USER = UINT32_MAX - 1 };

uid_t device_store_user(const struct device_record *record, const struct device_spec *spec)
{
        uid_t user;

        if (!device_spec_path(spec) || device_spec_pool(spec) || !tenant_is_set(record->tenant))
                return 0;
        return tenant_user(record->tenant, &user) ? user : NO_USER;
}

bool device_spec_keeps_image(const struct device_spec *spec)
{
        return cJSON_IsTrue(target_member(spec, "keep"));
}

static bool texts_equal(const char *one, const char *other)
{
        return one && other && strcmp(one, other) == 0;
}

bool device_spec_stores_equal(const struct device_spec *one, const struct device_spec *other)
{
        return device_spec_targets_equal(one, other)
               || (texts_equal(device_spec_pool(one), device_spec_pool(other))
                       && texts_equal(device_spec_path(one), device_spec_path(other)));
}

const char *device_spec_explain_paths(const struct device_spec *spec, const char **ret_field)
{
        bool is_list = device_spec_has_list(spec);

        *ret_field = is_list ? "target" : "target.path";
        return is_list ? "one of its paths (see the condition PathLeadsToStore)" : device_spec_path(spec);
}

int device_spec_path_is_unstable(const struct device_record *record, const struct device_spec *spec)
{
        for (unsigned i = 0; i < device_spec_stores(spec); i++) {
                const char *path = device_spec_store_path(spec, i);
                _cleanup_free_ char *clean = NULL;
                int r;

                if (!path || (record && record->spec && device_spec_names_store(record->spec, path)))
                        continue;
                r = path_make_absolute("/", path, &clean);
                if (r < 0)
                        return r;
                if (kernel_name_may_change(clean))
                        return (int)i + 1;
        }
        return 0;
}
