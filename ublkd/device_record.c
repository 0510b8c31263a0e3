/* One record: made, read back from where it was stored, shown. */
#include "ublkd/device_record.h"

#include "ublkd/base/clock.h"

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
        return device_status_explain(&record->status, "Pending", "The device waits for its first look.");
}

/* Keeps what cannot be used: it can be seen and deleted, and others start. */
static int quarantine(struct device_record *record, const struct problem_list *problems)
{
        const struct problem *first = problems->count > 0 ? &problems->items[0] : NULL;
        int n;

        if (!first)
                n = asprintf(&record->quarantine, "its stored spec is not JSON");
        else
                n = asprintf(&record->quarantine, "%s%s%s", first->pointer, *first->pointer ? ": " : "",
                        first->detail);
        if (n < 0) {
                record->quarantine = NULL;
                return -ENOMEM;
        }
        record->status.phase = PHASE_FAILED;
        record->status.observed_generation = record->generation;
        return device_status_explain(&record->status, "Quarantined",
                "The stored spec cannot be used (%s); nothing is done with this device until it is replaced "
                "or deleted.",
                record->quarantine);
}

int device_record_parse(struct device_record *record, const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *document = cJSON_Parse(text);
        int r = document ? device_spec_parse(document, record->name, &record->spec, &problems) : -EINVAL;

        cJSON_Delete(document);
        return r == -EINVAL ? quarantine(record, &problems) : r;
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
                        "), and the request says that it must not.",
                        record->name, record->generation);
                return -ESTALE;
        }
        if (!record && (condition->match_any || condition->match_generation)) {
                (void)problem_add(problems, ESTALE, "", "PreconditionFailed",
                        "There is no such device, and the request says that there must be one.");
                return -ESTALE;
        }
        if (condition->match_generation && condition->match_generation != record->generation) {
                (void)problem_add(problems, ESTALE, "", "PreconditionFailed",
                        "The device %s is at generation %" PRIu64 ", not %" PRIu64
                        ": someone changed it; read it again.",
                        record->name, record->generation, condition->match_generation);
                return -ESTALE;
        }
        return 0;
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
                .can_grow = kernel_can(record->status.kernel_flags, KERNEL_ABILITY_GROW),
        };
}

cJSON *device_record_to_json(const struct device_record *record)
{
        cJSON *object = cJSON_CreateObject(), *status = device_status_to_json(&record->status, record->name);
        cJSON *spec = record->spec ? cJSON_Duplicate(record->spec->document, true) : cJSON_CreateNull();

        if (object && status && spec && cJSON_AddStringToObject(object, "name", record->name)
                && cJSON_AddStringToObject(object, "uid", record->uid)
                && cJSON_AddNumberToObject(object, "generation", (double)record->generation)
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
