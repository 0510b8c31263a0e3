/* SPDX-License-Identifier: MIT */
/* The status of a device: copies, comparison, and the JSON that the API shows. */
#include "ublkd/model/device_status.h"

#include "ublkd/base/sentence.h"
#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_time.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const phase_names[] = {
        [PHASE_PENDING] = "Pending",
        [PHASE_STARTING] = "Starting",
        [PHASE_LIVE] = "Live",
        [PHASE_RECOVERING] = "Recovering",
        [PHASE_BACKOFF] = "Backoff",
        [PHASE_QUIESCED] = "Quiesced",
        [PHASE_STOPPING] = "Stopping",
        [PHASE_DISABLED] = "Disabled",
        [PHASE_FAILED] = "Failed",
        [PHASE_UNKNOWN] = "Unknown",
};
static_assert(ARRAY_SIZE(phase_names) == _PHASE_MAX, "every phase has a name");

const char *device_phase_to_string(enum device_phase phase)
{
        assert(phase < _PHASE_MAX);
        return phase_names[phase];
}

int device_status_explain(struct device_status *status, enum condition_reason reason, const char *format, ...)
{
        char *new_message;
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vasprintf(&new_message, format, arguments);
        va_end(arguments);
        if (n < 0)
                return -ENOMEM;
        free(status->message);
        status->reason = reason;
        status->message = new_message;
        return 0;
}

int device_status_set_cause(struct device_status *status, const char *format, ...)
{
        va_list arguments;
        char *cause;
        int n;

        va_start(arguments, format);
        n = vasprintf(&cause, format, arguments);
        va_end(arguments);
        if (n < 0)
                return -ENOMEM;
        free(status->cause);
        status->cause = cause;
        return 0;
}

static struct store_status *copy_stores(const struct device_status *from)
{
        struct store_status *copy = calloc(from->store_count, sizeof(*copy));

        if (copy)
                memcpy(copy, from->stores, from->store_count * sizeof(*copy));
        return copy;
}

static bool stores_equal(const struct device_status *one, const struct device_status *other)
{
        if (one->store_count != other->store_count)
                return false;
        for (unsigned i = 0; i < one->store_count; i++) {
                const struct store_status *store = &one->stores[i], *twin = &other->stores[i];

                if (strcmp(store->pointer, twin->pointer) != 0 || store->kept != twin->kept
                        || !backing_identity_equal(&store->identity, &twin->identity)
                        || !backing_identity_equal(&store->found, &twin->found))
                        return false;
        }
        return true;
}

