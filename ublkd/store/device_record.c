/* SPDX-License-Identifier: MIT */
/* One record: created, parsed from the stored columns, shown as JSON. */
#include "ublkd/store/device_record.h"
#include "ublkd/model/device_spec_store.h"

#include "ublkd/base/clock.h"
#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_time.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-id128.h>

static_assert(UID_TEXT_SIZE == SD_ID128_UUID_STRING_MAX, "a uid is a UUID");

uint64_t device_record_now(void)
{
        return clock_usec(CLOCK_REALTIME);
}

int device_record_explain_pending(struct device_record *record)
{
        device_status_clear(&record->status);
        record->status.transition_at = device_record_now();
        return device_status_explain(
                &record->status, REASON_PENDING, "ublkd has not looked at the device yet.");
}

int device_record_explain_unseen(struct device_record *record)
{
        int r = device_record_explain_pending(record);

        record->status.phase = PHASE_UNKNOWN;
        if (r < 0)
                return r;
        return device_status_explain(&record->status, REASON_NOT_YET_KNOWN,
                "ublkd has not looked at the device yet; whether it has a disk is unknown.");
}

int device_record_explain_quarantine(const struct device_record *record, struct device_status *status)
{
        return device_status_explain(status, REASON_QUARANTINED,
                "The stored record cannot be used (%s); ublkd does nothing with this device until a client "
                "%s it.",
                record->quarantine,
                record_stores_are_unreadable(record->stores) ? "deletes" : "replaces or deletes");
}

int device_record_explain_age(const struct device_record *record, struct device_status *status)
{
        char disk[96] = "";

        if (record->age == RECORD_REMOVED)
                return device_status_explain(status, REASON_RECORD_REMOVED,
                        "The database is an older copy: this device was removed after that copy was made. "
                        "ublkd does not start it. To start it again run 'ublkctl adopt %s' (POST "
                        "/devices/adopt).",
                        record->name);
        if (status->disk && status->worker.pid > 0)
                snprintf(disk, sizeof(disk), " Its disk /dev/ublkb%d exists, and process %d serves it.",
                        status->number, (int)status->worker.pid);
        else if (status->disk)
                snprintf(disk, sizeof(disk),
                        " Its disk /dev/ublkb%d exists, and no process serves it: its I/O waits.",
                        status->number);
        return device_status_explain(status, REASON_RECORD_OUTDATED,
                "The database is an older copy: the runtime directory has a newer record of this device.%s "
                "ublkd does not touch the disk and its worker until 'ublkctl adopt %s' (POST /devices/adopt) "
                "takes over the newer record.",
                disk, record->name);
}

void device_record_clear(struct device_record *record)
{
        free(record->name);
        free(record->quarantine);
        free(record->source);
        free(record->source_trouble);
        device_actions_free(record->actions);
        record_stores_free(record->stores);
        device_spec_free(record->spec);
        device_status_clear(&record->status);
        *record = (struct device_record){};
}

const struct backing_identity *device_record_backing(
        const struct device_record *record, unsigned number, const char **ret_boot)
{
        static const struct backing_identity empty;
        bool listed = record->spec && device_spec_has_list(record->spec);
        const char *path = listed ? device_spec_store_path(record->spec, number) : NULL;
        const struct record_store *store = path ? record_stores_at(record->stores, number, path) : NULL;

        if (ret_boot)
                *ret_boot = store ? store->boot : listed ? "" : record->backing_boot;
        if (listed)
                return store ? &store->identity : &empty;
        return &record->backing;
}

/* Keep an unusable record: clients can see and delete it, and the other devices start. Takes over `why`. */
static int quarantine(struct device_record *record, char *why)
{
        if (!why)
                return -ENOMEM;
        free(record->quarantine);
        record->quarantine = why;
        record->status.phase = PHASE_FAILED;
        record->status.observed_generation = record->generation;
        return device_record_explain_quarantine(record, &record->status);
}

static int quarantine_spec(struct device_record *record, const struct problem_list *problems)
{
        const struct problem *first = problems->count > 0 ? &problems->items[0] : NULL;
        char *why = NULL;

        if (!first)
                return quarantine(record, strdup("its spec is not JSON"));
        if (asprintf(&why, "%s%s%s", first->pointer, *first->pointer ? ": " : "", first->detail) < 0)
                return -ENOMEM;
        return quarantine(record, why);
}

static bool uid_is_valid(const char *uid)
{
        sd_id128_t id;

        return strlen(uid) == UID_TEXT_SIZE - 1 && sd_id128_from_string(uid, &id) >= 0;
}

int device_record_quarantine(struct device_record *record, const char *why)
{
        device_spec_free(record->spec);
        record->spec = NULL;
        return quarantine(record, strdup(why));
}

int device_record_sanitize(struct device_record *record)
{
        const char *wrong = NULL;
        sd_id128_t id;
        int r;

        if (record->generation == 0 || record->generation > (UINT64_C(1) << 53)) {
                wrong = "its generation is not a number above 0";
                record->generation = 1;
        }
        if (record->epoch == 0) {
                wrong = "its epoch is 0";
                record->epoch = 1;
        }
        if (record->number < -1 || record->number > DEVICE_NUMBER_MAX) {
                wrong = "its kernel number cannot be one";
                record->number = -1;
        }
        if (!uid_is_valid(record->uid)) {
                wrong = "its uid is not a UUID";
                r = sd_id128_randomize(&id);
                if (r < 0)
                        return r;
                sd_id128_to_uuid_string(id, record->uid);
        }
        if (!device_name_is_valid(record->name))
                wrong = "its name cannot be that of a device";
        return wrong ? device_record_quarantine(record, wrong) : 0;
}

/* An older ublkd, which knows no lists, leaves the identities of a list beside the spec of a single store that it has
 * stored since, also of a list that this ublkd cannot read. Those of the other kind are of an earlier disk. */
static void drop_identities_of_the_other_kind(struct device_record *record)
{
        if (device_spec_has_list(record->spec)) {
                record->backing = (struct backing_identity){};
                record->backing_boot[0] = '\0';
        } else
                record->stores = record_stores_free(record->stores);
}

int device_record_parse(struct device_record *record, const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *document = cJSON_Parse(text);
        int r = document ? device_spec_parse(document, record->name, &record->spec, &problems) : -EINVAL;

        cJSON_Delete(document);
        if (r >= 0)
                drop_identities_of_the_other_kind(record);
        return r == -EINVAL ? quarantine_spec(record, &problems) : r;
}

int device_record_new(const struct device_spec *spec, struct device_record *ret)
{
        struct device_record record = {
                .generation = 1, .epoch = 1, .number = -1, .created_at = device_record_now()};
        sd_id128_t id;
        int r = sd_id128_randomize(&id);

        if (r < 0)
                return r;
        sd_id128_to_uuid_string(id, record.uid);
        record.name = strdup(spec->options.name);
        if (!record.name)
                return -ENOMEM;
        r = device_record_explain_pending(&record);
        if (r < 0) {
                free(record.name);
                return r;
        }
        *ret = record;
        return 0;
}

int device_record_check(const struct device_record *record, const struct put_condition *condition,
        struct problem_list *problems)
{
        if (record && condition->must_not_exist) {
                (void)problem_add(problems, ESTALE, "", "PreconditionFailed",
                        "The device %s exists already (generation %" PRIu64
                        "), and the request requires that it does not.",
                        record->name, record->generation);
                return -ESTALE;
        }
        if (!record && (condition->match_any || condition->match_generation)) {
                (void)problem_add(problems, ESTALE, "", "PreconditionFailed",
                        "The device does not exist, and the request requires that it does.");
                return -ESTALE;
        }
        if (condition->match_generation && condition->match_generation != record->generation) {
                (void)problem_add(problems, ESTALE, "", "PreconditionFailed",
                        "The device %s is at generation %" PRIu64 ", not %" PRIu64
                        ": another client changed it; read it again.",
                        record->name, record->generation, condition->match_generation);
                return -ESTALE;
        }
        return 0;
}

bool device_record_has_source(const struct device_record *record, const char *source)
{
        return record->source && source ? strcmp(record->source, source) == 0 : !record->source && !source;
}

int device_record_refuse_owned(const struct device_record *record, struct problem_list *problems)
{
        (void)problem_add(problems, EPERM, "", reason_to_string(REASON_OWNED_BY_FILE),
                "The device %s is described by the file %s, and only that file changes or removes it. Edit "
                "the file, "
                "and run 'systemctl reload ublkd'.",
                record->name, record->source);
        return -EPERM;
}