int device_status_copy(const struct device_status *from, struct device_status *ret)
{
        struct device_status copy = *from;

        copy.message = from->message ? strdup(from->message) : NULL;
        copy.cause = from->cause ? strdup(from->cause) : NULL;
        copy.conditions = (struct device_conditions){};
        copy.stores = from->store_count > 0 ? copy_stores(from) : NULL;
        if ((from->store_count > 0 && !copy.stores) || (from->message && !copy.message)
                || (from->cause && !copy.cause)
                || device_conditions_copy(&from->conditions, &copy.conditions) < 0) {
                device_status_clear(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

bool device_status_equal(const struct device_status *one, const struct device_status *other)
{
        return one->phase == other->phase && one->observed_generation == other->observed_generation
               && one->observed_restart == other->observed_restart
               && one->observed_asked == other->observed_asked && one->converged == other->converged
               && one->number == other->number && one->disk == other->disk && one->size == other->size
               && one->kept_bytes == other->kept_bytes && strcmp(one->node, other->node) == 0
               && one->worker.pid == other->worker.pid && one->worker.restarts == other->worker.restarts
               && one->worker.started_at == other->worker.started_at
               && strcmp(one->worker.version, other->worker.version) == 0
               && one->data_path == other->data_path
               && sentence_equal(one->data_path_reason, other->data_path_reason) && one->batch == other->batch
               && one->backing.known == other->backing.known && one->backing.kept == other->backing.kept
               && backing_identity_equal(&one->backing.identity, &other->backing.identity)
               && backing_identity_equal(&one->backing.found, &other->backing.found)
               && stores_equal(one, other) && one->kernel_flags == other->kernel_flags
               && one->recoveries.count == other->recoveries.count
               && one->recoveries.last_ms == other->recoveries.last_ms && one->reason == other->reason
               && one->quoted == other->quoted && sentence_equal(one->message, other->message)
               && sentence_equal(one->cause, other->cause) && one->attempts == other->attempts
               && one->next_try_at == other->next_try_at && one->transition_at == other->transition_at
               && one->faults.flush == other->faults.flush && one->faults.cut == other->faults.cut
               && one->faults.flush_at == other->faults.flush_at && one->faults.cut_at == other->faults.cut_at
               && io_errors_equal(&one->errors, &other->errors)
               && device_conditions_equal(&one->conditions, &other->conditions);
}

void device_status_clear(struct device_status *status)
{
        free(status->message);
        free(status->cause);
        free(status->stores);
        device_conditions_clear(&status->conditions);
        *status = (struct device_status){.number = -1};
}

static bool add_disk(cJSON *object, const struct device_status *status, const char *name)
{
        char node[32], link[sizeof("/dev/ublk/by-name/") + 64];
        cJSON *links, *item;

        snprintf(node, sizeof(node), "/dev/ublkb%d", status->number);
        snprintf(link, sizeof(link), "/dev/ublk/by-name/%s", name ? name : "");
        if (!json_add_text(object, "device", status->disk ? node : NULL)
                || !json_add_text(object, "node", *status->node ? status->node : NULL))
                return false;
        if (!(status->number >= 0 ? cJSON_AddNumberToObject(object, "id", status->number)
                                  : cJSON_AddNullToObject(object, "id")))
                return false;
        if (!(status->size > 0 ? json_add_integer(object, "size", status->size)
                               : cJSON_AddNullToObject(object, "size") != NULL))
                return false;
        links = cJSON_AddArrayToObject(object, "links");
        if (!links || !status->disk || !name)
                return links != NULL;
        item = cJSON_CreateString(link);
        if (cJSON_AddItemToArray(links, item))
                return true;
        cJSON_Delete(item);
        return false;
}

static bool add_worker(cJSON *object, const struct device_status *status)
{
        cJSON *worker;

        if (status->worker.pid == 0)
                return cJSON_AddNullToObject(object, "worker") != NULL;
        worker = cJSON_AddObjectToObject(object, "worker");
        return worker && cJSON_AddNumberToObject(worker, "pid", status->worker.pid)
               && json_add_integer(worker, "restarts", status->worker.restarts)
               && json_add_time(worker, "startedAt", status->worker.started_at)
               && json_add_text(worker, "version", *status->worker.version ? status->worker.version : NULL);
}

static bool add_data_path(cJSON *object, const struct device_status *status)
{
        return json_add_text(object, "dataPath", status->data_path)
               && json_add_text(object, "dataPathReason", status->data_path_reason)
               && (status->data_path ? cJSON_AddBoolToObject(object, "batch", status->batch)
                                     : cJSON_AddNullToObject(object, "batch"));
}

static bool add_features(cJSON *object, const struct device_status *status)
{
        cJSON *features = kernel_features_to_json(status->kernel_flags);

        if (features && cJSON_AddItemToObject(object, "kernelFeatures", features))
                return true;
        cJSON_Delete(features);
        return false;
}

static bool add_recoveries(cJSON *object, const struct device_status *status)
{
        cJSON *recoveries = cJSON_AddObjectToObject(object, "recoveries");
        uint64_t tenths = (uint64_t)(status->recoveries.last_ms * 10 + 0.5); /* more digits would be noise */

        return recoveries && json_add_integer(recoveries, "count", status->recoveries.count)
               && cJSON_AddNumberToObject(recoveries, "lastMs", (double)tenths / 10);
}

static bool add_identity(cJSON *object, const struct backing_identity *identity)
{
        const char *text = backing_identity_text(identity);

        return json_add_text(object, "identity", *text ? text : NULL)
               && json_add_text(object, "basis", backing_basis_to_string(identity->basis))
               && cJSON_AddBoolToObject(object, "lasting", *identity->lasting != '\0');
}

static bool add_found(cJSON *object, const struct backing_identity *identity)
{
        cJSON *found;

        if (backing_identity_is_empty(identity))
                return cJSON_AddNullToObject(object, "found") != NULL;
        found = cJSON_AddObjectToObject(object, "found");
        return found && add_identity(found, identity);
}

static bool add_store(cJSON *array, const struct store_status *store)
{
        cJSON *object = cJSON_CreateObject();

        if (!cJSON_AddItemToArray(array, object)) {
                cJSON_Delete(object);
                return false;
        }
        return cJSON_AddStringToObject(object, "target", store->pointer)
               && add_identity(object, &store->identity) && cJSON_AddBoolToObject(object, "kept", store->kept)
               && add_found(object, &store->found);
}

/* Those of a disk with a list; else there are none. */
static bool add_stores(cJSON *backing, const struct device_status *status)
{
        cJSON *array = cJSON_AddArrayToObject(backing, "stores");

        for (unsigned i = 0; array && i < status->store_count; i++)
                if (!add_store(array, &status->stores[i]))
                        return false;
        return array != NULL;
}

/* The paths come from the spec: see device_record_to_json(). */
static bool add_backing(cJSON *object, const struct device_status *status)
{
        cJSON *backing;

        if (!status->backing.known && status->store_count == 0
                && backing_identity_is_empty(&status->backing.found))
                return cJSON_AddNullToObject(object, "backing") != NULL;
        backing = cJSON_AddObjectToObject(object, "backing");
        if (!backing || !add_identity(backing, &status->backing.identity)
                || !cJSON_AddBoolToObject(backing, "kept", status->backing.kept))
                return false;
        return add_found(backing, &status->backing.found) && add_stores(backing, status);
}

bool device_status_needs_restart(const struct device_status *status)
{
        return status->conditions.of[CONDITION_NEEDS_RESTART].status == CONDITION_TRUE;
}

const char *device_status_reason(const struct device_status *status)
{
        return status->reason == REASON_NONE ? device_phase_to_string(status->phase)
                                             : reason_to_string(status->reason);
}

/* Add the token that accept-write-errors takes. */
static bool add_write_errors(cJSON *object, const struct device_status *status)
{
        char token[WRITE_ERRORS_TOKEN_SIZE];

        write_errors_token(&status->faults, token);
        return json_add_text(object, "writeErrors", *token ? token : NULL);
}

static const char *ready_status(enum device_phase phase)
{
        return phase == PHASE_LIVE ? "True" : phase == PHASE_UNKNOWN ? "Unknown" : "False";
}

const char *device_status_message(const struct device_status *status, enum reader reader)
{
        return tenant_text(reader, status->quoted, status->message);
}

static bool add_conditions(cJSON *object, const struct device_status *status, enum reader reader)
{
        const char *message = device_status_message(status, reader);
        cJSON *conditions = cJSON_AddArrayToObject(object, "conditions"), *ready = cJSON_CreateObject();

        if (!conditions || !ready || !cJSON_AddItemToArray(conditions, ready)) {
                cJSON_Delete(ready);
                return false;
        }
        return json_add_text(ready, "type", "Ready")
               && json_add_text(ready, "status", ready_status(status->phase))
               && json_add_text(ready, "reason", device_status_reason(status))
               && json_add_text(ready, "message", message ? message : "")
               && json_add_time(ready, "lastTransitionTime", status->transition_at)
               && device_conditions_add(&status->conditions, conditions, reader);
}

/* Few targets keep memory: the disks of all others do not show it. */
static bool add_kept(cJSON *object, const struct device_status *status)
{
        return status->kept_bytes == 0 || json_add_integer(object, "keptBytes", status->kept_bytes);
}

cJSON *device_status_to_json(const struct device_status *status, const char *name, enum reader reader)
{
        cJSON *object = cJSON_CreateObject();

        if (object
                && json_add_text(object, "phase",
                        status->phase == PHASE_UNKNOWN ? NULL : device_phase_to_string(status->phase))
                && json_add_integer(object, "observedGeneration", status->observed_generation)
                && add_disk(object, status, name) && add_worker(object, status)
                && cJSON_AddBoolToObject(object, "needsRestart", device_status_needs_restart(status))
                && add_data_path(object, status) && add_features(object, status)
                && add_recoveries(object, status) && add_kept(object, status) && add_backing(object, status)
                && add_write_errors(object, status) && io_errors_add(&status->errors, object, "ioErrors")
                && json_add_time(object, "nextTryAt", status->next_try_at)
                && json_add_integer(object, "attempts", status->attempts)
                && json_add_text(object, "cause", tenant_text(reader, status->quoted, status->cause))
                && add_conditions(object, status, reader))
                return object;
        cJSON_Delete(object);
        return NULL;
}