int device_record_boot(char ret[static UID_TEXT_SIZE])
{
        sd_id128_t id;
        int r = sd_id128_get_boot(&id);

        if (r >= 0)
                sd_id128_to_uuid_string(id, ret);
        return r < 0 ? r : 0;
}

void device_record_restart(struct device_record *record)
{
        record->restart++;
        record->recover_requested = true;
        if (record->spec && device_spec_on_crash(record->spec) == ON_CRASH_NONE) {
                record->epoch++;
                record->held_boot[0] = '\0';
        }
}

struct disk_now device_record_disk(const struct device_record *record)
{
        return (struct disk_now){
                .number = record->number,
                .size = record->status.disk ? record->status.size : 0,
                .can_grow = kernel_has_feature(record->status.kernel_flags, KERNEL_FEATURE_GROW),
        };
}

/* Add the path of the backing store from the spec, if the target has one, and those of a list. */
static bool add_paths(cJSON *status, const struct device_record *record)
{
        cJSON *backing = cJSON_GetObjectItemCaseSensitive(status, "backing"), *item;
        const struct device_spec *spec = record->spec;
        bool listed = spec && device_spec_has_list(spec);
        unsigned number = 0;

        if (!cJSON_IsObject(backing))
                return true;
        cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(backing, "stores"))
                if (!json_add_text(item, "path", spec ? device_spec_store_path(spec, number++) : NULL))
                        return false;
        return json_add_text(backing, "path", listed ? NULL : device_spec_path(spec));
}

size_t device_record_mount_holders(const struct device_record *record)
{
        char boot[UID_TEXT_SIZE];

        return device_record_boot(boot) >= 0 ? mount_holders_count(record->mount_holders, boot) : 0;
}

static cJSON *filesystem_to_json(const struct filesystem *filesystem)
{
        cJSON *object;

        if (filesystem->stage == FILESYSTEM_NONE || filesystem->stage == FILESYSTEM_UNKNOWN)
                return cJSON_CreateNull();
        object = cJSON_CreateObject();
        if (object && cJSON_AddStringToObject(object, "type", filesystem_kind_name(filesystem->kind))
                && cJSON_AddStringToObject(object, "uuid", filesystem->uuid)
                && cJSON_AddStringToObject(object, "state", filesystem_stage_name(filesystem->stage)))
                return object;
        cJSON_Delete(object);
        return NULL;
}

/* Add the file system that ublkd makes on the disk. */
static bool add_filesystem(cJSON *status, const struct device_record *record)
{
        struct filesystem filesystem = filesystem_of_note(record->filesystem);
        cJSON *object = filesystem_to_json(&filesystem);

        if (object && cJSON_AddItemToObject(status, "filesystem", object))
                return json_add_text(status, "mount", *record->mount ? record->mount : NULL)
                       && json_add_integer(status, "mountHolders", device_record_mount_holders(record));
        cJSON_Delete(object);
        return false;
}

/* Add who may change the device. */
static bool add_owners(cJSON *object, const struct device_record *record)
{
        return json_add_text(object, "source", record->source)
               && json_add_text(object, "tenant", tenant_is_set(record->tenant) ? record->tenant : NULL);
}

cJSON *device_record_to_json(const struct device_record *record, enum reader reader)
{
        cJSON *object = cJSON_CreateObject(),
              *status = device_status_to_json(
                      &record->status, tenant_is_set(record->tenant) ? NULL : record->name, reader);
        cJSON *spec = record->spec ? cJSON_Duplicate(record->spec->document, true) : cJSON_CreateNull();

        if (object && status && spec && add_paths(status, record) && add_filesystem(status, record)
                && cJSON_AddStringToObject(object, "name", record->name)
                && cJSON_AddStringToObject(object, "uid", record->uid)
                && json_add_integer(object, "generation", record->generation)
                && json_add_time(object, "createdAt", record->created_at) && add_owners(object, record)
                && cJSON_AddItemToObject(object, "spec", spec)) {
                spec = NULL;
                if (cJSON_AddItemToObject(object, "status", status))
                        return object;
        }
        cJSON_Delete(spec);
        cJSON_Delete(status);
        cJSON_Delete(object);
        return NULL;
}

uint64_t device_record_transition_time(const struct device_status *from, const struct device_status *to)
{
        bool same = (from->phase == PHASE_LIVE) == (to->phase == PHASE_LIVE);

        return to->transition_at             ? to->transition_at
               : same && from->transition_at ? from->transition_at
                                             : device_record_now();
}
